"""Continuing: the last text stays, to the byte, and what is newly relevant stands behind it."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import async_to_sync
from django.core.signing import Signer
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from prism_memory import CONVERSATION, backends
from prism_memory.budget import fit
from prism_memory.continuing import SALT, Previous
from prism_memory.digests import digest
from prism_memory.exceptions import InvalidArgument, InvalidContinuation
from prism_memory.models import Memory
from prism_memory.recollection import HEADER, LATER, Recollection, parse_context
from tests.recalled import MARCH, recalled
from tests.searching import vectors_read

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SUBJECTS = ("garden roses", "dog bones", "bicycle tyre", "piano lesson")


@pytest.fixture
def diary(memory):
    """Ten memories on each of four subjects, in turns."""
    said = [f"{subject} entry{n}" for n in range(10) for subject in SUBJECTS]
    memory.remember(said, occurred_at=[NOON + timedelta(days=n) for n in range(len(said))])
    return memory


def contents(found) -> list[str]:
    return [memory.content for memory in found]


class TestText:
    def test_begins_with_the_bytes_of_the_last_one(self, diary) -> None:
        first = diary.recall("garden roses", budget=600, limit=4, continuing="")
        assert (first.continued, first.restarted, len(first)) == (False, "", 4)
        second = diary.recall("dog bones", budget=600, limit=4, continuing=first)
        assert (second.continued, second.restarted, len(second)) == (True, "", 8)
        assert second.as_context().startswith(first.as_context() + f"\n{LATER}\n- ")
        third = diary.recall("bicycle tyre", budget=600, limit=4, continuing=second.to_token())
        assert third.as_context().startswith(second.as_context() + f"\n{LATER}\n- ")
        assert third.continued
        assert [len(block) for block in third.blocks] == [4, 4, 4]

    def test_is_chronological_within_what_each_recall_added(self, diary) -> None:
        first = diary.recall("piano lesson", budget=900, limit=5, continuing="")
        second = diary.recall("garden roses", budget=900, limit=5, continuing=first)
        for block in second.blocks:
            times = [memory.occurred_at for memory in block]
            assert times == sorted(times)
        assert contents(second) == [entry.content for entry in parse_context(second.as_context())]
        times = [memory.occurred_at for memory in second]
        assert times != sorted(times)

    def test_what_is_there_already_is_not_repeated(self, diary) -> None:
        first = diary.recall("garden roses", budget=900, limit=5, continuing="")
        again = diary.recall("garden roses", budget=900, limit=5, continuing=first)
        assert again.as_context() == first.as_context()
        assert again.digest() == first.digest()
        assert again.continued
        mixed = diary.recall("garden bones", budget=900, limit=8, continuing=again)
        assert len(set(contents(mixed))) == len(mixed) > 5

    def test_is_one_system_message_within_the_budget(self, diary) -> None:
        found = diary.recall("garden roses", budget=500, continuing="")
        for subject in SUBJECTS * 3:
            found = diary.recall(subject, budget=500, continuing=found)
            [message] = found.as_messages()
            assert message == {"role": "system", "content": found.as_context()}
            assert message["content"].count(HEADER) == 1
            assert found.estimated_tokens <= 500
            assert found.estimated_tokens == backends.token_counter().count(found.as_context())
            scores = [memory.score for memory in found.ranked()]
            assert scores == sorted(scores, reverse=True)

    def test_scores_of_all_members_are_those_of_this_query(self, diary) -> None:
        first = diary.recall("garden roses", budget=900, limit=3, continuing="")
        second = diary.recall("dog bones", budget=900, limit=3, continuing=first)
        alone = {m.id: m.score for m in diary.recall("dog bones", limit=99)}
        assert {m.id: m.score for m in second} == {m.id: alone[m.id] for m in second}

    def test_any_recollection_can_be_continued(self, diary) -> None:
        plain = diary.recall("garden roses", limit=3)
        found = diary.recall("dog bones", budget=900, limit=3, continuing=plain)
        assert found.continued
        assert found.as_context().startswith(plain.as_context())

    def test_the_async_twin_gives_the_same(self, diary) -> None:
        first = diary.recall("garden roses", budget=500, continuing="")
        given = {"budget": 500, "continuing": first}
        found = async_to_sync(diary.arecall)("dog bones", **given)
        assert found.digest() == diary.recall("dog bones", **given).digest()

    def test_copies_are_equal_and_other_blocks_are_not(self, diary) -> None:
        first = diary.recall("garden roses", budget=900, limit=2, continuing="")
        second = diary.recall("dog bones", budget=900, limit=2, continuing=first)
        assert copy.copy(second) == second
        flat = Recollection(earlier=[list(second)])
        assert list(flat) == list(second)
        assert (flat == second, flat.digest() == second.digest()) == (False, False)


class TestShare:
    def test_the_first_leaves_room(self, diary, settings) -> None:
        for share in (0.25, 0.5, 1):
            settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "RECALL": {"first_share": share}}
            first = diary.recall("garden roses", budget=600, continuing="")
            assert 0.6 * share * 600 < first.estimated_tokens <= share * 600

    def test_when_it_is_full_it_starts_afresh_within_its_share(self, diary, settings) -> None:
        settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "RECALL": {"first_share": 0.5}}
        found = diary.recall(SUBJECTS[0], budget=240, continuing="")
        kinds = []
        for subject in SUBJECTS[1:] * 3:
            before, found = found, diary.recall(subject, budget=240, continuing=found)
            kinds.append(found.restarted)
            assert found.estimated_tokens <= 240
            assert found.continued is (found.restarted == "")
            assert found.as_context().startswith(before.as_context()) is found.continued
            if found.restarted:
                assert found.estimated_tokens <= 120
                assert len(found.blocks) == 1
                assert contents(found)[0].startswith(subject)
        assert set(kinds) == {"", "full"}

    def test_a_smaller_budget_than_the_last_text_is_full(self, diary) -> None:
        first = diary.recall("garden roses", budget=800, continuing="")
        found = diary.recall("garden roses", budget=first.estimated_tokens - 1, continuing=first)
        assert (found.restarted, found.continued) == ("full", False)
        assert found.estimated_tokens <= 50

    def test_fit_counts_what_stands_before(self) -> None:
        class Characters:
            def count(self, text: str) -> int:
                return len(text)

        earlier = [[recalled("first"), recalled("second")], [recalled("third")]]
        more = [recalled("fourth"), recalled("fifth")]
        whole = len(Recollection(more, earlier=earlier).as_context())
        for budget, count in ((whole, 2), (whole - 1, 1), (whole - 200, 0)):
            kept = fit(more, budget=budget, counter=Characters(), earlier=earlier)  # type: ignore
            assert len(kept) == count
        long = recalled("long " * 50)
        assert fit([long, *more], budget=whole, counter=Characters(), earlier=earlier) == more  # type: ignore


class TestStartingAfresh:
    @pytest.fixture
    def first(self, diary):
        return diary.recall("garden roses", budget=900, limit=3, continuing="").to_token()

    def after(self, handle, first, **arguments):
        given = {"budget": 900, "limit": 3, "continuing": first, **arguments}
        return handle.recall("dog bones", **given)

    def member(self, diary, first) -> Memory:
        key = Previous.of(first, diary.collection).keys[0]
        return diary.records().get(key=key)

    def test_a_forgotten_member(self, diary, first) -> None:
        gone = self.member(diary, first)
        diary.forget([gone.record_id])
        found = self.after(diary, first)
        assert (found.continued, found.restarted) == (False, "forgotten")
        assert gone.content not in found.as_context()
        assert found.as_context() == diary.recall("dog bones", limit=3).as_context()

    def test_an_expired_member(self, diary, first) -> None:
        row = self.member(diary, first)
        diary.records().filter(pk=row.pk).update(expires_at=timezone.now() - timedelta(1))
        assert self.after(diary, first).restarted == "forgotten"

    def test_a_member_past_its_retention(self, diary, first, settings) -> None:
        settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "RETENTION": 1}
        assert self.after(diary, first).restarted == "forgotten"

    def test_a_member_that_the_filter_leaves_out(self, diary, first) -> None:
        diary.remember("dog bones entry99", metadata={"public": True})
        found = self.after(diary, first, filter={"public": True})
        assert found.restarted == "forgotten"
        assert contents(found) == ["dog bones entry99"]

    def test_a_member_whose_entry_is_another(self, diary, first) -> None:
        row = self.member(diary, first)
        later = row.occurred_at + timedelta(hours=1)
        diary.records().filter(pk=row.pk).update(occurred_at=later)
        assert self.after(diary, first).restarted == ""  # the same day: the same bytes
        diary.records().filter(pk=row.pk).update(name="Ana")
        found = self.after(diary, first)
        assert (found.continued, found.restarted) == (False, "changed")

    def test_another_space(self, diary, first, embedder, monkeypatch) -> None:
        monkeypatch.setattr(embedder, "space", "another@64")
        diary.embed_pending()
        found = self.after(diary, first)
        assert (found.continued, found.restarted) == (False, "space")
        assert len(found) == 3


class TestToken:
    @pytest.fixture
    def token(self, diary) -> str:
        return diary.recall("garden roses", budget=900, limit=6, continuing="").to_token()

    def test_holds_digests_and_no_text(self, diary, token) -> None:
        value = json.dumps(Signer(salt=SALT).unsign_object(token))
        assert len(token) < 350 + 57 * 6
        for word in ("garden", "roses", "entry", "user", str(diary.collection)):
            assert word not in value + token
        for row in diary.records():
            assert row.record_id not in value

    def test_can_be_kept_as_json(self, diary, token) -> None:
        assert json.loads(json.dumps(token)) == token
        assert token.isascii()
        found = diary.recall("dog bones", budget=900, limit=6, continuing=token)
        again = diary.recall("dog bones", budget=900, limit=6, continuing=token)
        assert found.continued
        assert found.to_token() == again.to_token() != token

    def test_of_nothing_is_empty_and_begins(self, diary, memory) -> None:
        for found in (diary.recall("", budget=99, continuing=""), Recollection()):
            assert found.to_token() == ""
            assert diary.recall("dog", budget=400, continuing=found).restarted == ""
        assert len(diary.recall("dog bones", budget=400, limit=2, continuing="")) == 2

    def test_every_changed_character_is_noticed(self, diary, token) -> None:
        for at in range(0, len(token), 7):
            changed = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
            with pytest.raises(InvalidContinuation) as caught:
                diary.recall("dog", budget=400, continuing=changed)
            assert token[:20] not in str(caught.value)

    @pytest.mark.parametrize(
        "value", [None, [], "text", 7, [1], [2, "", "", "", [], ""], [1, "", "", "", [1], "%"]]
    )
    def test_what_is_signed_but_no_token_is_refused(self, diary, value) -> None:
        with pytest.raises(InvalidContinuation):
            diary.recall("dog", budget=400, continuing=Signer(salt=SALT).sign_object(value) or "x")

    @pytest.mark.parametrize("value", [b"token", 3, True, [], "token", "a:b", "é"])
    def test_what_is_no_token_is_refused_also_of_a_blank_query(self, diary, value) -> None:
        for query in ("dog", ""):
            with pytest.raises(InvalidContinuation, match="continuing"):
                diary.recall(query, budget=400, continuing=value)

    def test_of_another_owner_or_scope_is_refused(self, diary, user, token) -> None:
        for other in (Memory.objects.for_owner(user, scope="b"), Memory.objects.for_owner("ana")):
            with pytest.raises(InvalidContinuation, match="another owner or scope"):
                other.recall("dog", budget=400, continuing=token)

    def test_of_another_secret_key_is_refused(self, diary, token, settings) -> None:
        settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "new"
        assert diary.recall("dog", budget=900, continuing=token).continued
        settings.SECRET_KEY_FALLBACKS = []
        with pytest.raises(InvalidContinuation):
            diary.recall("dog", budget=400, continuing=token)

    def test_a_recollection_made_by_hand_has_none(self, diary) -> None:
        found = Recollection([recalled()])
        with pytest.raises(InvalidContinuation):
            found.to_token()
        with pytest.raises(InvalidContinuation):
            diary.recall("dog", budget=400, continuing=found)

    def test_needs_a_budget(self, diary, token) -> None:
        with pytest.raises(InvalidArgument, match="budget"):
            diary.recall("dog", continuing=token)


class TestCost:
    def test_members_that_are_no_candidates_are_read_once(self, diary, settings) -> None:
        options = {"BACKEND": "prism_memory.stores.DatabaseStore", "OPTIONS": {"candidates": 8}}
        settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "STORES": {"default": options}}
        first = diary.recall("garden roses", budget=900, limit=5, continuing="")
        for weighting in (None, CONVERSATION):
            with vectors_read() as read:
                found = diary.recall(
                    "dog bones", budget=900, limit=5, continuing=first, weighting=weighting
                )
            assert found.continued
            assert found.vectors_scored == len(read) <= 8 + 5


ENTRY = st.text(max_size=12)


@given(st.lists(st.lists(ENTRY, min_size=1, max_size=3), min_size=1, max_size=4))
def test_any_texts_are_parsed_back_and_extended_as_a_prefix(texts) -> None:
    """A memory's text may hold the line that divides, or an entry, and is still one memory."""
    blocks = [
        [recalled(f"{t}\n{LATER}\n- {t}", id=f"{b}{n}") for n, t in enumerate(block)]
        for b, block in enumerate(texts)
    ]
    whole = Recollection(blocks[-1], earlier=blocks[:-1])
    entries = parse_context(whole.as_context())
    assert [entry.content for entry in entries] == [m.content for m in whole]
    for count in range(1, len(blocks)):
        part = Recollection(earlier=blocks[:count]).as_context()
        assert whole.as_context().startswith(part + f"\n{LATER}\n- ")


@pytest.mark.parametrize("tail", [f"\n{LATER}", f"\n{LATER}\n{LATER}\n- 2024-03-01 user: x"])
def test_a_dividing_line_with_nothing_behind_it_is_no_context(tail: str) -> None:
    text = Recollection([recalled("x", occurred_at=MARCH)]).as_context()
    assert len(parse_context(text)) == 1
    for broken in (text + tail, HEADER + tail):
        with pytest.raises(InvalidArgument):
            parse_context(broken)


def test_keys_are_those_of_the_store(diary) -> None:
    found = diary.recall("garden roses", limit=2)
    keys = {digest("record", diary.collection, memory.id) for memory in found}
    assert diary.records().filter(key__in=keys).count() == 2
