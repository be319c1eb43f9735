"""Vectors as they are stored, and the one way in which they are compared.

A stored vector is a run of IEEE 754 doubles, explicitly little-endian, eight bytes a dimension, and
comes back with exactly the bits that went in. Vectors are equal when their bytes are: 0.0 and -0.0
are different bytes.

A cosine depends on its two vectors alone. A matrix-vector product does not have that property (BLAS
adds in another order when a row has other neighbours, and the last bit changes), so each row is
multiplied element by element, then summed by numpy's pairwise summation of one contiguous row.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence, Sized
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from .exceptions import InvalidVector

__all__ = ["Vector", "cosines"]

DOUBLE = np.dtype("<f8")
FLOATS = {float, np.float64}
BOOLS = {bool, np.bool_}

# Within these, sums of squares lose nothing to underflow and products of two roots are ordinary
# numbers. Embeddings lie in the middle, at about 1.
LOWEST, HIGHEST = 2.0**-400, 2.0**400

# Doubles multiplied at a time (2 MiB): more than that is memory traffic without any gain.
BLOCK = 1 << 15


class Vector:
    """One embedding: a direction, with at least one dimension. Immutable and hashable."""

    __slots__ = ("_values",)

    def __init__(self, values: NDArray[np.float64]) -> None:
        """Wrap a one-dimensional float64 array without any check. Use :meth:`of` instead."""
        values.flags.writeable = False
        self._values = values

    @classmethod
    def of(cls, values: Any) -> Vector:
        """Convert a sequence or array of numbers, numeric strings or decimals: the write path.

        A Vector is returned as it is. Raises InvalidVector, whose message holds no values, unless
        the result is one row of finite doubles whose sum of squares is neither zero nor infinite.
        """
        if isinstance(values, cls):
            return values
        return cls(_usable(_converted(values)))

    @classmethod
    def many(cls, rows: Any) -> list[Vector] | None:
        """What :meth:`of` makes of every row, ten times as fast; None where it has to look closer.

        That is, unless the rows are a matrix, or lists as long as each other, of floats that are
        finite and have a direction.
        """
        listed = type(rows) is list and all(type(row) is list for row in rows)
        if not listed and type(rows) is not np.ndarray:
            return None
        try:
            found = np.array(rows)  # of the type that all values share
        except (TypeError, ValueError, OverflowError):
            return None
        if found.dtype.kind != "f" or found.ndim != 2:
            return None
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            matrix = found.astype(DOUBLE, copy=False)
            squares = (matrix * matrix).sum(axis=1)
        if not ((squares > 0) & (squares < np.inf)).all():
            return None
        if listed and _hold_bools(rows, matrix):
            return None
        return [cls(row) for row in matrix]

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Vector:
        """Read what :meth:`to_bytes` wrote: the read path, which checks only the length.

        Raises InvalidVector unless that is a positive multiple of eight.
        """
        data = memoryview(data).tobytes()  # neither bytes(8) nor an alias of what may change
        if not data or len(data) % DOUBLE.itemsize:
            raise InvalidVector(f"A vector has 8 bytes a dimension; {len(data)} bytes are none.")
        return cls(np.frombuffer(data, dtype=DOUBLE))

    @classmethod
    def unpack(cls, text: str | bytes) -> Vector:
        """Read what :meth:`pack` wrote (base64 of RFC 4648), with all the checks of :meth:`of`."""
        try:
            data = base64.b64decode(text, validate=True)
        except (ValueError, TypeError):
            message = f"A packed vector is the base64 of its doubles, not {_described(text)}."
            raise InvalidVector(message) from None
        return cls(_usable(cls.from_bytes(data).values))

    def to_bytes(self) -> bytes:
        """The little-endian doubles: eight bytes a dimension."""
        return self._values.tobytes()

    def pack(self) -> str:
        """The base64 of :meth:`to_bytes`: the interchange form."""
        return base64.b64encode(self.to_bytes()).decode("ascii")

    @property
    def values(self) -> NDArray[np.float64]:
        """The doubles as an array of shape (dimensions,), which can't be written to."""
        return self._values

    @property
    def norm(self) -> float:
        """The Euclidean length."""
        return math.hypot(*self._values.tolist())

    def cosine(self, other: Vector) -> float:
        """The cosine of the angle to another vector, symmetric: see :func:`cosines`."""
        return float(cosines(self._values, other.values[np.newaxis])[0])

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vector) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    def __repr__(self) -> str:
        return f"<Vector of {len(self)} dimensions>"


