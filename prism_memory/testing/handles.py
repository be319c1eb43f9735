"""The handle of an owner over the store: what is remembered is recalled, until it is forgotten."""

from __future__ import annotations

from ..models import Memory
from .cases import StoreCase

__all__ = ["HandleTests"]


class HandleTests(StoreCase):
    def test_what_is_remembered_is_recalled_until_it_is_forgotten(self) -> None:
        memory = Memory.objects.for_owner("ana")
        other = Memory.objects.for_owner("Ana")
        invoice, ticket = memory.remember(["the invoice is paid", "a ticket to Graz"])
        other.remember("the invoice is lost")
        self.assertEqual((memory.count(), memory.pending()), (2, 0))
        self.settle()
        found = memory.recall("invoice", limit=9)
        self.assertEqual([each.id for each in found.ranked()], [invoice, ticket])
        self.assertEqual(memory.forget([invoice]), 1)
        self.settle()
        self.assertEqual([each.id for each in memory.recall("invoice")], [ticket])
        self.assertEqual(memory.forget(), 1)
        self.settle()
        self.assertEqual(len(memory.recall("invoice")), 0)
        self.assertEqual(other.count(), 1)
