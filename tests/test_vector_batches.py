"""Vectors that an embedder gives by the batch are those that they are one by one."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_memory.exceptions import InvalidVector
from prism_memory.vectors import Vector

NAN, INF = float("nan"), float("inf")
FLOATS = st.floats() | st.sampled_from([0.0, 1.0, -0.0, 5e-324])
NO_FLOATS = (
    *(True, False, 1, 0, 2**70, "0.5", b"0.5", None, Decimal("0.5"), 1j, [0.5]),
    *(np.True_, np.float32(0.1), np.int8(1), np.float64(0.1), np.complex128(1), np.array(0.5)),
    *(np.datetime64(1, "s"), np.timedelta64(1, "s"), np.longdouble(0.5)),
)
VALUES = FLOATS | st.sampled_from(NO_FLOATS)


def one_by_one(rows):
    vectors = []
    for row in rows:
        try:
            vectors.append(Vector.of(row))
        except InvalidVector:
            return None
    return vectors


@given(st.lists(st.lists(FLOATS, min_size=2, max_size=3), max_size=4))
def test_lists_of_floats(rows):
    taken = Vector.many(rows)
    assert taken is None or taken == one_by_one(rows)


@given(st.lists(st.lists(VALUES, min_size=2, max_size=2), min_size=1, max_size=3))
def test_what_is_no_number_is_looked_at_closely(rows):
    taken = Vector.many(rows)
    assert taken is None or taken == one_by_one(rows)


@pytest.mark.parametrize(
    "rows",
    [
        [[0.5, -0.25], [1.0, 0.0], [0.1, -0.0]],
        [[np.float64(0.5), 0.25]],
        np.array([[0.5, 0.25], [1.0, 0.0]]),
        np.array([[0.1, 0.2]], np.float32),
        np.array([[0.1, 0.2], [0.3, 0.4]], np.float16)[::-1],
    ],
)
def test_are_taken_at_once(rows):
    taken = Vector.many(rows)
    assert taken == one_by_one(rows)
    assert all(not vector.values.flags.writeable for vector in taken)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [[]],
        [[1.0], [1.0, 2.0]],
        [[0.5, True]],
        [[0.5, False]],
        [[0.5, np.True_]],
        [["0.5", "0.25"]],
        [[0.5, "0.25"]],
        [[0.5, None]],
        [[0.5, NAN]],
        [[0.5, INF]],
        [[0.0, -0.0]],
        [[1e200, 1e200]],
        [[0.5, 1j]],
        [[[0.5]]],
        [(0.5, 0.25)],
        ["ab"],
        "ab",
        None,
        np.array([[True, False]]),
        np.array([0.5, 0.25]),
    ],
    ids=repr,
)
def test_or_one_by_one(rows):
    assert Vector.many(rows) is None


def test_share_no_memory_with_what_the_embedder_goes_on_using():
    answer = np.array([[0.5, 0.25]])
    [vector] = Vector.many(answer)
    answer[:] = 7
    assert vector == Vector.of([0.5, 0.25])
