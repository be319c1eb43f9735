"""A Recollection: its order, its behaviour as a sequence, and what its text depends on."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
import random
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from prism_memory.exceptions import InvalidArgument, InvalidTimestamp
from prism_memory.recollection import Recollection, parse_context
from tests.recalled import MARCH, recalled, recollection


class Characters:
    """Counts characters, and how often it was asked to."""

    def __init__(self) -> None:
        self.calls = 0

    def count(self, text: str) -> int:
        self.calls += 1
        return len(text)


FIRST = recalled("first", id="c", occurred_at=MARCH, score=0.1)
SECOND = recalled("second", id="b", occurred_at=MARCH + timedelta(microseconds=1), score=0.9)
THIRD = recalled("third", id="a", occurred_at=MARCH + timedelta(days=1), score=0.5)
ALL = (FIRST, SECOND, THIRD)


# Order and sequence behaviour


def test_the_order_is_chronological_whatever_the_scores_and_the_order_given() -> None:
    for seed in range(6):
        shuffled = random.Random(seed).sample(ALL, 3)
        assert list(recollection(*shuffled)) == list(ALL)
    assert recollection(THIRD, SECOND, FIRST).as_context().split("\n")[1:] == [
        "- 2024-03-01 user: first",
        "- 2024-03-01 user: second",
        "- 2024-03-02 user: third",
    ]


def test_memories_of_one_moment_are_ordered_by_record_id() -> None:
    same = [recalled(f"text {each}", id=each, score=ord(each)) for each in "dacb"]
    assert [each.id for each in recollection(*same)] == ["a", "b", "c", "d"]


def test_one_moment_in_two_time_zones_is_one_moment() -> None:
    elsewhere = MARCH.astimezone(timezone(timedelta(hours=14)))
    found = recollection(recalled("x", id="b"), recalled("y", id="a", occurred_at=elsewhere))
    assert [each.id for each in found] == ["a", "b"]


def test_ranked_is_best_first_then_latest_then_by_id() -> None:
    assert recollection(*ALL).ranked() == [SECOND, THIRD, FIRST]
    level = [
        recalled("1", id="a"),
        recalled("2", id="c", occurred_at=MARCH + timedelta(seconds=1)),
        recalled("3", id="b", occurred_at=MARCH + timedelta(seconds=1)),
    ]
    assert [each.id for each in recollection(*level).ranked()] == ["b", "c", "a"]


def test_it_is_a_sequence() -> None:
    found = recollection(*ALL)
    assert len(found) == 3
    assert found
    assert not recollection()
    assert found[0] == FIRST
    assert found[-1] == THIRD
    assert found[1:] == (SECOND, THIRD)
    assert found[::-1] == (THIRD, SECOND, FIRST)
    assert list(reversed(found)) == [THIRD, SECOND, FIRST]
    assert SECOND in found
    assert recalled("another") not in found
    assert found.index(THIRD) == 2
    assert found.count(FIRST) == 1
    with pytest.raises(IndexError):
        found[3]


def test_equality_is_that_of_the_members() -> None:
    found = Recollection(ALL, counter=Characters(), rows_ranked=7, vectors_scored=3)  # type: ignore[arg-type]
    assert found == recollection(THIRD, FIRST, SECOND)
    assert hash(found) == hash(recollection(*ALL))
    assert found != recollection(FIRST)
    assert found != list(ALL)
    assert (found.rows_ranked, found.vectors_scored) == (7, 3)
    assert (recollection().rows_ranked, recollection().vectors_scored) == (0, 0)


def test_members_can_not_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        FIRST.content = "other"  # type: ignore[misc]
    found = recollection(*ALL)
    with pytest.raises(TypeError):
        found[0] = THIRD  # type: ignore[index]


def test_copies_and_pickles_are_equal() -> None:
    found = recollection(*ALL)
    assert copy.deepcopy(found) == found
    assert pickle.loads(pickle.dumps(found)).digest() == found.digest()


def test_reprs_show_nothing_of_what_was_said() -> None:
    memory = recalled("my PIN is 1234", name="Ana Secret", metadata={"k": "1234"})
    for text in (repr(recollection(memory)), repr(memory), str(memory)):
        assert "1234" not in text
        assert "Ana" not in text
    assert repr(recollection(memory)) == "<Recollection: 1 memory>"
    assert repr(recollection()) == "<Recollection: 0 memories>"


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidTimestamp, match="occurred_at"):
        recalled(occurred_at=datetime(2024, 3, 1))


# The text


def test_empty_gives_nothing_at_all() -> None:
    assert recollection().as_context() == ""
    assert recollection().as_messages() == []
    assert recollection().estimated_tokens == 0
    assert recollection().digest() == hashlib.sha256(b"").hexdigest()
    assert parse_context("") == []


def test_the_message_is_one_system_message_with_two_keys() -> None:
    found = recollection(*ALL)
    assert found.as_messages() == [{"role": "system", "content": found.as_context()}]
    found.as_messages()[0]["content"] = "changed"
    assert found.as_messages()[0]["content"] == found.as_context()


def test_only_time_role_name_and_content_reach_the_text() -> None:
    plain = recalled(id="a")
    other = replace(
        plain, id="z", kind="fact", metadata={"k": 1}, similarity=-1.0, recency=1.0, score=0.0
    )
    first, second = recollection(plain), Recollection([other], rows_ranked=9, vectors_scored=9)
    assert first.as_context() == second.as_context()
    assert first.digest() == second.digest()


def test_the_digest_is_that_of_the_bytes() -> None:
    found = recollection(recalled("Grüße 😀"))
    assert found.digest() == hashlib.sha256(found.as_context().encode("utf-8")).hexdigest()


SCRIPT = """
import sys
from datetime import UTC, datetime
from prism_memory.recollection import Recalled, Recollection