def cosines(query: NDArray[np.float64], matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """The cosine of `query`, of shape (d,), to each row of `matrix`, of shape (n, d): shape (n,).

    Each lies in [-1, 1] and is the same, to the last bit, whatever the other rows are; a vector's
    cosine to itself may miss 1.0 in the last bit. A row without a direction (all zeros, or not
    finite), which :meth:`Vector.of` would have refused, gives 0.0 rather than the NaN that upsets
    every sort. Raises InvalidVector when the widths differ.
    """
    query = np.ascontiguousarray(query, dtype=np.float64)
    matrix = np.asarray(matrix, dtype=np.float64)
    if query.ndim != 1 or matrix.ndim != 2 or matrix.shape[1] != len(query):
        raise InvalidVector(f"No cosines between shapes {query.shape} and {matrix.shape}.")
    scaled_query, query_squares = _scaled(query[np.newaxis])
    result = np.empty(len(matrix))
    step = max(1, BLOCK // max(1, len(query)))
    for start in range(0, len(matrix), step):
        rows, squares = _scaled(matrix[start : start + step])
        with np.errstate(divide="ignore", invalid="ignore"):
            norms = np.sqrt(squares) * np.sqrt(query_squares)
            found = (rows * scaled_query).sum(axis=1) / norms
        result[start : start + step] = np.where(np.isfinite(found), found, 0.0)
    return np.clip(result, -1.0, 1.0, out=result)


def _scaled(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows that are safe to multiply, with their sums of squares.

    Rows whose squares run out of LOWEST to HIGHEST are divided by a power of two, which changes
    the exponent and rounds nothing. Other memory layouts would be summed in another order.
    """
    matrix = np.ascontiguousarray(matrix)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        squares = (matrix * matrix).sum(axis=1)
        extreme = ~((squares >= LOWEST) & (squares <= HIGHEST))
        if extreme.any():
            rows = matrix[extreme]
            exponents = np.frexp(np.abs(rows).max(axis=1, keepdims=True, initial=0.0))[1]
            matrix = matrix.copy()
            matrix[extreme] = rows = np.ldexp(rows, -exponents)
            squares[extreme] = (rows * rows).sum(axis=1)
    return matrix, squares


def _hold_bools(rows: Sequence[Sequence[Any]], matrix: NDArray[np.float64]) -> bool:
    """Whether numpy took a truth value for a number, which only a 0 or a 1 can have been."""
    suspects = np.flatnonzero(((matrix == 0) | (matrix == 1)).any(axis=1)).tolist()
    return any(not BOOLS.isdisjoint(map(type, rows[at])) for at in suspects)


def _converted(values: Any) -> NDArray[np.float64]:
    """A fresh one-dimensional array of little-endian doubles, not yet known to be finite."""
    if hasattr(values, "__array__"):  # numpy's, and the tensors of most other libraries
        values = np.asarray(values)
    is_text = isinstance(values, (str, bytes, bytearray, memoryview))
    if is_text or not isinstance(values, (Sequence, np.ndarray)):
        raise InvalidVector(f"A vector is a sequence of numbers, not {_described(values)}.")
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise InvalidVector(f"A vector is one row of numbers; this has shape {values.shape}.")
        if values.dtype.kind in "fiu":
            with np.errstate(over="ignore"):  # of a longer type; infinity is refused later
                return np.array(values, dtype=DOUBLE)
    if set(map(type, values)) <= FLOATS:  # what most embedders give: no need to look at each
        return np.array(values, dtype=DOUBLE)
    return np.array([_number(value, at) for at, value in enumerate(values)], dtype=DOUBLE)


def _number(value: Any, position: int) -> float:
    """A double, or InvalidVector: also for what float() takes though it is no number."""
    kind = getattr(getattr(value, "dtype", None), "kind", "f")
    slip = isinstance(value, (bool, bytes, bytearray)) or kind in "bcmMS"
    try:
        if not (slip or getattr(value, "ndim", None)):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass  # their messages quote the value
    raise InvalidVector(f"Position {position} of a vector holds {_described(value)}, no number.")


def _usable(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """The array itself, or InvalidVector unless its values are finite and have a direction."""
    if not len(array):
        raise InvalidVector("A vector needs at least one number; this one is empty.")
    finite = np.isfinite(array)
    if not finite.all():
        raise InvalidVector(f"Position {finite.argmin()} of {len(array)} is not a finite number.")
    with np.errstate(over="ignore", under="ignore"):
        square = (array * array).sum()
    if not 0.0 < square < np.inf:
        raise InvalidVector(f"The squares of the {len(array)} numbers add up to {square}.")
    return array


def _described(value: object) -> str:
    """What kind of thing it is, and how long: never what it holds."""
    measurable = isinstance(value, Sized) and getattr(value, "ndim", None) != 0
    return type(value).__name__ + (f" of length {len(cast(Sized, value))}" if measurable else "")
