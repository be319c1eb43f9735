from __future__ import annotations

import array
import base64
import math
import pickle
import re
import struct
import warnings
from collections import deque
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_memory.exceptions import InvalidVector
from prism_memory.vectors import Vector, cosines

DOUBLES = st.floats(min_value=-1e100, max_value=1e100)
USABLE = st.lists(DOUBLES, min_size=1, max_size=40).filter(
    lambda values: math.fsum(value * value for value in values) > 0
)


@pytest.mark.parametrize(
    ("values", "packed"),
    [
        ([0.5, -0.25, 0.125], "AAAAAAAA4D8AAAAAAADQvwAAAAAAAMA/"),
        ([0.1, 0.2, 0.3], "mpmZmZmZuT+amZmZmZnJPzMzMzMzM9M/"),
    ],
)
def test_packs_little_endian_doubles(values, packed):
    assert Vector.of(values).pack() == packed
    assert Vector.unpack(packed) == Vector.of(values)
    assert list(Vector.unpack(packed).values) == values


@given(USABLE)
def test_every_double_comes_back_bit_for_bit(values):
    vector = Vector.of(values)
    data = struct.pack(f"<{len(values)}d", *values)
    assert vector.to_bytes() == data
    assert Vector.from_bytes(data).to_bytes() == data
    assert Vector.unpack(vector.pack()).to_bytes() == data
    assert pickle.loads(pickle.dumps(vector)).to_bytes() == data
    assert vector.values.tolist() == values
    assert len(vector) == len(values)


def test_negative_zero_is_kept_and_is_another_vector():
    positive, negative = Vector.of([1.0, 0.0]), Vector.of([1.0, -0.0])
    assert math.copysign(1, negative.values[1]) == -1
    assert positive != negative
    assert positive == Vector.of([1, 0])
    assert len({positive, negative, Vector.of((1, 0))}) == 2


@pytest.mark.parametrize(
    "given_values",
    [
        [1, 2, -3],
        (1.0, 2.0, -3.0),
        ["1", " 2.0 ", "-3e0"],
        [Decimal(1), Fraction(2), Decimal("-3.0")],
        [np.float32(1), np.int8(2), np.array(-3.0)],
        deque([1, 2, -3]),
        array.array("f", [1, 2, -3]),
        np.array([1, 2, -3], dtype=np.float16),
        np.array([1, 2, -3], dtype=">f4"),
        np.array([1, 2, -3], dtype=np.longdouble),
        np.array([1, 2, -3], dtype=np.int64),
        np.array([1, 2, -3], dtype=object),
        np.array(["1", "2", "-3"]),
        np.array([1.0, 0.0, 2.0, 0.0, -3.0])[::2],
    ],
    ids=lambda values: type(values).__name__,
)
def test_converts_numbers_of_every_kind(given_values):
    assert Vector.of(given_values) == Vector.of([1.0, 2.0, -3.0])


def test_converts_without_a_detour_through_shorter_floats():
    assert Vector.of([Decimal("0.1")]).values[0] == 0.1
    assert Vector.of([2**53 - 1]).values[0] == 2.0**53 - 1
    assert Vector.of(["0.1"]).values[0] != np.float32(0.1)


@pytest.mark.parametrize(
    "unusable",
    [
        None,
        1.0,
        "0.5",
        b"01234567",
        bytearray(8),
        memoryview(b"01234567"),
        {"secret": 1.0},
        {1.0},
        iter([1.0]),
        [],
        np.array([]),
        np.array(1.0),
        [[1.0, 2.0]],
        [np.array([1.0])],
        np.ones((2, 2)),
        ["secret"],
        [b"1"],
        [None],
        [True, 1.0],
        [np.True_],
        np.array([True]),
        [1j],
        [np.complex128(1)],
        np.array([1j]),
        [np.timedelta64(1, "D")],
        [np.array("secret")],
        [math.nan],
        ["nan"],
        [1.0, math.inf],
        [-math.inf],
        [10**400],
        [Decimal("1e400")],
        [Decimal("sNaN")],
        np.array([np.nan], dtype=np.float32),
        [0, -0.0],
        [0.0] * 256,
        [1e-300, 1e300],
        [1e200],
        [1e154, 1e154],
        [1e-300, 1e-300],
        [5e-324],
    ],
    ids=lambda value: re.sub(r" at 0x\w+", "", repr(value)),
)
def test_refuses_what_has_no_direction(unusable):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidVector) as caught:
            Vector.of(unusable)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_message_tells_position_type_and_length_but_no_value():
    with pytest.raises(InvalidVector, match=r"^Position 2 .*str of length 6") as caught:
        Vector.of([0.123456, 0.5, "s3cret"])
    assert "s3cret" not in str(caught.value)
    assert "0.123456" not in str(caught.value)
    with pytest.raises(InvalidVector, match="Position 1 of 3"):
        Vector.of([1.0, math.nan, 1.0])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "?",
        "AAAA",
        "AAAAAAAA4D8",  # the padding is missing
        " AAAAAAAA4D8=",
        "é",
        base64.b64encode(struct.pack("<2d", 1, math.nan)).decode(),
        base64.b64encode(struct.pack("<2d", 0, 0)).decode(),
        None,
        7,
    ],
)
def test_unpack_refuses_other_text(text):
    with pytest.raises(InvalidVector) as caught:
        Vector.unpack(text)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_from_bytes_takes_what_drivers_return(kind):
    data = struct.pack("<3d", 0.1, -0.0, 3)
    vector = Vector.from_bytes(kind(data))
    assert vector.to_bytes() == data
    assert vector.values.dtype == np.float64