def memory(id, content, hour, **metadata):
    when = datetime(2024, 3, 1, hour, tzinfo=UTC)
    rest = ("user", "\\u0130pek", "observation", when, metadata, 0.5, 0.0, float(hour))
    return Recalled(id, content, *rest)

memories = [memory("b", "I\\u0131 \\xdf\\u2028", 23), memory("a", "x\\ny", 1, k=1)]
sys.stdout.write(Recollection(memories, counter=None).digest())
"""


def test_the_digest_is_the_same_in_every_process_locale_and_time_zone() -> None:
    def digest(**variables: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, **variables},
            cwd=Path(__file__).parent.parent,
            capture_output=True,
            check=True,
            text=True,
        )
        return done.stdout

    found = {
        digest(PYTHONHASHSEED="0", TZ="UTC", LANG="C", LC_ALL="C", PYTHONUTF8="0"),
        digest(PYTHONHASHSEED="1", TZ="Pacific/Kiritimati", LANG="tr_TR.UTF-8"),
        digest(PYTHONHASHSEED="99", TZ="America/Los_Angeles", LC_ALL="de_DE.ISO-8859-1"),
    }
    assert len(found) == 1
    assert len(found.pop()) == 64


def test_tokens_are_counted_once_and_only_when_asked_for() -> None:
    counter = Characters()
    found = Recollection(ALL, counter=counter)  # type: ignore[arg-type]
    assert counter.calls == 0
    assert found.estimated_tokens == found.estimated_tokens == len(found.as_context())
    assert counter.calls == 1


def test_without_a_counter_there_is_no_estimate() -> None:
    with pytest.raises(InvalidArgument, match="counter=None"):
        _ = recollection(FIRST).estimated_tokens


def test_a_later_memory_leaves_the_earlier_text_a_prefix() -> None:
    after = recollection(*ALL).as_context()
    assert after.startswith(recollection(FIRST, SECOND).as_context() + "\n- ")
