"""The suite that every store passes, for authors of stores to run on theirs.

It is mixed into Django's TransactionTestCase, because some stores are told of changes after the
commit, and runs under Django's test runner and pytest alike. Two more stores stand beside the one
under test: a model made of dicts, and the exact store, which reads every vector from the app's
tables and gives every score to the last bit.
"""

from __future__ import annotations

from .beside import BesideTests, LookUpTests
from .claims import ClaimTests
from .erasing import CountingTests, ErasingTests
from .filters import FilterTests
from .handles import HandleTests
from .nearest import NearestTests
from .operations import OperationTests
from .scores import ScoreTests
from .searching import SearchTests
from .spaces import SpaceTests
from .writing import WritingTests

__all__ = ["StoreConformance"]


class StoreConformance(
    ScoreTests,
    SearchTests,
    FilterTests,
    SpaceTests,
    WritingTests,
    ErasingTests,
    CountingTests,
    BesideTests,
    LookUpTests,
    ClaimTests,
    HandleTests,
    NearestTests,
    OperationTests,
):
    """The tests of a store. Inherit from this and from TransactionTestCase, in this order.

    ``make_store()`` returns the store; it is registered while a test runs, under settings of the
    suite's own. What a store does not do is declared by class attributes, and that it does not do
    it is tested too:

    ``keeps_records``: it holds records of its own, and is no TableStore. The exact store is then
    told the same. ``reads_all``: its searches read every vector, and find just what the exact store
    finds. ``durability``: what it must say of itself, DURABLE by default. ``has_neighbours``,
    ``has_look_up``, ``has_claims``: whether it overrides ``neighbours()``, ``look_up()``, and
    ``claim()`` with its kin; True by default.
    """
