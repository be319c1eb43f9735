"""What the commands share: where the rows are, what is said, and how rows are erased."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, router

from ..models import Memory
from .progress import Progress
from .words import counted

if TYPE_CHECKING:
    from ..managers import MemoryQuerySet

__all__ = ["FAILED", "MISUSED", "MemoryCommand"]

#: Exit codes besides 0: something is wrong here, or with how the command was called.
FAILED, MISUSED = 1, 2

#: Rows that one transaction erases, so that none holds its locks for long.
BATCH = 1_000


class MemoryCommand(BaseCommand):
    """A command over the tables of memories. What was said never appears in its output."""

    verbosity = 1

    def execute(self, *args: Any, **options: Any) -> str | None:
        self.verbosity = options["verbosity"]
        return super().execute(*args, **options)

    def say(self, text: str) -> None:
        """Write a line, unless ``--verbosity 0`` asks for errors only."""
        if self.verbosity:
            self.stdout.write(text)

    def warn(self, text: str) -> None:
        """Write a line that says what the result leaves out."""
        self.stderr.write(text, self.style.WARNING)

    def progress(self, label: str, total: int) -> Progress:
        """Return a progress bar on stderr, so that stdout can be piped meanwhile."""
        return Progress(self.stderr, label, total, shown=bool(self.verbosity))

    def memories(self) -> MemoryQuerySet:
        """All rows, as the database that is written to has them: a replica may lag behind."""
        return Memory.objects.using(router.db_for_write(Memory))

    def erase(self, memories: MemoryQuerySet, bar: Progress) -> None:
        """Erase rows, batch by batch, and count on ``bar`` what went."""
        try:
            for count in _erased(memories):
                bar.advance(count)
        except DatabaseError as error:
            bar.hide()
            raise CommandError(
                f"The database failed with {type(error).__name__} after "
                f"{counted(bar.done)} had been erased. Run this again for the rest.",
                returncode=FAILED,
            ) from error

    def confirm(self, question: str) -> None:
        """Go on only if somebody types "yes"; where nobody can be asked, don't."""
        try:
            answer = input(f"{question}\nType 'yes' to go on: ")
        except (EOFError, KeyboardInterrupt):
            answer = ""
        if answer != "yes":
            raise CommandError("Nothing was forgotten.", returncode=FAILED)

    def warn_of_other_records(self) -> None:
        """Say so when the default store keeps records that these tables don't show."""
        from ..conf import settings
        from ..stores import TableStore, default_store

        store = default_store()
        if not isinstance(store, TableStore):
            self.warn(
                f"The store {settings().store!r} ({type(store).__qualname__}) keeps its own "
                "records. This command sees only those in Prism Memory's tables."
            )


def _erased(memories: MemoryQuerySet) -> Iterator[int]:
    """Erase rows in the order of their keys, one transaction a batch; yield how many went."""
    keys = memories.order_by("pk").values_list("pk", flat=True)
    batch = list(keys[:BATCH])
    while batch:
        # The condition is asked again: a row may have been written anew since it was listed.
        yield memories.filter(pk__range=(batch[0], batch[-1])).erase()
        batch = list(keys.filter(pk__gt=batch[-1])[:BATCH])
