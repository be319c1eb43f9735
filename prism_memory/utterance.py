"""Something that was said: speaker, text, and the id that makes remembering it idempotent."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from .exceptions import InvalidMessage
from .texts import MAX_CONTENT, MAX_NAME, embedded_text, unstorable

__all__ = ["Utterance"]


@dataclass(frozen=True, slots=True)
class Utterance:
    """Something that was said, verbatim.

    ``role`` is "user", "assistant", or "" for a plain string; ``name`` is the speaker's, or "".
    """

    role: str
    name: str
    content: str

    @property
    def record_id(self) -> str:
        """The sha256 hex by which the same words of the same speaker are one memory.

        No role contains "+" or "|", and the length says where a name ends, so no two utterances
        share the text that is hashed.
        """
        return hashlib.sha256(self._preimage()).hexdigest()

    @property
    def embedded_text(self) -> str:
        """The text that semantic search sees: with the speaker's name, which helps it."""
        return embedded_text(self.name, self.content)

    def refuse_unstorable(self, where: str) -> None:
        """Refuse what some database would refuse or cut, so that the outcome is the same on all.

        ``where`` says in the error which message it is.

        Raises:
            InvalidMessage: Content or name is too long, has a NUL, or can't be encoded as UTF-8.
        """
        for what, text, limit in (
            ("content", self.content, MAX_CONTENT),
            ("name", self.name, MAX_NAME),
        ):
            if len(text) > limit:
                raise InvalidMessage(
                    f"{where} has a {what} of {len(text):,} characters; at most {limit:,} are "
                    "remembered."
                )
            if reason := unstorable(text):
                raise InvalidMessage(
                    f"{where} has {reason} in its {what} of {len(text):,} characters; not every "
                    "database stores such text."
                )

    def _preimage(self) -> bytes:
        name = f"+{len(self.name.encode())}:{self.name}" if self.name else ""
        return f"{self.role}{name}|{self.content}".encode()
