"""What a queue is to this app: something that may take embedding off the caller's hands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.core.checks import CheckMessage

__all__ = ["Decision", "InlineQueue", "Queue"]


@dataclass(frozen=True, slots=True)
class Decision:
    """Where embedding runs now (a queue's name, or None for inline), and why."""

    queue: str | None
    reason: str

    def __str__(self) -> str:
        where = "inline, after the commit" if self.queue is None else f"on the queue {self.queue!r}"
        return f"{where} ({self.reason})"


class Queue:
    """Takes jobs. Nothing here raises into a caller, whose rows are committed, or holds it up."""

    def check(self, setting: str) -> list[CheckMessage]:
        """Return system check messages, without I/O; ``setting`` names the entry."""
        return []

    def decide(self) -> Decision:
        """Return where embedding runs now, and why. May ask a server, briefly."""
        raise NotImplementedError

    def enqueue(self, alias: str, collection: str) -> bool:
        """Have what waits in a collection embedded elsewhere; False when it is to be done inline.

        True does not promise that a job was taken: rows whose job was lost stay pending, and the
        next job, ``embed_pending()`` or ``memory_pending --embed`` finds them.
        """
        raise NotImplementedError

    def interrupts(self) -> tuple[type[BaseException], ...]:
        """Exceptions by which the queue ends a job; they must not be taken for a provider's."""
        return ()


class InlineQueue(Queue):
    """No queue: embedding runs in the caller's process, after the commit."""

    def decide(self) -> Decision:
        return Decision(None, 'QUEUE is "inline"')

    def enqueue(self, alias: str, collection: str) -> bool:
        return False
