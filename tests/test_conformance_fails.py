"""The suite catches stores that break the contract, each by the test that says what is wrong."""

from __future__ import annotations

import re
import unittest

import pytest
from django.test import TestCase, TransactionTestCase
from hypothesis import Phase, settings

from prism_memory.stores import DatabaseStore, Durability
from prism_memory.testing import IndexedStoreConformance, StoreConformance

from . import broken_stores as broken
from .dict_store import DictStore
from .remote_index import RemoteIndex

pytestmark = pytest.mark.django_db(transaction=True)

BROKEN = {
    # Scores
    broken.SinglePrecision: "every_score_is_the_exact_one_to_the_last_bit",
    broken.AboveOne: "an_exact_match_scores_one_and_never_more",
    broken.DotProduct: "orthogonal_is_zero_and_opposite_minus_one",
    broken.TiesAsTheyCome: "the_nearest_come_first_and_ties_by_id",
    # What is found
    broken.NoFilter: "any_of_a_list_and_every_key",
    broken.LooseFilter: "values_are_equal_by_type",
    broken.FilterAfterTheLimit: "expired_and_forgotten_records_leave_the_limit_filled",
    broken.Remembers: "forgotten_records_never_come_back",
    broken.AnySpace: "a_query_of_another_space_is_refused",
    # What is written
    broken.TruncatesIds: "ids_are_told_apart_to_the_letter",
    broken.FoldsCase: "collections_are_told_apart_to_the_letter",
    broken.WholeSeconds: "a_match_has_all_of_its_record",
    broken.DropsNulls: "null_and_absent_stay_apart",
    broken.AttachCreates: "attach_gives_existing_records_their_vectors_and_never_creates",
    broken.AttachComparesNothing: "attach_compares_the_text_and_sets_only_what_lacks_a_vector",
    broken.KeepsVectors: "a_changed_text_or_name_loses_its_vectors",
    broken.OneByOne: "all_is_written_or_none",
    # What is counted and erased
    broken.CountsTheLiving: "expired_records_count_until_they_are_purged",
    broken.PurgesTheMomentToo: "what_happened_strictly_before_a_moment_is_erased",
    broken.LatestFirst: "what_waits_comes_oldest_first",
    broken.SaysItIsDurable: "durability_is_told_truly",
    # What a store may leave out, if it says so
    broken.ClaimsForNobody: "nothing_is_claimed_twice_until_it_is_given_back",
    broken.NoNeighbours: "what_stands_up_to_some_steps_before_and_after",
    # Drivers
    broken.NewestFirst: "ten_thousand_rows",
    broken.NotSoExact: "ten_thousand_rows",
    # Indexes
    broken.NeverWithdraws: "forgotten_records_never_come_back",
    broken.LosesSome: "every_score_is_the_exact_one_to_the_last_bit",
    broken.AllCollections: "the_nearest_of_the_index",
    broken.TellsTwice: "the_nearest_of_the_index",
    broken.TooMany: "the_nearest_of_the_index",
    broken.ShortAnswers: "ten_thousand_rows",
    broken.FilterlessIndex: "the_index_knows_the_filter_at_least_roughly",
    broken.HoldsToTheEnd: "the_entries_between_two_ids",
    broken.NeverFresh: "a_removed_space_can_come_back",
    broken.AlwaysFresh: "preparing_twice_keeps_what_is_there",
}
#: That the thousand operations alone find out, without knowing what to look for.
FOUND_BY_CHANCE = [
    broken.SinglePrecision, broken.NoFilter, broken.Remembers, broken.AnySpace, broken.FoldsCase,
    broken.DropsNulls, broken.AttachCreates, broken.AttachComparesNothing, broken.KeepsVectors,
    broken.CountsTheLiving, broken.PurgesTheMomentToo, broken.LatestFirst,
]  # fmt: skip


