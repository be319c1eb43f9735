"""Where a memory's text came from, kept as flat metadata under ``source_*`` keys.

Provenance is metadata and nothing else: it is stored, filtered and returned like every other key.
This module only names the keys, so that everyone uses the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from .exceptions import InvalidMetadata
from .metadata import Scalar

__all__ = ["PREFIX", "Provenance"]

PREFIX = "source_"


TEXTS = ("id", "uri", "title", "version", "heading")
NUMBERS = ("part", "page", "offset", "length")
LENGTHS = ("offset", "length")


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The source of a text, and the place in it. Everything is optional; None means unset.

    Raises InvalidMetadata, naming the field but not its value, for a value of another type, for a
    negative `offset` or `length`, and for keys in `extra` that do not start with ``source_``.
    """

    id: str | None = None
    """What the source is called where it comes from: a path, a key, a document's id."""

    uri: str | None = None
    """Where a reader finds it."""

    title: str | None = None
    version: str | None = None

    part: int | None = None
    """Which of the passages the source was cut into, counted as the caller counts."""

    page: int | None = None
    offset: int | None = None
    """Where the text starts in the source, in characters."""

    length: int | None = None
    """How long the text is in the source, in characters."""

    heading: str | None = None
    """The heading it stands under."""

    extra: Mapping[str, Scalar] = field(default_factory=dict, repr=False)
    """Other ``source_*`` metadata, whole keys: kept, so that a round trip loses nothing.

    Here None is a value that is present, as it is in metadata. A known key belongs here only with
    a value that its own field can't hold.
    """

    def __post_init__(self) -> None:
        for name, value in self._places():
            if value is not None and not _fits(name, value):
                wanted = "a string" if name in TEXTS else "a whole number, not a bool"
                if name in LENGTHS:
                    wanted += ", and not negative"
                raise InvalidMetadata(
                    f"Provenance's {name} must be {wanted}; this is {type(value).__name__}."
                )
        for key, value in self.extra.items():
            if not isinstance(key, str) or not key.startswith(PREFIX):
                raise InvalidMetadata(f"Each key of Provenance's extra must start with {PREFIX!r}.")
            name = key.removeprefix(PREFIX)
            if name in TEXTS + NUMBERS and (value is None or _fits(name, value)):
                raise InvalidMetadata(f"Pass {key!r} as Provenance's {name}, not in its extra.")
            if not isinstance(value, (str, int, float, bool, type(None))):
                raise InvalidMetadata(
                    f"A value of Provenance's extra must be a scalar, not {type(value).__name__}."
                )
        # A copy that the caller does not hold; a frozen class takes it only this way.
        object.__setattr__(self, "extra", dict(self.extra))

    def __hash__(self) -> int:
        return hash(tuple(self._places()))

    def to_metadata(self) -> dict[str, Scalar]:
        """Metadata to remember a text with: ``{"source_id": ...}``. Unset fields are left out."""
        known = {PREFIX + name: value for name, value in self._places() if value is not None}
        return {**known, **self.extra}

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any] | None) -> Provenance:
        """What a memory's metadata says of its source. Never raises: stored is stored.

        An absent key and a null are both unset. A ``source_*`` key that is unknown, or whose value
        is of an unexpected type, is kept in `extra`. Other keys are ignored.
        """
        known: dict[str, Any] = {}
        extra: dict[str, Scalar] = {}
        for key, value in metadata.items() if isinstance(metadata, Mapping) else ():
            if not isinstance(key, str) or not key.startswith(PREFIX):
                continue
            name = key.removeprefix(PREFIX)
            if name not in TEXTS + NUMBERS:
                if isinstance(value, (str, int, float, bool, type(None))):
                    extra[key] = value
            else:
                number = _whole(value) if name in NUMBERS else value
                if _fits(name, number):
                    known[name] = number
                elif isinstance(value, (str, int, float, bool)):
                    extra[key] = value
        return cls(**known, extra=extra)

    def _places(self) -> Iterator[tuple[str, Any]]:
        """The fields that have a key of their own, with their values, in declared order."""
        return ((f.name, getattr(self, f.name)) for f in fields(self) if f.name != "extra")


def _fits(name: str, value: object) -> bool:
    """Whether a field can hold this value, which is not None."""
    if name in TEXTS:
        return isinstance(value, str)
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    return value >= 0 or name not in LENGTHS


def _whole(value: object) -> object:
    """A whole float as the int it stands for: JSON of other languages has one type of number."""
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return value
