"""Recalling: what a handle finds, in what order, and how much of it."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from prism_memory import Weighting, backends
from prism_memory.exceptions import (
    EmbeddingInvalid,
    EmbeddingUnavailable,
    InvalidArgument,
    InvalidFilter,
    SpaceMismatch,
)
from prism_memory.models import Memory
from tests.searching import vectors_read

pytestmark = pytest.mark.django_db
NOW = timezone.now()


@pytest.fixture
def twenty(memory):
    """Twenty memories that share ever fewer words with "alpha beta gamma"."""
    texts = ["alpha beta gamma", "alpha beta", *(f"alpha word{n}" for n in range(18))]
    return dict(zip(texts, memory.remember(texts), strict=True))


def contents(found) -> list[str]:
    return [each.content for each in found.ranked()]


def test_the_nearest_eight_by_default(memory, twenty) -> None:
    found = memory.recall("alpha beta gamma")
    assert len(found) == 8
    assert contents(found)[:2] == ["alpha beta gamma", "alpha beta"]
    assert found.rows_ranked == 20
    best = found.ranked()[0]
    assert best.id == twenty["alpha beta gamma"]
    assert best.similarity == best.score == pytest.approx(1.0)
    assert [each.score for each in found.ranked()] == sorted(
        (each.score for each in found), reverse=True
    )


def test_the_default_limit_is_a_setting(memory, twenty, settings) -> None:
    settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "RECALL": {"limit": 3}}
    assert len(memory.recall("alpha")) == 3
    assert len(memory.recall("alpha", limit=5)) == 5
    assert len(memory.recall("alpha", budget=100_000)) == 20


class TestLimitAndBudget:
    @pytest.mark.parametrize("argument", ["limit", "budget"])
    @pytest.mark.parametrize("value", [-1, True, False, 1.0, "8", math.nan])
    def test_are_whole_numbers(self, memory, argument: str, value: object) -> None:
        for query in ("alpha", ""):
            with pytest.raises(InvalidArgument, match=argument):
                memory.recall(query, **{argument: value})
            with pytest.raises(InvalidArgument, match=argument):
                async_to_sync(memory.arecall)(query, **{argument: value})

    @pytest.mark.parametrize("argument", ["limit", "budget"])
    def test_of_zero_recall_nothing_without_a_call(
        self, memory, twenty, embedder, argument: str, django_assert_num_queries
    ) -> None:
        embedder.failure = RuntimeError("not to be called")
        with django_assert_num_queries(0):
            found = memory.recall("alpha", **{argument: 0})
        assert (len(found), found.as_context(), found.as_messages()) == (0, "", [])
        assert found.estimated_tokens == 0

    @pytest.mark.parametrize("limit", [20, 21, 10**6, 10**30])
    def test_a_huge_limit_recalls_all(self, memory, twenty, limit: int) -> None:
        assert len(memory.recall("alpha", limit=limit)) == 20

    @pytest.mark.parametrize("budget", [1, 20, 30])
    def test_a_budget_below_the_first_memory_recalls_nothing(
        self, memory, twenty, budget: int
    ) -> None:
        found = memory.recall("alpha", budget=budget)
        assert found.as_context() == ""
        assert found.as_messages() == []

    @pytest.mark.parametrize("budget", [60, 100, 200, 10**6, 10**30])
    def test_the_whole_context_stays_within_the_budget(self, memory, twenty, budget: int) -> None:
        found = memory.recall("alpha beta gamma", budget=budget)
        counted = backends.token_counter().count(found.as_context())
        assert 0 < found.estimated_tokens == counted <= budget
        assert contents(found)[0] == "alpha beta gamma"

    def test_with_a_budget_alone_only_the_candidates_cap(self, memory) -> None:
        memory.remember([f"alpha word{n}" for n in range(300)])
        found = memory.recall("alpha", budget=10**6)
        assert len(found) == found.vectors_scored == 256
        assert len(memory.recall("alpha", budget=10**6, limit=280)) == 280
        assert len(memory.recall("alpha", budget=10**6, limit=3)) == 3

    def test_what_does_not_fit_is_skipped(self, memory) -> None:
        long = "alpha beta " * 200
        memory.remember([long, "alpha beta gamma delta"])
        assert contents(memory.recall("alpha beta", limit=1)) == [long]
        assert contents(memory.recall("alpha beta", budget=100)) == ["alpha beta gamma delta"]

    def test_no_more_vectors_are_scored_than_candidates_or_limit(
        self, memory, twenty, settings
    ) -> None:
        assert memory.recall("alpha", limit=1).vectors_scored == 20
        default = {
            "BACKEND": "prism_memory.stores.DatabaseStore",
            "OPTIONS": {"candidates": 4},
        }
        settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "STORES": {"default": default}}
        for limit in (1, 3, 4, 10):
            with vectors_read() as read:
                found = memory.recall("alpha", limit=limit)
            assert len(found) == limit
            assert found.vectors_scored == len(read) == max(4, limit)
            assert found.rows_ranked == 20


class TestWeighting:
    @pytest.fixture
    def old_and_new(self, memory):
        memory.remember("alpha beta", occurred_at=NOW - timedelta(days=70))
        memory.remember("alpha word", occurred_at=NOW)
        return memory

    def test_relevance_alone_by_default(self, old_and_new) -> None:
        found = old_and_new.recall("alpha beta")
        assert contents(found) == ["alpha beta", "alpha word"]
        assert [each.score for each in found] == [each.similarity for each in found]
        assert [each.content for each in found] == ["alpha beta", "alpha word"]  # by time

    def test_recency_lifts_what_is_new(self, old_and_new) -> None:
        found = old_and_new.recall("alpha beta", weighting=Weighting(0.3, 0.7), limit=1)
        assert contents(found) == ["alpha word"]
        assert found[0].recency == pytest.approx(1.0, abs=1e-3)
        found = old_and_new.recall("alpha beta", weighting=Weighting(0.3, 0.7))
        old = found[0]
        assert old.recency == pytest.approx(2**-10, rel=1e-3)
        assert old.score == pytest.approx(0.3 * old.similarity + 0.7 * old.recency)

    def test_is_a_setting_that_an_argument_replaces(self, old_and_new, settings) -> None:
        recall = {"relevance": 0.3, "recency": 0.7, "half_life": 3600}
        settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "RECALL": recall}
        assert contents(old_and_new.recall("alpha beta"))[0] == "alpha word"
        assert old_and_new.recall("alpha beta")[0].recency < 1e-100
        found = old_and_new.recall("alpha beta", weighting=Weighting())
        assert contents(found)[0] == "alpha beta"

    @pytest.mark.parametrize("weighting", [0.5, (0.5, 0.5), {"relevance": 1}])
    def test_is_a_weighting(self, memory, weighting: object) -> None:
        with pytest.raises(InvalidArgument, match="weighting"):
            memory.recall("alpha", weighting=weighting)

    def test_the_store_is_asked_for_more_than_the_limit(self, memory, settings) -> None:
        """The ninth by relevance is the newest; overfetching lets it be weighed at all."""
        memory.remember(
            [f"alpha {'beta ' * n}" for n in range(1, 9)], occurred_at=NOW - timedelta(700)
        )
        memory.remember("alpha word other", occurred_at=NOW)
        weighting = Weighting(0.5, 0.5)
        assert (
            contents(memory.recall("alpha beta", limit=2, weighting=weighting))[0]
            == "alpha word other"
        )
        settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "RECALL": {"overfetch": 1}}
        assert "alpha word other" not in contents(
            memory.recall("alpha beta", limit=2, weighting=weighting)
        )


class TestMinScore:
    def test_compares_the_score_whatever_the_mix(self, memory) -> None:
        memory.remember("alpha beta", occurred_at=NOW - timedelta(days=700))
        memory.remember("unrelated words", occurred_at=NOW)
        assert contents(memory.recall("alpha beta", min_score=0.9)) == ["alpha beta"]
        mixed = memory.recall("alpha beta", min_score=0.9, weighting=Weighting(0.05, 0.95))
        assert contents(mixed) == ["unrelated words"]
        assert len(memory.recall("alpha beta", min_score=-1)) == 2
        assert len(memory.recall("alpha beta", min_score=1, weighting=Weighting(1, 1))) == 0

    def test_is_inclusive(self, memory, twenty) -> None:
        second = memory.recall("alpha beta gamma").ranked()[1].score
        assert len(memory.recall("alpha beta gamma", min_score=second)) == 2
        above = math.nextafter(second, 2)
        assert len(memory.recall("alpha beta gamma", min_score=above)) == 1

    def test_is_a_setting(self, memory, twenty, settings) -> None:
        settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "RECALL": {"min_score": 0.99}}
        assert contents(memory.recall("alpha beta gamma")) == ["alpha beta gamma"]
        assert len(memory.recall("alpha beta gamma", min_score=-1)) == 8

    @pytest.mark.parametrize("score", [math.nan, math.inf, 1.5, -2, True, "0.5"])
    def test_is_a_number_from_minus_one_to_one(self, memory, score: object) -> None:
        with pytest.raises(InvalidArgument, match="min_score"):
            memory.recall("alpha", min_score=score)


class TestQuery:
    @pytest.mark.parametrize("query", ["", " ", "\n\t", "\u200b", "\u2003"])
    def test_a_blank_one_recalls_nothing_without_a_call(
        self, memory, twenty, embedder, query: str
    ) -> None:
        embedder.failure = RuntimeError("not to be called")
        assert len(memory.recall(query)) == 0
        assert len(memory.recall(query, budget=500)) == 0
        with pytest.raises(InvalidFilter):
            memory.recall(query, filter={"k": {}})

    @pytest.mark.parametrize("query", [None, 3, b"alpha", ["alpha"], "lone \ud800"])
    def test_is_a_text(self, memory, query: object) -> None:
        with pytest.raises(InvalidArgument, match="query"):
            memory.recall(query)

    @pytest.mark.parametrize(
        ("failure", "expected"),
        [(RuntimeError("SECRET"), EmbeddingUnavailable), (TimeoutError(), EmbeddingUnavailable)],
    )
    def test_a_failing_provider_is_no_empty_answer(
        self, memory, twenty, embedder, failure, expected
    ) -> None:
        embedder.failure = failure
        with pytest.raises(expected) as caught:
            memory.recall("alpha")
        assert "SECRET" not in repr(caught.value)
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None

    @pytest.mark.parametrize("answer", [None, [], [0.0] * 64, [math.nan] * 64, "vector", [[1.0]]])
    def test_an_unusable_answer_is_no_empty_answer(
        self, memory, twenty, embedder, monkeypatch, answer: object
    ) -> None:
        monkeypatch.setattr(embedder, "embed_query", lambda text: answer)
        with pytest.raises(EmbeddingInvalid):
            memory.recall("alpha")

    def test_another_width_is_named(self, memory, twenty, embedder, monkeypatch) -> None:
        monkeypatch.setattr(embedder, "embed_query", lambda text: [1.0] * 32)
        with pytest.raises(SpaceMismatch, match=r"32.*64"):
            memory.recall("alpha")


def test_filters_and_retention(memory, settings) -> None:
    memory.remember("alpha one", metadata={"k": 1}, occurred_at=NOW - timedelta(hours=2))
    memory.remember([{"role": "user", "content": "alpha two"}], metadata={"k": True})
    assert contents(memory.recall("alpha", filter={"k": 1.0})) == ["alpha one"]
    assert contents(memory.recall("alpha", filter={"role": "user"})) == ["alpha two"]
    assert contents(memory.recall("alpha", filter={"kind": "observation", "k": 1})) == ["alpha one"]
    settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "RETENTION": 3600}
    assert contents(memory.recall("alpha")) == ["alpha two"]
    assert memory.count() == 2
    settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "RETENTION": None}
    assert len(memory.recall("alpha")) == 2


def test_only_this_owner_and_scope(memory, user, twenty) -> None:
    other = Memory.objects.for_owner(user, scope="other").synchronously()
    string = Memory.objects.for_owner(str(user.pk)).synchronously()
    assert len(other.recall("alpha")) == len(string.recall("alpha")) == 0
    other.remember("alpha elsewhere")
    assert contents(other.recall("alpha")) == ["alpha elsewhere"]
    assert "alpha elsewhere" not in contents(memory.recall("alpha", limit=99))


def test_a_member_carries_what_was_stored(memory) -> None:
    when = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    message = {"role": "user", "name": "Ana", "content": "alpha"}
    ids = memory.remember([message], metadata={"source_page": None, "k": 1.0}, occurred_at=when)
    (found,) = memory.recall("alpha")
    assert (found.id, found.content, found.role, found.name) == (ids[0], "alpha", "user", "Ana")
    assert (found.kind, found.occurred_at) == ("observation", when)
    assert repr(found.metadata) == repr({"source_page": None, "k": 1.0})


def test_the_async_twin_gives_the_same(memory, twenty) -> None:
    arguments = {"limit": 3, "budget": 200, "weighting": Weighting(), "filter": {}}
    found = async_to_sync(memory.arecall)("alpha beta", **arguments)
    assert len(found) == 3
    assert found.digest() == memory.recall("alpha beta", **arguments).digest()