def case(store, **declared):
    """The class that runs the suite on a store."""
    suite = IndexedStoreConformance if issubclass(store, RemoteIndex) else StoreConformance
    body = {"make_store": lambda self: store()}
    if issubclass(store, DictStore):
        body |= {"keeps_records": True, "reads_all": True, "durability": Durability.VOLATILE}
        body |= dict.fromkeys(("has_neighbours", "has_look_up", "has_claims"), False)
    else:
        body["make_exact_store"] = lambda self: store(strategy="exact")
    return type("Case", (suite, TransactionTestCase), body | declared)


def named(store):
    return store.__name__


def failures(store, test, **declared):
    """The tracebacks of one test of the suite; that it failed by an error is one too."""
    result = unittest.TestResult()
    # Called, not run(): so Django sets it up and empties the tables after it, as for any test.
    case(store, **declared)(f"test_{test}")(result)
    assert result.testsRun == 1
    assert not result.skipped
    return [trace for _, trace in result.failures + result.errors]


@pytest.mark.parametrize("store", BROKEN, ids=named)
def test_a_broken_store_fails(store) -> None:
    assert any("AssertionError" in trace for trace in failures(store, BROKEN[store]))


@pytest.fixture
def unshrunk():
    """Without a search for the shortest sequence that fails, which takes minutes."""
    settings.register_profile("unshrunk", phases=[Phase.generate])
    before = settings.get_current_profile_name()
    settings.load_profile("unshrunk")
    yield
    settings.load_profile(before)


@pytest.mark.parametrize("store", FOUND_BY_CHANCE, ids=named)
def test_a_thousand_operations_find_it(store, unshrunk) -> None:
    traces = failures(store, "a_thousand_random_operations")
    assert any("AssertionError" in trace for trace in traces), traces


@pytest.mark.parametrize("suite", [StoreConformance, IndexedStoreConformance])
def test_every_name_of_the_suite_is_defined_once(suite) -> None:
    """Its parts are mixed into one class: what one defines, no other may redefine unseen."""
    parts = [part for part in StoreConformance.__bases__ if part is not object]
    names = [name for part in parts for name in vars(part) if not name.startswith("__")]
    repeated = {name for name in names if names.count(name) > 1}
    assert repeated <= {"setUp"}
    tests = [name for name in dir(suite) if name.startswith("test_")]
    assert len(tests) >= 70


class TestDeclarations:
    """What is declared wrongly is no failure of a test, but an error before it."""

    def refusal(self, store, **declared):
        [trace] = failures(store, "empty_is_just_empty", **declared)
        return trace

    def test_a_test_case_that_never_commits(self) -> None:
        wrong = type("Case", (StoreConformance, TestCase), {})
        with pytest.raises(TypeError, match=r"must inherit from django\.test\.TransactionTestCase"):
            wrong.setUpClass()

    def test_where_records_are_kept(self) -> None:
        trace = self.refusal(DatabaseStore, keeps_records=True)
        assert re.search("TypeError: keeps_records is True.* Set it to False", trace)

    def test_an_index_in_the_suite_for_all(self) -> None:
        wrong = type(
            "Case",
            (StoreConformance, TransactionTestCase),
            {"make_store": lambda self: RemoteIndex()},
        )
        result = unittest.TestResult()
        wrong("test_empty_is_just_empty")(result)
        assert "Inherit from IndexedStoreConformance" in result.errors[0][1]

    def test_what_a_store_has_and_says_it_has_not(self) -> None:
        test = "what_stands_up_to_some_steps_before_and_after"
        assert failures(DatabaseStore, test, has_neighbours=False)
        assert failures(DatabaseStore, "records_are_found_again_by_their_keys", has_look_up=False)
        test = "nothing_is_claimed_twice_until_it_is_given_back"
        assert failures(DatabaseStore, test, has_claims=False)

    def test_strategies_need_the_exact_one(self) -> None:
        [trace] = failures(DatabaseStore, "ten_thousand_rows", make_exact_store=lambda self: None)
        assert "a store with strategies has make_exact_store()" in trace
