"""Searching a store: what it returns, in what order, and what it reads for that."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from django.utils import timezone

from prism_memory.exceptions import InvalidArgument, InvalidIdentifier, InvalidVector
from prism_memory.models import Memory
from prism_memory.stores import DatabaseStore, VectorQuery
from prism_memory.testing.clustered import clustered
from prism_memory.vectors import Vector
from tests.searching import EXACT, SPACE, at, ids, query, random_vectors, record, vectors_read

pytestmark = pytest.mark.django_db
STORES = [DatabaseStore(), DatabaseStore(candidates=1), EXACT]
HUGE = [10**6, 2**31, 2**63, 10**30]


def fill(store: DatabaseStore, count: int, **fields: object) -> None:
    store.upsert(
        record(f"r{n:05}", vector, **fields) for n, vector in enumerate(random_vectors(count))
    )


@pytest.mark.parametrize("store", STORES)
class TestEveryStrategy:
    def test_the_nearest_come_first(self, store: DatabaseStore) -> None:
        store.upsert([record("far", at(-0.5)), record("near", at(0.9)), record("mid", at(0.4))])
        found = store.search(query())
        assert ids(found) == ["near", "mid", "far"][: len(found)]
        assert found[0].similarity == pytest.approx(0.9)
        assert found[0].content == "content of near"
        assert found[0].collection == "c"

    def test_ties_are_broken_by_id(self, store: DatabaseStore) -> None:
        store.upsert([record(id, at(0.5)) for id in ("b", "c", "a", "B", "é", "10", "9")])
        assert ids(store.search(query(limit=20))) == sorted(["b", "c", "a", "B", "é", "10", "9"])

    @pytest.mark.parametrize("limit", HUGE)
    def test_a_huge_limit_finds_all_there_is(self, store: DatabaseStore, limit: int) -> None:
        fill(store, 20)
        assert len(store.search(query(limit=limit))) == 20

    def test_a_limit_of_zero_finds_nothing_and_reads_nothing(
        self, store: DatabaseStore, django_assert_num_queries
    ) -> None:
        fill(store, 3)
        with django_assert_num_queries(0):
            found = store.search(query(limit=0))
        assert (list(found), found.rows_ranked, found.vectors_scored) == ([], 0, 0)

    def test_no_limit_is_the_default_one(self, store: DatabaseStore, settings) -> None:
        fill(store, 20)
        assert len(store.search(query(limit=None))) == 8
        settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "RECALL": {"limit": 3}}
        assert len(store.search(query(limit=None))) == 3
        assert len(store.search(VectorQuery(["c"], at(1), SPACE))) == 8

    def test_empty_is_just_empty(self, store: DatabaseStore) -> None:
        assert store.search(query()) == []
        assert store.search(query(collections=[])) == []
        store.upsert([record("unembedded")])
        assert store.search(query()) == []

    def test_min_similarity_is_a_floor(self, store: DatabaseStore) -> None:
        store.upsert([record("a", at(0.9)), record("b", at(0.2)), record("c", at(-1))])
        assert ids(store.search(query(min_similarity=0.5, limit=9))) == ["a"]
        exactly = store.search(query(limit=9))[1].similarity
        assert ids(store.search(query(min_similarity=exactly, limit=9))) == ["a", "b"]
        assert len(store.search(query(min_similarity=-1, limit=9))) == 3
        assert store.search(query(min_similarity=1, limit=9)) == []

    def test_expired_rows_never_come_back(self, store: DatabaseStore) -> None:
        past, future = timezone.now() - timedelta(seconds=1), timezone.now() + timedelta(hours=1)
        store.upsert([record("gone", at(1), expires_at=past), record("here", at(0.1))])
        store.upsert([record("later", at(0), expires_at=future)])
        assert ids(store.search(query())) == ["here", "later"]

    def test_expiry_is_read_and_not_remembered(self, store: DatabaseStore) -> None:
        store.upsert([record("r", at(1), expires_at=timezone.now() + timedelta(hours=1))])
        assert ids(store.search(query())) == ["r"]
        Memory.objects.update(expires_at=timezone.now())
        assert store.search(query()) == []

    def test_forgotten_rows_never_come_back(self, store: DatabaseStore) -> None:
        store.upsert([record("gone", at(1)), record("here", at(0.1))])
        assert store.forget("c", ["gone"]) == 1
        assert ids(store.search(query())) == ["here"]
        store.upsert([record("gone")])
        assert ids(store.search(query())) == ["here"]

    def test_what_happened_before_a_moment_is_left_out(self, store: DatabaseStore) -> None:
        when = datetime(2026, 1, 1, tzinfo=UTC)
        step = timedelta(microseconds=1)
        store.upsert([record(str(n), at(1), occurred_at=when + n * step) for n in (-1, 0, 1)])
        assert ids(store.search(query(occurred_since=when))) == ["1"]

    def test_several_collections_are_one_search(self, store: DatabaseStore) -> None:
        for n, collection in enumerate(["a", "b", "other"]):
            store.upsert(record(f"{m}", at(0.9 - m / 10 - n / 100), collection) for m in range(4))
        found = store.search(query(collections=["a", "b", "a", "missing"], limit=5))
        pairs = [("a", "0"), ("b", "0"), ("a", "1"), ("b", "1"), ("a", "2")]
        assert [(each.collection, each.id) for each in found] == pairs
        assert found.rows_ranked == 8

    def test_collections_are_told_apart_to_the_letter(self, store: DatabaseStore) -> None:
        names = ["alice", "Alice", "álice", "alice ", "😀", "🚀"]
        store.upsert([record("r", at(1), name) for name in names])
        for name in names:
            assert [each.collection for each in store.search(query(collections=[name]))] == [name]

    def test_ids_are_told_apart_to_the_letter(self, store: DatabaseStore) -> None:
        store.upsert([record("h-1", at(1)), record("H-1", at(0.5)), record("h-1 ", at(0.1))])
        assert ids(store.search(query())) == ["h-1", "H-1", "h-1 "]

    def test_a_stored_null_comes_back_present(self, store: DatabaseStore) -> None:
        metadata = {"source_page": None, "k": None, "zero": 0, "no": False, "empty": "", "f": 1.0}
        store.upsert([record("r", at(1), metadata=metadata)])
        (found,) = store.search(query())
        assert repr(found.metadata) == repr(metadata)

    def test_times_come_back_aware_and_exact(self, store: DatabaseStore) -> None:
        when = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
        store.upsert([record("r", at(1), occurred_at=when)])
        assert store.search(query())[0].occurred_at == when


class TestArguments:
    @pytest.mark.parametrize("limit", [-1, True, False, 1.0, "8", math.nan, []])
    def test_a_limit_is_a_whole_number_or_none(self, limit: object) -> None:
        with pytest.raises(InvalidArgument, match="limit"):
            query(limit=limit)

    @pytest.mark.parametrize("score", [1.01, -2, math.nan, math.inf, True, "0.5"])
    def test_a_similarity_is_a_cosine(self, score: object) -> None:
        with pytest.raises(InvalidArgument, match="min_similarity"):
            query(min_similarity=score)

    @pytest.mark.parametrize("collections", ["c", None, [""], [None], ["c\x00"], ["x" * 256], 3])
    def test_collections_are_a_list_of_names(self, collections: object) -> None:
        with pytest.raises(InvalidIdentifier, match="collections"):
            VectorQuery(collections, at(1), SPACE)  # type: ignore[arg-type]

    @pytest.mark.parametrize("vector", [[], [0, 0], [math.nan, 1], "12", None, [[1.0]]])
    def test_a_query_is_a_vector(self, vector: object) -> None:
        with pytest.raises(InvalidVector):
            DatabaseStore().search(VectorQuery(["c"], vector, SPACE))


class TestWhatItReads:
    @pytest.mark.parametrize("limit", [1, 8, 40, 90])
    def test_no_more_vectors_than_candidates_or_limit(self, limit: int) -> None:
        store = DatabaseStore(candidates=32)
        fill(store, 100)
        with vectors_read() as read:
            found = store.search(query(limit=limit))
        assert len(found) == limit
        assert found.rows_ranked == 100
        assert found.vectors_scored == len(read) == max(32, limit)

    def test_the_exact_strategy_reads_all(self) -> None:
        fill(EXACT, 60)
        with vectors_read() as read:
            found = EXACT.search(query())
        assert found.rows_ranked == 60
        assert found.vectors_scored == len(read) >= 60

    def test_thousands_of_nearer_expired_rows_leave_the_limit_filled(self) -> None:
        """More than one pass of the ranking, and still no vector is read in vain."""
        store = DatabaseStore(candidates=32)
        past = timezone.now() - timedelta(days=1)
        near = 0.01 * random_vectors(6000) + np.array(at(1))
        store.upsert(record(f"x{n}", row, expires_at=past) for n, row in enumerate(near))
        store.upsert(record(f"live{n:02}", at(-n / 100)) for n in range(40))
        with vectors_read() as read:
            found = store.search(query(limit=20))
        assert ids(found) == [f"live{n:02}" for n in range(20)]
        assert found.rows_ranked == 6040
        assert found.vectors_scored == len(read) <= 32
        assert found == EXACT.search(query(limit=20))

    def test_a_number_of_queries_that_does_not_grow(self, django_assert_num_queries) -> None:
        store = DatabaseStore()
        for count in (10, 1200):
            fill(store, count)
            with django_assert_num_queries(4):
                store.search(query())


class TestScores:
    def test_every_score_is_the_exact_one(self) -> None:
        fill(EXACT, 300)
        for vector in random_vectors(5, seed=1):
            found = DatabaseStore(candidates=8).search(query(vector, limit=4))
            exact = {each.id: each for each in EXACT.search(query(vector, limit=300))}
            assert len(found) == 4
            for match in found:
                assert match == exact[match.id]
                assert match.similarity.hex() == exact[match.id].similarity.hex()

    def test_a_score_does_not_depend_on_what_else_is_stored(self) -> None:
        vectors = random_vectors(200, 96)
        store, alone = DatabaseStore(candidates=256), vectors[0]
        asked = query(random_vectors(1, 96, seed=3)[0], limit=200, space="wide")
        store.upsert([record("me", alone, space="wide")])
        before = store.search(asked)[0].similarity
        store.upsert(record(f"r{n}", row, space="wide") for n, row in enumerate(vectors[1:]))
        after = {each.id: each.similarity for each in store.search(asked)}
        assert after["me"].hex() == before.hex()
        assert before == Vector.of(asked.vector).cosine(Vector.of(alone))

    def test_scores_are_cosines(self) -> None:
        store = DatabaseStore()
        store.upsert([record("same", at(1)), record("long", [1e9 * x for x in at(1)])])
        store.upsert([record("opposite", [-x for x in at(1)])])
        found = {each.id: each.similarity for each in store.search(query())}
        assert found == pytest.approx({"same": 1.0, "long": 1.0, "opposite": -1.0})
        assert all(-1 <= similarity <= 1 for similarity in found.values())


def test_quality_grows_with_the_candidates() -> None:
    """The best eight by signature and estimate, against those of an exhaustive search."""
    matrix, queries = clustered(queries=40)
    EXACT.upsert(record(f"r{n}", row, space="clustered") for n, row in enumerate(matrix))
    asked = [query(vector, space="clustered") for vector in queries]
    exact = [set(ids(EXACT.search(each))) for each in asked]
    recall = {}
    for candidates in (8, 32, 128, 256):
        store = DatabaseStore(candidates=candidates)
        found = [set(ids(store.search(each))) for each in asked]
        recall[candidates] = sum(
            len(one & other) for one, other in zip(found, exact, strict=True)
        ) / (8 * len(asked))
    assert list(recall.values()) == sorted(recall.values())
    # By Hamming distance alone: .28, .76, 1, 1.
    assert recall[8] >= 0.3
    assert recall[32] >= 0.8
    assert recall[128] >= 0.99
    assert recall[256] >= 0.995
