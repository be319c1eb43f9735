"""How the demo speaks: headings, wrapped text and small tables, 80 columns wide."""

from __future__ import annotations

import pprint
import textwrap
from typing import Any

from django.core.management.base import OutputWrapper
from django.core.management.color import Style

__all__ = ["Narrator", "bar", "counted", "wrapped"]

WIDTH = 79
INDENT = "   "
BAR = 24


class Narrator:
    """Writes to a command's stdout, in the colours of a style."""

    def __init__(self, stdout: OutputWrapper, style: Style) -> None:
        self.stdout = stdout
        self.style = style
        self._headings = 0

    def title(self, text: str) -> None:
        """Write what this is about."""
        self.line(self.style.MIGRATE_LABEL(text))

    def heading(self, text: str) -> None:
        """Begin the next numbered part."""
        self._headings += 1
        self.line()
        self.line(self.style.MIGRATE_HEADING(f"{self._headings}. {text}"))

    def say(self, text: str) -> None:
        """Write a paragraph."""
        for line in wrapped(text, WIDTH - len(INDENT)):
            self.line(INDENT + line)

    def question(self, text: str) -> None:
        """Write what is asked, after an empty line."""
        self.line()
        for line in wrapped(f"“{text}”", WIDTH - len(INDENT), most=2):
            self.line(INDENT + self.style.WARNING(line))

    def header(self, cells: str) -> None:
        """Write the first line of a table."""
        self.line(INDENT + self.style.MIGRATE_LABEL(cells))

    def row(self, cells: str, text: str = "", *, most: int = 2) -> None:
        """Write cells that are laid out already, and beside them a text, cut after some lines."""
        beside = wrapped(text, WIDTH - len(INDENT) - len(cells), most) or [""]
        self.line(f"{INDENT}{cells}{beside[0]}".rstrip())
        for line in beside[1:]:
            self.line(INDENT + " " * len(cells) + line)

    def code(self, text: str) -> None:
        """Write something to type."""
        for line in text.splitlines():
            self.line(f"{INDENT}{INDENT}{line}")

    def exactly(self, value: Any) -> None:
        """Write a value as Python source, its long strings in parts: nothing is left out."""
        for line in pprint.pformat(value, width=WIDTH - 1, sort_dicts=False).splitlines():
            self.line(f" {line}")

    def good(self, text: str) -> None:
        """Write a result to be glad of."""
        self.line(INDENT + self.style.SUCCESS(text))

    def bad(self, text: str) -> None:
        """Write a result that should not be."""
        self.line(INDENT + self.style.ERROR(text))

    def line(self, text: str = "") -> None:
        """Write a line."""
        # Where the encoding knows fewer characters, question marks are better than a traceback.
        encoding = getattr(self.stdout, "encoding", None) or "utf-8"
        self.stdout.write(text.encode(encoding, "replace").decode(encoding))


def bar(done: int, total: int) -> str:
    """How far something has come."""
    filled = BAR * done // total if total else BAR
    return f"[{'#' * filled}{'.' * (BAR - filled)}] {done:,} of {total:,}"


def wrapped(text: str, width: int, most: int | None = None) -> list[str]:
    """``text`` in lines of ``width``, without characters that a terminal would obey."""
    shown = "".join(each if each.isprintable() else " " for each in text)
    return textwrap.wrap(shown, width, max_lines=most, placeholder=" …", break_on_hyphens=False)


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 message``, ``2 messages``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
