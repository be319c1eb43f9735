"""Every exception that Prism Memory raises on purpose.

Messages name the setting or argument, what was wrong with it and what to do. Content, metadata
values and queries are described by type and length, never quoted: error messages end up in logs.
"""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

__all__ = [
    "ConfigurationError",
    "EmbeddingInvalid",
    "EmbeddingUnavailable",
    "EncodingUnavailable",
    "IndexNotReady",
    "IndexUnavailable",
    "InvalidArgument",
    "InvalidContinuation",
    "InvalidFilter",
    "InvalidIdentifier",
    "InvalidMessage",
    "InvalidMetadata",
    "InvalidOwner",
    "InvalidTimestamp",
    "InvalidVector",
    "PrismMemoryError",
    "SpaceMismatch",
    "TextRefused",
    "UnknownStore",
    "VolatileStore",
]


class PrismMemoryError(Exception):
    """The base of all exceptions of this app."""


class InvalidArgument(PrismMemoryError, ValueError):
    """An argument of a call is unusable. Nothing was written."""


class InvalidOwner(InvalidArgument):
    """The owner or scope is not one that memories can belong to."""


class InvalidContinuation(InvalidArgument):
    """What is to be continued is no recollection of this owner and scope, or was tampered with."""


class InvalidMessage(InvalidArgument):
    """A message, or its text, can't be remembered."""


class InvalidMetadata(InvalidArgument):
    """Metadata is not a flat map of strings to scalars, or uses a reserved key."""


class InvalidTimestamp(InvalidArgument):
    """A point in time is missing, out of range, or not one."""


class InvalidVector(InvalidArgument):
    """A vector is empty, not numeric, not finite, or has no direction."""


class InvalidFilter(InvalidArgument):
    """A filter asks for something other than equality on scalars."""


class InvalidIdentifier(InvalidArgument):
    """Record ids, collection names or space names are not usable as such."""


class ConfigurationError(PrismMemoryError, ImproperlyConfigured):
    """A setting is wrong; the message names it, its value and the fix.

    ``id`` is that of the system check which says the same.
    """

    def __init__(self, message: str, *, hint: str = "", id: str = "prism_memory.E006") -> None:
        super().__init__(f"{message} {hint}".rstrip())
        self.message = message
        self.hint = hint
        self.id = id


class UnknownStore(ConfigurationError, KeyError):
    """No store is configured under this alias."""

    # KeyError shows the repr of its argument, which would put the message in quotes.
    __str__ = Exception.__str__


class VolatileStore(ConfigurationError):
    """The store may lose what it holds, and ``REQUIRE_DURABLE`` forbids that."""


class EncodingUnavailable(ConfigurationError):
    """The tokenizer's encoding is not on this machine."""


class EmbeddingUnavailable(PrismMemoryError):
    """The embedding provider did not deliver. What is stored stays stored, and pending."""


class EmbeddingInvalid(EmbeddingUnavailable):
    """The embedding provider delivered something other than one usable vector a text."""


class IndexUnavailable(PrismMemoryError):
    """The server of a store's index did not answer. What is stored stays stored."""


class IndexNotReady(PrismMemoryError):
    """A store's index was never compared with the tables, so a search might miss memories."""


class TextRefused(PrismMemoryError):
    """An embedder's word that some text of a call is at fault, and not the provider.

    ``kind`` says why in a few words, such as "too long", and never quotes. The app then finds out
    which text it is, notes that on its record, and embeds the others.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(f"The provider refused a text: {kind}.")
        self.kind = kind


class SpaceMismatch(PrismMemoryError):
    """Vectors of different coordinate systems would be compared."""
