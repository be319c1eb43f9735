"""Erases what has expired: it is no longer recalled, but still stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...conf import settings
from ..base import MemoryCommand
from ..words import counted

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

__all__ = ["Command"]


class Command(MemoryCommand):
    help = (
        "Erases for good what has expired, and what is older than RETENTION if that is set. "
        "Run it regularly."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--dry-run", action="store_true", help="Only say how many memories would be erased."
        )

    def handle(self, *, dry_run: bool, **options: Any) -> None:
        expired = self.memories().expired()
        found = expired.count()
        retention = settings().retention
        # Reading leaves these out whatever was promised when they were stored; so they go, too.
        outlived = self.memories().live().outlived(retention) if retention else None
        if outlived is not None:
            found += outlived.count()
        if dry_run:
            self.say(f"Would erase {counted(found)}.")
            return
        with self.progress("Erasing", found) as bar:
            self.erase(expired, bar)
            if outlived is not None:
                self.erase(outlived, bar)
            bar.advance(_purge_other_stores())
        self.say(f"Erased {counted(bar.done)}.")


def _purge_other_stores() -> int:
    """Have the stores that keep their own records erase what has expired there."""
    from ...stores import TableStore, stores

    others = [alias for alias in stores if not isinstance(stores.look_at(alias), TableStore)]
    return sum(stores[alias].purge_expired() for alias in others)
