"""What every database and encoding does with a text, known before it is written."""

from __future__ import annotations

import unicodedata
from typing import Final

__all__ = ["MAX_CONTENT", "MAX_NAME", "embedded_text", "is_blank", "unencodable", "unstorable"]

#: The most characters of a text, and of a name, an id or a scope.
MAX_CONTENT: Final = 1_000_000
MAX_NAME: Final = 255

# Letters, marks and symbols that show nothing, besides the categories that is_blank() knows.
INVISIBLE: Final = frozenset(
    (
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0),
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    )
)


def embedded_text(name: str, content: str) -> str:
    """Return what semantic search sees of something said: with the speaker's name, which helps it.

    ``embedders.TEXT_FORMAT`` names this format.
    """
    return f"{name}: {content}" if name else content


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: white space, control, format and other invisible characters."""
    return all(
        unicodedata.category(character) in ("Cc", "Cf", "Zs", "Zl", "Zp")
        or ord(character) in INVISIBLE
        for character in text
    )


def unencodable(text: str) -> str:
    """Say what keeps a text from being encoded as UTF-8, without quoting it, or return ""."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"half a surrogate pair at offset {error.start}"
    return ""


def unstorable(text: str) -> str:
    """Say what keeps a text from being stored on every database, or return ""."""
    if (offset := text.find("\x00")) >= 0:  # some databases take it, PostgreSQL does not
        return f"a NUL character at offset {offset}"
    return unencodable(text)
