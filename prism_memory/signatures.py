"""Signatures: 256 bits of direction for every vector, to rank without reading the vector.

Two vectors' signatures differ in about ``angle / pi`` of their bits. A signature is the signs of
`bits` projections on nearly orthonormal rows, which a subsampled randomised Hadamard transform of
two rounds gives (Ailon and Chazelle 2009, https://doi.org/10.1137/060673096; Tropp 2011,
https://arxiv.org/abs/1011.1595). Nothing random and no trained table is stored: signs and rows come
from SHA-256 in whole numbers, hence are the same for ever, on every machine and in every language.

The derivation, for vectors of `d` dimensions and signatures of `bits` bits:

1. **Width.** ``P`` is the smallest power of two that is at least ``max(d, 64)``. A vector is padded
   with zeros to width P. Blocks 0, 1, ... give ``min(P, bits still missing)`` projections each.
2. **Stream** of block b: the concatenation, over i = 0, 1, 2, ..., of SHA-256 of the ASCII text
   ``prism-memory:0:{d}:{bits}:{b}:{i}``, with decimal numbers. The ``0`` is the seed.
3. **Flips.** P/8 bytes of the stream give P bits, the least significant bit of a byte first; a set
   bit negates that coordinate. The next P/8 bytes are the flips of the second round.
4. **Rows.** A block that gives all P projections gives rows 0 to P-1, in that order. Otherwise a
   partial Fisher-Yates shuffle of 0, ..., P-1 chooses: for k = 0, 1, ... swap entries k and
   k + (u mod (P - k)), then give entry k. Each u is the next four bytes, little-endian, of those
   below the largest multiple of P - k that 2**32 holds (others are skipped: no modulo bias).
5. **Transform.** Flip, H, flip, H. H is the unscaled Walsh-Hadamard transform in natural order by
   butterflies of stride 1, 2, 4, ..., P/2: of each pair, the lower index takes a + b, the upper
   a - b. The order of the additions is part of the definition, for it decides the rounding.
6. **Projections** are the chosen rows, divided by P (exact), which makes the rows orthonormal.
   **Signature:** bit i of it is 1 when projection i is >= 0, that of -0.0 included, and 0 when it
   is negative. Bit i is bit ``i % 8`` of byte ``i // 8``, counted from the least significant.

`tests/golden/signatures.json` pins the result. Vectors of fewer than 64 dimensions are padded to 64
for the sake of diversity: two rounds of width 2 would know the quadrants and no other direction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BITS",
    "bit_weights",
    "estimates",
    "hamming",
    "project",
    "signature",
    "signatures",
    "signs",
]

BITS = 256
SEED = 0
NARROWEST = 64
#: Added to the bits' correlations. The rows that are to be told apart are near each other, agree in
#: most bits and correlate less in the others; this ranked best on real text.
RIDGE = 0.3

# Doubles transformed at a time (256 KiB): with its copies that stays in the second-level cache, and
# takes half the time that 2 MiB take.
BLOCK = 1 << 15

# SIGNS[byte, i] is +1.0 where bit i of the byte is set, otherwise -1.0.
BYTES = np.arange(256, dtype=np.uint8)[:, np.newaxis]
SIGNS = np.where(np.unpackbits(BYTES, axis=1, bitorder="little"), np.float64(1), np.float64(-1))

# For each block, the flips (+1.0 or -1.0) of the two rounds and the chosen rows.
Block: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp]]


def signature(vector: NDArray[np.float64], bits: int = BITS) -> bytes:
    """The signature of one vector of shape (d,): ``bits // 8`` bytes."""
    return signatures(np.asarray(vector)[np.newaxis], bits).tobytes()


def signatures(matrix: NDArray[np.float64], bits: int = BITS) -> NDArray[np.uint8]:
    """The signatures of the rows of `matrix`, of shape (n, d): shape (n, bits // 8).

    A row's signature does not depend on the other rows. Raises ValueError unless `bits` is a
    positive multiple of 64 and the matrix has two axes and at least one column.
    """
    packed = []
    for blocks in _projections(matrix, bits):
        signs = [(transformed >= 0)[:, chosen] for transformed, chosen in blocks]
        packed.append(np.packbits(np.concatenate(signs, axis=1), axis=1, bitorder="little"))
    return np.concatenate(packed)


def project(vector: NDArray[np.float64], bits: int = BITS) -> NDArray[np.float64]:
    """The projections, of shape (bits,), of a vector of shape (d,) on its signature's rows."""
    vector = np.asarray(vector)
    [blocks] = _projections(vector[np.newaxis], bits)
    found = [transformed[0, chosen] for transformed, chosen in blocks]
    return np.concatenate(found) / _width(len(vector))


def signs(projections: NDArray[np.float64]) -> bytes:
    """The signature that has these projections, if none of them was rounded to -0.0."""
    return np.packbits(projections >= 0, bitorder="little").tobytes()


def bit_weights(projections: NDArray[np.float64], dimensions: int) -> NDArray[np.float64]:
    """What each bit of a signature counts for in its nearness to a vector: shape (bits,).

    These are the vector's projections, of shape (bits,). But where vectors are padded, rows are a
    little oblique, and their bits partly say the same: they correlate by 2 / pi times the arcsine
    of the rows' cosine (J. H. Van Vleck and D. Middleton 1966,
    https://doi.org/10.1109/PROC.1966.4567), and ridge regression weighs them by the inverse. With
    more bits than dimensions that would rank far worse.
    """
    decorrelation = _decorrelation(dimensions, len(projections))
    return projections if decorrelation is None else decorrelation @ projections


