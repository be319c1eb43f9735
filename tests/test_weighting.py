"""Weighting: shares that sum to 1, a half-life, and arguments that make no sense."""

from __future__ import annotations

import math
import struct
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_memory.exceptions import InvalidArgument
from prism_memory.weighting import Weighting

NOW = datetime(2024, 3, 8, 12, tzinfo=UTC)
WEEK = 604_800


def test_defaults_are_relevance_alone_and_a_week() -> None:
    weighting = Weighting()
    assert (weighting.relevance, weighting.recency, weighting.half_life) == (1.0, 0.0, WEEK)


def test_only_the_ratio_matters() -> None:
    assert Weighting(relevance=3, recency=1) == Weighting(relevance=0.75, recency=0.25)
    assert Weighting(relevance=0, recency=5).recency == 1.0


@given(
    st.floats(min_value=0, allow_infinity=False, allow_nan=False),
    st.floats(min_value=0, allow_infinity=False, allow_nan=False),
)
def test_any_weights_sum_to_one(relevance: float, recency: float) -> None:
    if not relevance and not recency:
        return
    weighting = Weighting(relevance, recency)
    assert math.isclose(weighting.relevance + weighting.recency, 1.0)
    assert (weighting.relevance >= weighting.recency) == (relevance >= recency)


@pytest.mark.parametrize("argument", ["relevance", "recency", "half_life"])
@pytest.mark.parametrize(
    "value", [-1, -0.001, math.nan, math.inf, True, False, "1", None, 10**400, 1j]
)
def test_unusable_numbers_are_refused_by_name_and_value(argument: str, value: object) -> None:
    with pytest.raises(InvalidArgument) as raised:
        Weighting(**{argument: value})  # type: ignore[arg-type]
    assert str(raised.value).startswith(f"{argument}={value!r} ")


@pytest.mark.parametrize("half_life", [0, 0.0, -0.0])
def test_a_half_life_of_zero_is_refused(half_life: float) -> None:
    with pytest.raises(InvalidArgument, match=f"half_life={half_life!r} "):
        Weighting(half_life=half_life)


@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
def test_two_weights_of_zero_are_refused(zero: float) -> None:
    with pytest.raises(InvalidArgument, match=f"relevance={zero!r}, recency={zero!r}"):
        Weighting(relevance=zero, recency=zero)


def test_recency_halves_with_every_half_life() -> None:
    weighting = Weighting(half_life=3600)
    found = [weighting.recency_of(NOW - timedelta(hours=hours), NOW) for hours in range(4)]
    assert found == [1.0, 0.5, 0.25, 0.125]


def test_recency_uses_the_whole_age_and_not_its_seconds_part() -> None:
    week = timedelta(days=7)
    assert Weighting().recency_of(NOW - week, NOW) == 0.5
    assert Weighting(half_life=0.5).recency_of(NOW - timedelta(milliseconds=500), NOW) == 0.5


def test_the_future_is_as_recent_as_now() -> None:
    assert Weighting().recency_of(NOW + timedelta(days=400), NOW) == 1.0


@pytest.mark.parametrize("half_life", [5e-324, 1e-9, 1e308])
def test_extreme_half_lives_do_not_overflow(half_life: float) -> None:
    oldest = datetime(1, 1, 1, tzinfo=UTC)
    assert 0.0 <= Weighting(half_life=half_life).recency_of(oldest, NOW) <= 1.0


@given(st.floats(-1, 1), st.floats(0, 1), st.floats(min_value=1e-300, max_value=1e300))
def test_relevance_alone_is_the_similarity_bit_for_bit(
    similarity: float, recency: float, relevance: float
) -> None:
    score = Weighting(relevance=relevance).score(similarity, recency)
    assert struct.pack("<d", score) == struct.pack("<d", similarity)


def test_minus_zero_keeps_its_sign() -> None:
    assert math.copysign(1, Weighting().score(-0.0, 1.0)) == -1


def test_the_score_is_the_weighted_mean() -> None:
    assert Weighting(relevance=3, recency=1).score(0.4, 0.8) == pytest.approx(0.5)
    assert Weighting(relevance=0, recency=2).score(0.9, 0.25) == 0.25


@given(st.floats(0, 10), st.floats(0.1, 10), st.floats(-1, 1), st.floats(0, 1))
def test_the_score_lies_between_its_parts(
    relevance: float, recency: float, similarity: float, recent: float
) -> None:
    score = Weighting(relevance, recency).score(similarity, recent)
    slack = 1e-12
    assert min(similarity, recent) - slack <= score <= max(similarity, recent) + slack
