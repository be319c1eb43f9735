"""Any sequence of calls, with few candidates and small pages; and after each, the tables agree."""

from __future__ import annotations

from unittest import mock

from django.test import TransactionTestCase

from prism_memory import pages
from prism_memory.stores import DatabaseStore
from prism_memory.testing.operations import OperationTests
from tests.invariants import check_tables


class TestAnySequence(OperationTests, TransactionTestCase):
    def setUp(self) -> None:
        super().setUp()
        # So that pages are merged, split and emptied within a run.
        self.enterContext(mock.patch.multiple(pages, PAGE_SIZE=4, SMALL_PAGES=2))

    def make_store(self) -> DatabaseStore:
        return DatabaseStore(candidates=4)

    def after_operation(self) -> None:
        check_tables()