def test_from_bytes_does_not_share_memory_with_its_argument():
    data = bytearray(struct.pack("<2d", 1, 2))
    vector = Vector.from_bytes(data)
    data[:] = bytes(16)
    assert vector == Vector.of([1, 2])


@pytest.mark.parametrize("data", [b"", b"1234567", b"123456789"])
def test_from_bytes_refuses_other_lengths(data):
    with pytest.raises(InvalidVector, match=f"{len(data)} bytes"):
        Vector.from_bytes(data)


def test_from_bytes_does_not_take_a_number_for_a_length():
    with pytest.raises(TypeError):
        Vector.from_bytes(8)  # type: ignore[arg-type]


def test_a_vector_does_not_change():
    given_values = np.array([1.0, 2.0])
    vector = Vector.of(given_values)
    given_values[0] = 9.0
    assert vector == Vector.of([1, 2])
    for made in (vector, Vector.from_bytes(vector.to_bytes())):
        with pytest.raises(ValueError, match="read-only"):
            made.values[0] = 9.0


def test_a_repr_shows_no_values():
    assert repr(Vector.of([0.1234, 5])) == "<Vector of 2 dimensions>"
    assert Vector.of([1]) != [1.0]


@pytest.mark.parametrize("factor", [1.0, 1e150, 1e-160, 2.0**500, 2.0**-530])
def test_norms_and_cosines_survive_extreme_magnitudes(factor):
    vector = Vector.of([3 * factor, 4 * factor])
    assert vector.norm == pytest.approx(5 * factor)
    for other in ([1, 0], [1e-160, 0], [1e150, 0], [1e-161, 0]):
        assert vector.cosine(Vector.of(other)) == pytest.approx(0.6, rel=1e-3)
    assert vector.cosine(vector) == pytest.approx(1.0)


@given(USABLE, st.integers(-300, 300), st.data())
def test_a_cosine_does_not_depend_on_a_power_of_two(values, exponent, data):
    other = data.draw(st.lists(st.floats(-1, 1), min_size=len(values), max_size=len(values)))
    query = np.array([1.0, *other])
    row = np.array([1.0, *np.array(values) / max(map(abs, values))])
    row[abs(row) < 1e-50] = 0.0  # no subnormal numbers in between
    expected = cosines(query, row[np.newaxis])[0]
    assert cosines(query, np.ldexp(row, exponent)[np.newaxis])[0] == expected


@pytest.mark.parametrize(
    "width", [1, 2, 3, 7, 8, 9, 127, 128, 129, 255, 256, 384, 1000, 1536, 1600]
)
def test_a_cosine_depends_on_its_two_vectors_alone(width):
    rng = np.random.default_rng(width)
    matrix = rng.standard_normal((211, width))
    matrix[5] *= 1e-170  # a row that is scaled next to rows that are not
    query = rng.standard_normal(width)
    alone = np.array([cosines(query, row[np.newaxis].copy())[0] for row in matrix])
    assert cosines(query, matrix).tobytes() == alone.tobytes()
    for count in (2, 3, 8, 50, 210):
        assert cosines(query, matrix[1 : count + 1]).tobytes() == alone[1 : count + 1].tobytes()
    assert cosines(query, np.asfortranarray(matrix)).tobytes() == alone.tobytes()
    assert cosines(query, matrix[::-3]).tobytes() == alone[::-3].tobytes()
    wide = np.repeat(matrix, 2, axis=1)
    assert cosines(np.repeat(query, 2)[::2], wide[:, ::2]).tobytes() == alone.tobytes()
    for at in (0, 5, 210):
        vectors = Vector.of(query), Vector.of(matrix[at] * 1e40)
        assert vectors[0].cosine(vectors[1]) == vectors[1].cosine(vectors[0])
    assert Vector.of(query).cosine(Vector.of(matrix[7])) == alone[7]


def test_blocks_leave_no_seam():
    rng = np.random.default_rng(1)
    matrix, query = rng.standard_normal((2500, 300)), rng.standard_normal(300)
    expected = [cosines(query, row[np.newaxis])[0] for row in matrix]
    assert cosines(query, matrix).tolist() == expected


def test_cosines_are_exact_to_a_few_last_digits():
    rng = np.random.default_rng(2)
    for _ in range(50):
        one, other = rng.standard_normal(100), rng.standard_normal(100)
        dot = math.sumprod(one, other) if hasattr(math, "sumprod") else math.fsum(one * other)
        expected = dot / (math.hypot(*one) * math.hypot(*other))
        assert cosines(one, other[np.newaxis])[0] == pytest.approx(expected, abs=1e-15)


def test_cosines_stay_within_one():
    rng = np.random.default_rng(3)
    matrix = rng.standard_normal((2000, 3))
    for row in matrix[:500]:
        found = cosines(row, np.stack([row, -row, 3 * row]))
        assert (abs(found) <= 1.0).all()
        assert found == pytest.approx([1, -1, 1])


def test_a_row_without_direction_is_no_nan():
    matrix = np.array([[0.0, 0.0], [np.nan, 1], [np.inf, 1], [1.0, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cosines(np.array([1.0, 1.0]), matrix).tolist() == [0, 0, 0, pytest.approx(1)]
    assert cosines(np.zeros(2), matrix).tolist() == [0, 0, 0, 0]


def test_no_rows_give_no_cosines_and_other_widths_raise():
    assert cosines(np.ones(3), np.empty((0, 3))).shape == (0,)
    with pytest.raises(InvalidVector, match=r"\(1,\)"):
        cosines(np.ones(1), np.ones((2, 3)))
    with pytest.raises(InvalidVector):
        Vector.of([1, 2]).cosine(Vector.of([1, 2, 3]))
