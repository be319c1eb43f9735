"""Surroundings: what stands beside the best, bound by all that binds a search."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test import override_settings
from django.utils import timezone

from prism_memory import CONVERSATION, Weighting, backends
from prism_memory.digests import digest
from prism_memory.models import Memory
from prism_memory.stores import Neighbours, VectorStore
from prism_memory.surroundings import surroundings
from tests.searching import EXACT, at, ids, query, record, vectors_read

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
MIX = Weighting(relevance=1, surroundings=1)


def minutes(*offsets: float) -> list[datetime]:
    return [NOON + offset * MINUTE for offset in offsets]


def by_content(found) -> dict[str, object]:
    return {memory.content: memory for memory in found}


@pytest.fixture
def small(settings):
    """A store of 16 candidates, of which 4 are for neighbours, and which looks around one."""
    options = {"BACKEND": "prism_memory.stores.DatabaseStore", "OPTIONS": {"candidates": 16}}
    settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "STORES": {"default": options}}


@pytest.fixture
def talk(memory, small):
    """One question and its answer in a talk, and much that is nearer to the query elsewhere."""
    said = ["We spoke of boats", "What is the alpha beta called?", "Hubert!", "Good name", "Bye"]
    memory.remember(said, occurred_at=minutes(0, 1, 2, 3, 4))
    noise = [f"alpha noise{n}" for n in range(30)]
    memory.remember(noise, occurred_at=[NOON - timedelta(days=n + 1) for n in range(30)])
    return memory


class TestOrder:
    def test_the_answer_beside_the_match_is_recalled(self, talk) -> None:
        question = "What is the alpha beta called?"
        assert "Hubert!" not in by_content(talk.recall(question, limit=12))
        found = by_content(talk.recall(question, limit=12, weighting=MIX))
        assert found["Hubert!"].surroundings == found[question].similarity
        assert found["We spoke of boats"].surroundings == found[question].similarity
        assert found["Good name"].surroundings == 0.8 * found[question].similarity
        assert "Bye" not in found

    def test_both_sides_lend(self, talk) -> None:
        found = by_content(talk.recall("alpha beta called", limit=99, weighting=MIX))
        question = found["What is the alpha beta called?"]
        beside = found["We spoke of boats"], found["Hubert!"]
        further = 0.8 * found["Good name"].similarity
        assert question.surroundings == max(further, *(each.similarity for each in beside))

    def test_the_score_is_the_mean_of_all_parts(self, talk) -> None:
        mix = Weighting(2, 1, 3, 2)
        for each in talk.recall("alpha beta called", limit=30, weighting=mix):
            parts = (each.similarity, each.recency, each.wording, each.surroundings)
            total = sum(w * p for w, p in zip((2, 1, 3, 2), parts, strict=True))
            assert each.score == pytest.approx(total / 8)
            assert all(-1 <= part <= 1 for part in (*parts, each.score))

    def test_what_is_further_off_than_half_an_hour_is_no_neighbour(self, memory) -> None:
        memory.remember(["alpha", "near", "far"], occurred_at=minutes(0, 30, 60.01))
        found = by_content(memory.recall("alpha", weighting=MIX))
        assert found["near"].surroundings > 0.99
        assert found["far"].surroundings <= 0  # beside "near" it stands too far away as well

    def test_messages_of_one_call_and_of_one_moment_have_an_order(self, memory) -> None:
        memory.remember(["one", "two", "alpha", "four", "five", "six"])
        found = by_content(memory.recall("alpha", weighting=MIX))
        for content, worth in (("one", 0.8), ("two", 1), ("four", 1), ("five", 0.8)):
            assert found[content].surroundings == pytest.approx(worth)
        assert found["six"].surroundings < 0.5
        memory.forget()
        for content in ("one", "two", "alpha", "four"):
            memory.remember(content, occurred_at=NOON)
        found = by_content(memory.recall("alpha", weighting=MIX))
        assert found["two"].surroundings == found["four"].surroundings == pytest.approx(1)
        assert found["one"].surroundings == pytest.approx(0.8)


class TestBounds:
    def test_no_more_vectors_are_read_than_without(self, talk) -> None:
        for limit in (1, 8, 12, 14, 16, 20):
            with vectors_read() as read:
                found = talk.recall("alpha beta called", limit=limit, weighting=MIX)
            assert found.vectors_scored == len(read) <= max(16, limit)
            assert len(found) == limit

    def test_one_statement_finds_neighbours_and_one_reads_them(
        self, talk, django_assert_num_queries
    ) -> None:
        talk.recall("alpha beta called")
        with django_assert_num_queries(3):  # spaces, pages, candidates
            talk.recall("alpha beta called")
        with django_assert_num_queries(6):  # and: spaces, neighbours, what is read of them
            talk.recall("alpha beta called", weighting=MIX)

    def test_default_results_are_the_same_to_the_bit(self, talk, monkeypatch) -> None:
        monkeypatch.setattr("prism_memory.scoring._beside", None)
        found = talk.recall("alpha beta called", limit=12)
        assert [each.score for each in found] == [each.similarity for each in found]
        assert {(each.wording, each.surroundings) for each in found} == {(0.0, 0.0)}

    def test_the_exact_strategy_looks_around_as_well(self, talk, settings) -> None:
        options = {"strategy": "exact", "candidates": 16}
        entry = {"BACKEND": "prism_memory.stores.DatabaseStore", "OPTIONS": options}
        question = "What is the alpha beta called?"
        settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "STORES": {"default": entry}}
        found = by_content(talk.recall(question, limit=12, weighting=MIX))
        assert found["Hubert!"].surroundings == found[question].similarity


class TestBinding:
    QUESTION = "What is the alpha beta called?"

    def contents(self, handle, **arguments) -> set[str]:
        return set(by_content(handle.recall(self.QUESTION, limit=12, weighting=MIX, **arguments)))

    def test_forgotten_and_expired_ones_are_stepped_over(self, talk) -> None:
        assert "Bye" not in self.contents(talk)
        rows = talk.records()
        rows.filter(content="Hubert!").update(expires_at=timezone.now() - MINUTE)
        found = self.contents(talk)
        assert "Hubert!" not in found
        assert {"Good name", "Bye"} <= found
        talk.forget([rows.get(content="Good name").record_id])
        assert "Good name" not in self.contents(talk)

    def test_what_a_filter_leaves_out_neither_joins_nor_lends(self, memory) -> None:
        memory.remember("alpha", metadata={"k": 1}, occurred_at=NOON)
        memory.remember("one", metadata={"k": 2}, occurred_at=NOON + MINUTE)
        memory.remember("two", metadata={"k": 1}, occurred_at=NOON + 2 * MINUTE)
        found = by_content(memory.recall("alpha", weighting=MIX, filter={"k": 1}))
        assert set(found) == {"alpha", "two"}
        assert found["two"].surroundings == pytest.approx(0.8)
        found = by_content(memory.recall("alpha", weighting=MIX, filter={"k": 2}))
        assert found["one"].surroundings == 0.0

    def test_what_is_past_its_retention_is_left_out(self, memory, settings) -> None:
        now = timezone.now()
        memory.remember(["old", "alpha"], occurred_at=[now - 20 * MINUTE, now - 5 * MINUTE])
        settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "RETENTION": 600}
        assert set(by_content(memory.recall("alpha", weighting=MIX))) == {"alpha"}

    def test_other_owners_and_scopes_are_no_neighbours(self, talk, user) -> None:
        for handle in (
            Memory.objects.for_owner(user, scope="other").synchronously(),
            Memory.objects.for_owner(str(user.pk)).synchronously(),
        ):
            handle.remember("intruder", occurred_at=NOON + 1.5 * MINUTE)
        found = talk.recall(self.QUESTION, limit=99, weighting=MIX)
        assert "intruder" not in by_content(found)
        assert by_content(found)["Hubert!"].surroundings > 0.9

    def test_what_waits_or_has_its_vector_in_another_space_does_not_join(self, talk) -> None:
        EXACT.upsert([record("w", collection=talk.collection, occurred_at=NOON + 1.1 * MINUTE)])
        EXACT.upsert([record("s", at(1), talk.collection, occurred_at=NOON + 1.2 * MINUTE)])
        store, space = EXACT, backends.embedder().space
        vector = backends.embedder().vector(self.QUESTION)
        asked = query(vector, [talk.collection], space=space)
        [best] = [m for m in _found(store, asked) if m.content == self.QUESTION]
        beside = store.neighbours(asked, [best], known=[best], steps=2, within=MINUTE, most=9)
        assert {match.content for match in beside.found} == {"We spoke of boats"}


def _found(store, asked):
    key = digest("record", asked.collections[0], "")
    assert store.look_up(asked, [key]) == []
    rows = Memory.objects.filter(collection=asked.collections[0]).values_list("key", flat=True)
    return store.look_up(asked, rows)


class TestStore:
    def test_steps_within_and_most(self) -> None:
        rows = [record(f"r{n}", at(0.9 - n / 10), occurred_at=NOON + n * MINUTE) for n in range(7)]
        EXACT.upsert(rows)
        matches = {match.id: match for match in EXACT.search(query(limit=9))}
        given = {"steps": 2, "within": 5 * MINUTE, "most": 9}

        def beside(id: str, known: str = "", **changed):
            known = [matches[f"r{n}"] for n in known]
            return EXACT.neighbours(query(), [matches[id]], known=known, **{**given, **changed})

        found = beside("r3")
        assert [(one[1], other[1], step) for one, other, step in found.pairs] == [
            *(("r3", "r2", 1), ("r3", "r4", 1), ("r3", "r1", 2), ("r3", "r5", 2))
        ]
        assert set(ids(found.found)) == {"r1", "r2", "r4", "r5"}
        assert found.found.vectors_scored == 4
        assert {m.id: m.similarity for m in found.found}["r4"] == matches["r4"].similarity
        assert ids(beside("r3", steps=1).found) in (["r2", "r4"], ["r4", "r2"])
        assert set(ids(beside("r3", within=MINUTE).found)) == {"r2", "r4"}
        found = beside("r3", known="24")
        assert set(ids(found.found)) == {"r1", "r5"}
        assert len(found.pairs) == 4
        found = beside("r3", most=1)
        assert [pair[1][1] for pair in found.pairs] == ids(found.found) == ["r2"]
        assert ids(beside("r0", steps=1).found) == ["r1"]
        assert EXACT.neighbours(query(), [], known=[], **given) == Neighbours()
        elsewhere = query(space="empty@8")
        assert EXACT.neighbours(elsewhere, [matches["r3"]], known=[], **given) == Neighbours()
        assert EXACT.look_up(elsewhere, ["x"]) == []

    @pytest.mark.parametrize("moment", [datetime.min, datetime.max])
    @override_settings(TIME_ZONE="UTC")  # without USE_TZ, columns end with local time
    def test_the_ends_of_time_have_neighbours(self, moment) -> None:
        moment = moment.replace(tzinfo=UTC)
        EXACT.upsert([record(id, at(1), occurred_at=moment) for id in "ab"])
        first, second = EXACT.search(query())
        found = EXACT.neighbours(query(), [first], known=[], steps=2, within=MINUTE, most=4)
        assert ids(found.found) == [second.id]

    def test_a_store_of_another_package_has_none(self, talk, monkeypatch) -> None:
        for method in ("neighbours", "look_up"):
            monkeypatch.setattr(
                "prism_memory.stores.table.TableStore." + method, getattr(VectorStore, method)
            )
        found = talk.recall("alpha beta called", limit=12, weighting=CONVERSATION)
        assert {memory.surroundings for memory in found} == {0.0}


def test_the_best_beside_counts_and_no_less_than_the_worst() -> None:
    a, b, c = (("c", id) for id in "abc")
    found = surroundings([(a, b, 1), (a, c, 2), (b, c, 1)], {a: 0.5, b: -0.25, c: -0.5})
    assert found == {a: -0.25, b: 0.5, c: 0.4}
    assert surroundings([], {a: 1.0}) == {}
