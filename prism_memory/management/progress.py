"""A progress bar for people: drawn on a terminal, and nowhere else."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

    from django.core.management.base import OutputWrapper

__all__ = ["Progress"]

SECONDS_BETWEEN_DRAWINGS = 0.1
BAR = 24


class Progress:
    """Counts what is done, and shows it on one line that is gone when the work is.

    Counting works on any stream, so that callers report ``done``, piped or not. Something may be
    added or vanish while the work goes on: ``total`` is what was there at the start.
    """

    def __init__(
        self, stream: OutputWrapper, label: str, total: int, *, shown: bool = True
    ) -> None:
        self.stream = stream
        self.label = label
        self.total = total
        self.done = 0
        self._shown = shown and stream.isatty()
        self._drawn = 0  # characters of the line on the terminal
        self._drawn_at = 0.0

    def __enter__(self) -> Self:
        self._draw()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.hide()

    def advance(self, count: int) -> None:
        """Count ``count`` more as done."""
        self.done += count
        finished = self.done >= self.total
        if finished or time.monotonic() - self._drawn_at >= SECONDS_BETWEEN_DRAWINGS:
            self._draw()

    def hide(self) -> None:
        """Clear the line, so that something else can be written; ``advance`` draws it again."""
        if self._drawn:
            self._write(f"\r{' ' * self._drawn}\r")
            self._drawn = 0

    def _draw(self) -> None:
        if not self._shown:
            return
        # A line as wide as the terminal would wrap, and each drawing would be left standing.
        line = self._line()[: shutil.get_terminal_size().columns - 1]
        self._write(f"\r{line.ljust(self._drawn)}")
        self._drawn = len(line)
        self._drawn_at = time.monotonic()

    def _line(self) -> str:
        share = min(1.0, self.done / self.total) if self.total else 1.0
        bar = ("#" * int(share * BAR)).ljust(BAR, ".")
        return f"{self.label} [{bar}] {share:4.0%}  {self.done:,} of {self.total:,}"

    def _write(self, text: str) -> None:
        # Neither in the colour of errors nor with a new line: that is what stderr would add.
        self.stream.write(text, str, "")
        self.stream.flush()
