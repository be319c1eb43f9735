"""A token budget: never exceeded, never wasted on account of one long memory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_memory.budget import fit
from prism_memory.exceptions import InvalidArgument
from prism_memory.recollection import HEADER, Recalled, Recollection
from prism_memory.tokens import TiktokenCounter
from tests.recalled import MARCH
from tests.recalled import recalled as a_memory


class Counter:
    """A token counter made of a function; it notes every text it is given."""

    def __init__(self, function: Callable[[str], int]) -> None:
        self.function = function
        self.seen: list[str] = []

    def count(self, text: str) -> int:
        self.seen.append(text)
        return self.function(text)

    def check(self, setting: str) -> list[Any]:
        return []


def recalled(content: str, position: int = 0) -> Recalled:
    """A memory; ``position`` is its rank. The best ranked one happened last."""
    when, score = MARCH - timedelta(minutes=position), 1 - position / 1000
    return a_memory(content, id=f"{position:04}", occurred_at=when, score=score)


def whole(memories: list[Recalled]) -> str:
    return Recollection(memories, counter=None).as_context()


def characters() -> Counter:
    return Counter(len)


def test_one_that_does_not_fit_is_skipped_and_a_later_one_taken() -> None:
    short, long, last = recalled("short", 0), recalled("long " * 100, 1), recalled("last", 2)
    budget = len(whole([short, last]))
    assert fit([short, long, last], budget=budget, counter=characters()) == [short, last]
    assert fit([long, short, last], budget=budget, counter=characters()) == [short, last]


def test_the_budget_is_used_to_the_last_token_and_not_beyond() -> None:
    memories = [recalled("one", 0), recalled("two", 1)]
    exact = len(whole(memories))
    assert fit(memories, budget=exact, counter=characters()) == memories
    assert fit(memories, budget=exact - 1, counter=characters()) == memories[:1]


def test_rank_decides_and_not_length_or_time() -> None:
    best, second = recalled("a longer text, but the best", 0), recalled("tiny", 1)
    budget = len(whole([best]))
    assert fit([best, second], budget=budget, counter=characters()) == [best]


@pytest.mark.parametrize("budget", [0, 1, len(HEADER), len(whole([recalled("first")])) - 1])
def test_a_budget_below_header_and_first_memory_gives_nothing(budget: int) -> None:
    assert fit([recalled("first"), recalled("first", 1)], budget=budget, counter=characters()) == []


def test_nothing_ranked_gives_nothing() -> None:
    assert fit([], budget=1000, counter=characters()) == []


def test_the_limit_caps_what_is_taken_and_not_what_is_looked_at() -> None:
    long, *short = [recalled("long " * 100, 0), *(recalled(f"text {n}", n) for n in range(1, 6))]
    found = fit([long, *short], budget=400, counter=characters(), limit=2)
    assert found == short[:2]
    assert fit(short, budget=4000, counter=characters(), limit=None) == short
    assert fit(short, budget=4000, counter=characters(), limit=0) == []


@pytest.mark.parametrize("value", [-1, True, 1.5, "8", float("nan")])
@pytest.mark.parametrize("argument", ["budget", "limit"])
def test_budget_and_limit_are_whole_numbers(argument: str, value: object) -> None:
    arguments: dict[str, Any] = {"budget": 100, "limit": 1, argument: value}
    with pytest.raises(InvalidArgument, match=argument) as raised:
        fit([], counter=characters(), **arguments)
    assert repr(value) in str(raised.value)


def test_every_entry_is_counted_once_and_the_whole_once() -> None:
    counter = characters()
    memories = [recalled(f"text {n}", n) for n in range(50)]
    assert len(fit(memories, budget=100_000, counter=counter)) == 50
    assert len(counter.seen) == 52
    assert sum(len(text) > 300 for text in counter.seen) == 1
    assert len(set(counter.seen)) == 52


def test_the_separators_count() -> None:
    """A counter that sees line breaks only: the sum must know of them without the recount."""
    memories = [recalled(f"text {n}", n) for n in range(5)]
    counter = Counter(lambda text: text.count("\n"))
    assert fit(memories, budget=3, counter=counter) == memories[:3]
    assert len(counter.seen) == 7


def test_the_lowest_ranked_go_when_the_whole_counts_more_than_its_parts() -> None:
    memories = [recalled(f"text {n}", n) for n in range(6)]
    counter = Counter(lambda text: len(text) + 500 * (text.count("\n- ") > 3))
    found = fit(memories, budget=600, counter=counter)
    assert found == memories[:3]  # the best, which are the latest


def nasty(text: str) -> int:
    """Superadditive and far from proportional: joining two texts costs more than both."""
    return len(text) + (len(text) // 40) ** 2


ADDITIVE = {"characters": len, "lines": lambda text: text.count("\n")}
COUNTERS = {
    **ADDITIVE,
    "words": lambda text: len(text.split()),
    "bytes in fours": lambda text: len(text.encode()) // 4,
    "superadditive": nasty,
    "everything or nothing": lambda text: 10_000 if text.count("\n- ") > 1 else 0,
}
contents = st.lists(
    st.one_of(
        st.text(max_size=60),
        st.text(alphabet="\n \\.- é日本", max_size=60),
        st.integers(0, 60).map(lambda size: "word " * size),
    ),
    max_size=12,
)


@pytest.mark.parametrize("name", COUNTERS)
@given(contents, st.integers(0, 1500), st.one_of(st.none(), st.integers(0, 6)))
@settings(deadline=None)
def test_never_exceeded(name: str, texts: list[str], budget: int, limit: int | None) -> None:
    counter = Counter(COUNTERS[name])
    memories = [recalled(text, position) for position, text in enumerate(texts)]
    found = fit(memories, budget=budget, counter=counter, limit=limit)
    assert not found or counter.count(whole(found)) <= budget
    assert found == [memory for memory in memories if memory in found]
    assert limit is None or len(found) <= limit
    assert Recollection(found, counter=counter).estimated_tokens <= budget  # type: ignore[arg-type]


@given(contents, st.integers(0, 400))
@settings(deadline=None, max_examples=150)
def test_never_exceeded_with_a_real_tokenizer(texts: list[str], budget: int) -> None:
    counter = TiktokenCounter(encoding="o200k_base")
    memories = [recalled(text, position) for position, text in enumerate(texts)]
    found = fit(memories, budget=budget, counter=counter)
    assert not found or counter.count(whole(found)) <= budget


@pytest.mark.parametrize("name", ADDITIVE)
@given(contents, st.integers(1, 1500))
@settings(deadline=None)
def test_what_was_skipped_did_not_fit_at_its_turn(name: str, texts: list[str], budget: int) -> None:
    counter = Counter(ADDITIVE[name])
    memories = [recalled(text, position) for position, text in enumerate(texts)]
    found = fit(memories, budget=budget, counter=counter)
    better: list[Recalled] = []
    for memory in memories:
        if memory in found:
            better.append(memory)
        else:
            assert counter.count(whole([*better, memory])) > budget
