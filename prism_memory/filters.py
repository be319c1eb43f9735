"""Filters: equality on typed scalars, decided here and not by a database's JSON comparison.

Stores keep a number (a token) for every attribute of a record, so that an index finds candidates.
A token is 64 bits of a digest: it never misses a match, and ``Filter.matches()`` has the last word.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from .exceptions import InvalidFilter
from .metadata import Scalar, as_scalar, shown_key
from .texts import unencodable

__all__ = ["AttributeTokens", "Filter", "attribute_tokens", "attributes"]

# A type's letter and a text: equal if and only if a filter takes the two scalars as equal.
Canonical: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Filter:
    """What attributes a record must have: for every key one of the values, by type.

    Filters that ask for the same are equal. False as a condition means that nothing is filtered.
    """

    conditions: tuple[tuple[str, frozenset[Canonical]], ...] = ()

    @classmethod
    def of(cls, filter: Mapping[str, Any] | Filter | None) -> Filter:
        """Return the filter that a caller's map describes; None and an empty map filter nothing.

        A value is a scalar, or a list, tuple or set of which any matches; an empty one matches
        nothing. Any string is a key, and none is a lookup. Numbers are one type: 1 equals 1.0, but
        neither True nor "1". None matches a value that is there and None.

        Raises:
            InvalidFilter: It is no mapping, a key is no string, a value is nested, not finite or
                of another type, or a text can't be encoded as UTF-8.
        """
        if isinstance(filter, Filter):
            return filter
        if filter is None:
            return cls()
        if not isinstance(filter, Mapping):
            raise InvalidFilter(
                f"filter is of type {type(filter).__qualname__}; pass a dict of strings to "
                "scalars or lists of scalars, or None."
            )
        conditions: list[tuple[str, frozenset[Canonical]]] = []
        for key, value in filter.items():
            if not isinstance(key, str):
                raise InvalidFilter(f"filter has a key of type {type(key).__qualname__}; use str.")
            _refuse_unencodable(key, f"the filter's key {shown_key(key)}")
            many = isinstance(value, list | tuple | set | frozenset)
            values = [_wanted(item, key) for item in (value if many else (value,))]
            conditions.append((key[:], frozenset(values)))
        return cls(tuple(sorted(conditions, key=lambda condition: condition[0])))

    def __bool__(self) -> bool:
        return bool(self.conditions)

    def matches(self, attributes: Mapping[str, Scalar]) -> bool:
        """Return whether a record with these attributes passes."""
        return all(
            key in attributes and _canonical(attributes[key]) in wanted
            for key, wanted in self.conditions
        )

    def tokens(self, collection: str) -> list[frozenset[int]]:
        """Return one set a key. A match has at least one token of every set."""
        return [
            frozenset(_token(collection, key, value) for value in wanted)
            for key, wanted in self.conditions
        ]


def attributes(
    metadata: Mapping[str, Scalar], role: str, kind: str, name: str
) -> dict[str, Scalar]:
    """Return what filters see of a record: its metadata, and over it what else is set."""
    own = {"role": role, "kind": kind, "name": name}
    return {**metadata, **{key: value for key, value in own.items() if value}}


def attribute_tokens(collection: str, attributes: Mapping[str, Scalar]) -> list[int]:
    """Return a record's tokens, signed 64-bit integers, one an attribute in the order given."""
    return AttributeTokens(collection)(attributes)


class AttributeTokens:
    """The tokens of a collection's records; those of an attribute that many share, made once."""

    def __init__(self, collection: str) -> None:
        self._collection = collection
        self._made: dict[tuple[str, Canonical], int] = {}

    def __call__(self, attributes: Mapping[str, Scalar]) -> list[int]:
        return [self._token(key, _canonical(value)) for key, value in attributes.items()]

    def _token(self, key: str, value: Canonical) -> int:
        made = self._made.get((key, value))
        if made is None:
            made = self._made[key, value] = _token(self._collection, key, value)
        return made


def _wanted(value: object, key: str) -> Canonical:
    try:
        scalar = as_scalar(value)
    except ValueError as error:
        raise InvalidFilter(f"the filter's value for {shown_key(key)} is {error}") from None
    if isinstance(scalar, str):
        _refuse_unencodable(scalar, f"the filter's value for {shown_key(key)}")
    return _canonical(scalar)


def _canonical(value: Scalar) -> Canonical:
    if value is None:
        return ("null", "")
    if isinstance(value, bool):  # before int, of which it is a subclass
        return ("bool", str(value))
    if isinstance(value, int | float):
        # Exact on both sides: 2**53 + 1 is not the float 2.0**53, and −0.0 is 0.
        if isinstance(value, int) or value.is_integer():
            return ("number", format(int(value), "x"))
        return ("number", value.hex())
    return ("str", value)


def _token(collection: str, key: str, value: Canonical) -> int:
    """Return the first 8 bytes, little-endian and signed, of a digest.

    Every field goes in with its length, so that no two combinations give the same bytes.
    """
    fields = [field.encode() for field in (collection, key, *value)]
    digest = hashlib.sha256(b"".join(b"%d:%s" % (len(field), field) for field in fields))
    return int.from_bytes(digest.digest()[:8], "little", signed=True)


def _refuse_unencodable(text: str, what: str) -> None:
    # A NUL is taken: no record has it, and a digest of it is as good as any.
    if reason := unencodable(text):
        raise InvalidFilter(f"{what} has {reason}; no record can have it.")
