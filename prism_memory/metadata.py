"""Metadata: a flat map of strings to scalars, in one form whatever the database."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, TypeAlias

from .exceptions import InvalidMetadata
from .texts import unstorable

__all__ = [
    "MAX_BYTES",
    "RESERVED_KEYS",
    "Scalar",
    "as_scalar",
    "decode",
    "encode",
    "normalise_metadata",
    "refuse_reserved",
    "shown_key",
]

Scalar: TypeAlias = str | int | float | bool | None

RESERVED_KEYS: Final = frozenset({"kind", "role"})
MAX_BYTES: Final = 65_536
# As far as floats reach. Without a limit, Python itself refuses to print or parse some integers,
# and where that begins is a setting of the process.
MAX_INTEGER_BITS: Final = 1_024


def normalise_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Scalar] | None:
    """Return a copy of ``metadata`` that holds plain scalars only.

    None stays None ("leave what is stored"), an empty map an empty map ("replace with nothing").
    Members of an enumeration become their values. Types are kept: True, 1, 1.0 and "1" stay apart.

    Raises:
        InvalidMetadata: It is no mapping, a key is no string, a value is no scalar or not finite,
            a text can't be stored on every database, or the whole is over ``MAX_BYTES`` as JSON.
    """
    if metadata is None:
        return None
    if not isinstance(metadata, Mapping):
        raise InvalidMetadata(
            f"metadata is of type {type(metadata).__qualname__}; pass a dict of strings to "
            "scalars, or None. Of a Provenance, to_metadata() makes one."
        )
    result: dict[str, Scalar] = {}
    for key, value in metadata.items():
        if not isinstance(key, str):
            raise InvalidMetadata(f"metadata has a key of type {type(key).__qualname__}; use str.")
        if reason := unstorable(key):
            raise InvalidMetadata(f"the metadata key {shown_key(key)} has {reason}.")
        try:
            scalar = as_scalar(value)
        except ValueError as error:
            raise InvalidMetadata(f"metadata under {shown_key(key)} is {error}") from None
        if isinstance(scalar, str) and (reason := unstorable(scalar)):
            raise InvalidMetadata(
                f"metadata under {shown_key(key)}, a str of {len(scalar)} characters, has {reason}."
            )
        result[key[:]] = scalar
    if (size := len(encode(result).encode())) > MAX_BYTES:
        raise InvalidMetadata(
            f"metadata takes {size:,} bytes as JSON; at most {MAX_BYTES:,} are stored. Keep long "
            "texts elsewhere, and a reference to them here."
        )
    return result


def refuse_reserved(metadata: Mapping[str, Any] | None) -> None:
    """Refuse the keys that the app sets itself, since a filter reads both by these names.

    Raises:
        InvalidMetadata: A key is one of ``RESERVED_KEYS``.
    """
    if taken := sorted(RESERVED_KEYS.intersection(metadata or ())):
        raise InvalidMetadata(
            f"metadata has the reserved key {taken[0]!r}; choose another name. The app sets "
            f"{' and '.join(sorted(RESERVED_KEYS))} itself."
        )


def as_scalar(value: object) -> Scalar:
    """Return a plain str, int, float, bool or None; of an enumeration's member, its value.

    Raises:
        ValueError: It is none of these. The message describes it and never quotes it, and reads
            on from "… is ".
    """
    while isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value[:]  # a plain str of a subclass, such as SafeString
    if isinstance(value, int):
        if value.bit_length() > MAX_INTEGER_BITS:
            raise ValueError(f"an int of over {MAX_INTEGER_BITS:,} bits; make it a string.")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("a float that is not finite; leave it out, or use None.")
        return float(value)
    raise ValueError(
        f"of type {type(value).__qualname__}; only str, int, float, bool and None are possible."
    )


def shown_key(key: str) -> str:
    """Return a key as an error shows it: quoted, escaped and cut to 40 characters."""
    shown = repr(key[:40])
    return shown if len(shown) <= 40 else f"{shown[:39]}…"


def encode(metadata: Mapping[str, Scalar]) -> str:
    """Return the JSON text that is stored: compact, in the order of the keys as given.

    Raises:
        ValueError: A value is not finite; normalised metadata has none.
    """
    return json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def decode(text: str) -> dict[str, Scalar]:
    """Return the metadata of a stored JSON text."""
    if text == "{}":  # what most have
        return {}
    result: dict[str, Scalar] = json.loads(text)
    return result
