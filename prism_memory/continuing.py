"""What a recollection that continues another knows of it: keys and digests, signed, and no text.

The value is ``django.core.signing``'s of a JSON list: a version, the digests of collection and
space, the SHA-256 of the context, the sizes of its blocks, and the keys of its members, 32 bytes
each, as base64. That is about 350 bytes and 57 a memory. It can't be read back into text, it is no
secret, and it can't be made or changed without the project's ``SECRET_KEY``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from django.core.signing import BadSignature, Signer

from .context import render_context
from .digests import digest
from .exceptions import InvalidContinuation
from .recollection import Recalled, Recollection

__all__ = ["Previous"]

VERSION: Final = 1
SALT: Final = "prism_memory.continuing"
KEY_BYTES: Final = 32


@dataclass(frozen=True)
class Previous:
    """The recollection to be continued. ``blocks``: the keys of its members, as they stand."""

    collection: str  # these three are digests
    space: str
    context: str
    blocks: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, continuing: object, collection: str) -> Previous | None:
        """Read what a caller gave to be continued; None where there is nothing yet.

        Raises InvalidContinuation for what is neither a Recollection that ``recall()`` made nor
        what its ``to_token()`` returned, and for one of another collection.
        """
        if isinstance(continuing, Recollection):
            previous = cls._of_recollection(continuing)
        elif isinstance(continuing, str):
            previous = cls._of_token(continuing) if continuing else None
        else:
            raise InvalidContinuation(
                f"continuing is of type {type(continuing).__name__}. Pass a Recollection, what its "
                'to_token() returned, or "" for the first.'
            )
        if previous and previous.collection != digest("collection", collection):
            raise InvalidContinuation(
                "continuing is a recollection of another owner or scope. Keep one for each."
            )
        return previous

    @classmethod
    def _of_recollection(cls, given: Recollection) -> Previous | None:
        if not given:
            return None
        if given.origin is None:
            raise InvalidContinuation("continuing is a Recollection that recall() did not make.")
        collection, space = given.origin
        return cls(
            digest("collection", collection),
            digest("space", space),
            given.digest(),
            tuple(
                tuple(digest("record", collection, memory.id) for memory in block)
                for block in given.blocks
            ),
        )

    @classmethod
    def _of_token(cls, token: str) -> Previous:
        try:
            value = Signer(salt=SALT).unsign_object(token)
            version, collection, space, context, sizes, packed = value
            keys = iter(_unpacked(packed))
            blocks = tuple(tuple(islice(keys, size)) for size in sizes)
        except (BadSignature, ValueError, TypeError, binascii.Error):
            version = None
        if version != VERSION:
            raise InvalidContinuation(
                f"continuing is a str of {len(token)} characters that no to_token() of this "
                'project returned. Start afresh with "".'
            )
        return cls(collection, space, context, blocks)

    def token(self) -> str:
        """The signed value that ``of()`` reads."""
        keys = b"".join(bytes.fromhex(key) for key in self.keys)
        packed = base64.b64encode(keys).decode("ascii")
        sizes = [len(block) for block in self.blocks]
        value = [VERSION, self.collection, self.space, self.context, sizes, packed]
        return Signer(salt=SALT).sign_object(value)

    @property
    def keys(self) -> list[str]:
        """The keys of all members, in the order of the text."""
        return [key for block in self.blocks for key in block]

    def restored(self, members: Mapping[str, Recalled]) -> list[list[Recalled]]:
        """The blocks, made of the members by key, all of which are there."""
        return [[members[key] for key in block] for block in self.blocks]

    def problem(self, members: Mapping[str, Recalled], space: str) -> str:
        """Why this can't be continued with these members, by key, or ""."""
        if self.space != digest("space", space):
            return "space"
        if any(key not in members for key in self.keys):
            return "forgotten"
        blocks: Sequence[Iterable[Recalled]] = self.restored(members)
        text = render_context(*([memory.entry.render() for memory in block] for block in blocks))
        return "" if _sha256(text) == self.context else "changed"


def _unpacked(packed: Any) -> Iterator[str]:
    keys = base64.b64decode(packed, validate=True)
    return (keys[at : at + KEY_BYTES].hex() for at in range(0, len(keys), KEY_BYTES))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