def hamming(query_signature: bytes, signatures: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """How many bits of each signature, of shape (n, bits // 8), differ: shape (n,)."""
    query = np.frombuffer(query_signature, dtype=np.uint64)
    words = np.ascontiguousarray(signatures).view(np.uint64)
    distances = np.zeros(len(words), dtype=np.uint16)
    # Word by word rather than row by row: five times as fast, since rows of four words are short.
    for word, theirs in zip(query, words.T, strict=True):
        distances += np.bitwise_count(theirs ^ word)
    return distances


def estimates(weights: NDArray[np.float64], signatures: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The dot product of a query's weights with each signature's bits as +1 and -1: shape (n,).

    This ranks better than Hamming distance, as the query keeps its magnitudes (the asymmetric
    estimate of Dong, Charikar and Li 2008, https://doi.org/10.1145/1390334.1390358). The sum of
    each possible byte is looked up, and bytes are added from first to last in every row.
    """
    sums = np.zeros((len(weights) // 8, 256))
    # Bit by bit: a sum over so short an axis takes ten times as long.
    for of_bit, signs in zip(weights.reshape(-1, 8).T, SIGNS.T, strict=True):
        sums += of_bit[:, np.newaxis] * signs
    result = np.zeros(len(signatures))
    for of_byte, column in zip(sums, np.ascontiguousarray(signatures.T), strict=True):
        result += of_byte.take(column)
    return result


def _projections(
    matrix: NDArray[np.float64], bits: int
) -> Iterator[list[tuple[NDArray[np.float64], NDArray[np.intp]]]]:
    """Some rows' transforms at a time: for each block all of them, and the columns to choose.

    They are before the division by the width. Signs are taken of these, for the division could
    round a smallest negative number to -0.0.
    """
    matrix = np.asarray(matrix, dtype=np.float64)
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise ValueError(f"Signatures need rows of at least one number, not shape {matrix.shape}.")
    count, dimensions = matrix.shape
    plan, width = _plan(dimensions, bits), _width(dimensions)
    step = max(1, BLOCK // width)
    for start in range(0, max(count, 1), step):
        rows = matrix[start : start + step]
        padded = np.zeros((len(rows), width))
        padded[:, :dimensions] = rows
        yield [
            (_hadamard(_hadamard(padded * first) * second), chosen)
            for first, second, chosen in plan
        ]


def _hadamard(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The unscaled Walsh-Hadamard transform of each row, whose width is a power of two.

    Each pass combines neighbours and moves sums to the front and differences to the back, which
    rotates the bits of the index by one. After all passes the order is natural again, and the
    additions were those of the butterflies of stride 1, 2, 4, ...; numpy gets long loops instead of
    short ones (M. C. Pease 1968, https://doi.org/10.1145/321450.321457).
    """
    width = rows.shape[1]
    for _ in range(width.bit_length() - 1):
        result = np.empty_like(rows)
        np.add(rows[:, 0::2], rows[:, 1::2], out=result[:, : width // 2])
        np.subtract(rows[:, 0::2], rows[:, 1::2], out=result[:, width // 2 :])
        rows = result
    return rows


def _width(dimensions: int) -> int:
    return max(NARROWEST, 1 << (dimensions - 1).bit_length())


@lru_cache(maxsize=32, typed=True)  # 64.0 is refused, also when 64 was asked for before
def _plan(dimensions: int, bits: int) -> tuple[Block, ...]:
    """The blocks that the derivation above gives."""
    if isinstance(bits, bool) or not isinstance(bits, int) or bits <= 0 or bits % 64:
        raise ValueError(f"A signature's bits must be a positive multiple of 64, not {bits!r}.")
    blocks: list[Block] = []
    width, missing = _width(dimensions), bits
    while missing:
        stream = _stream(f"prism-memory:{SEED}:{dimensions}:{bits}:{len(blocks)}")
        flips = [-SIGNS[[next(stream) for _ in range(width // 8)]].ravel() for _ in range(2)]
        rows = list(range(width))
        if missing < width:
            for k in range(missing):
                swap = k + _below(width - k, stream)
                rows[k], rows[swap] = rows[swap], rows[k]
            rows = rows[:missing]
        blocks.append((flips[0], flips[1], np.array(rows, dtype=np.intp)))
        missing -= len(rows)
    return tuple(blocks)


@lru_cache(maxsize=32)
def _decorrelation(dimensions: int, bits: int) -> NDArray[np.float64] | None:
    """What turns projections into weights, (bits, bits); None where they are the weights."""
    width = _width(dimensions)
    if dimensions == width or dimensions <= bits:
        return None
    [(_, flips, chosen)] = _plan(dimensions, bits)
    # Row r, column c of H, flip, H is entry r ^ c of the flips' transform.
    transformed = _hadamard(flips[np.newaxis])[0]
    rows = transformed[chosen[:, np.newaxis] ^ np.arange(dimensions)]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    correlations = np.arcsin(np.clip(rows @ rows.T, -1, 1)) * (2 / np.pi)
    return np.linalg.inv(correlations + RIDGE * np.eye(bits))


def _stream(prefix: str) -> Iterator[int]:
    """Endless bytes of SHA-256 in counter mode."""
    counter = 0
    while True:
        yield from hashlib.sha256(f"{prefix}:{counter}".encode("ascii")).digest()
        counter += 1


def _below(limit: int, stream: Iterator[int]) -> int:
    """A whole number from 0 to limit - 1, all equally likely."""
    while True:
        drawn = int.from_bytes(bytes(next(stream) for _ in range(4)), "little")
        if drawn < 2**32 - 2**32 % limit:
            return drawn % limit
