"""Reports what is stored but not yet recallable, and embeds it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError
from django.db.models import Count, Min
from django.utils import timezone

from ... import backends
from ...conf import BackendEntry, settings
from ...exceptions import IndexUnavailable
from ...queues import queue
from ...stores import indexes
from ..arguments import whole_number
from ..backlog import embed_backlog
from ..base import FAILED, MemoryCommand
from ..words import age, counted, shown, whose

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

    from ...managers import MemoryQuerySet

__all__ = ["Command"]

#: Seconds between looks at what a worker is telling an index.
LOOK = 0.25


class Command(MemoryCommand):
    help = (
        "Reports the memories that wait for their vector, by collection, oldest first. "
        "Exits with 1 when embedding failed or more wait than --fail-over allows."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--embed", action="store_true", help="First embed everything that waits."
        )
        parser.add_argument(
            "--fail-over",
            type=whole_number,
            metavar="N",
            help="Exit with 1 when more than N memories wait (after embedding, with --embed).",
        )
        parser.add_argument(
            "--limit",
            type=whole_number,
            metavar="N",
            default=20,
            help="List at most N collections (default: 20).",
        )

    def handle(self, *, embed: bool, fail_over: int | None, limit: int, **options: Any) -> None:
        self.warn_of_other_records()
        failure = (self.embed() or self.settle()) if embed else ""
        waiting = self.report(limit)
        self.report_indexes()
        if failure:
            raise CommandError(f"{failure} Still waiting: {counted(waiting)}.", returncode=FAILED)
        if fail_over is not None and waiting > fail_over:
            raise CommandError(
                f"Waiting: {counted(waiting)}, more than {fail_over:,}.", returncode=FAILED
            )

    def waiting(self) -> MemoryQuerySet:
        return self.memories().live().unembedded(backends.embedder().space)

    def embed(self) -> str:
        """Embed what waits; return what went wrong, or ""."""
        waiting = self.waiting()
        with self.progress("Embedding", waiting.count()) as bar:
            failure = embed_backlog(waiting, bar.advance)
        self.say(f"Embedded {counted(bar.done)}.")
        return failure

    def settle(self) -> str:
        """Tell the indexes what they have not heard of; return what went wrong, or ""."""
        try:
            while not indexes.settle():
                time.sleep(LOOK)  # a worker is telling the rest
        except IndexUnavailable as error:
            return str(error)
        return ""

    def report_indexes(self) -> None:
        for store in indexes.kept():
            if any(untold := store.untold()):
                self.say(
                    f"The index of {shown(repr(store.alias))} has still to add "
                    f"{untold.to_add:,} and to remove {untold.to_remove:,}."
                )

    def report(self, limit: int) -> int:
        """Write what waits where, and return how much it is."""
        waiting = self.waiting()
        total = waiting.aggregate(
            memories=Count("pk"),
            collections=Count("collection_key", distinct=True),
            oldest=Min("created_at"),
        )
        count, collections = total["memories"], total["collections"]
        space = shown(backends.embedder().space)
        if count:
            self.say(
                f"Waiting for a vector in the space {space}: {counted(count)} in "
                f"{counted(collections, 'collection', 'collections')}, "
                f"the oldest for {age(timezone.now() - total['oldest'])}."
            )
            self.list_collections(waiting, limit)
        else:
            self.say(f"Nothing waits for a vector in the space {space}.")
        if collections > limit:
            self.say(f"  and {counted(collections - limit, 'collection', 'collections')} more")
        self.list_failures(waiting)
        chosen = settings().queue
        name = chosen.backend if isinstance(chosen, BackendEntry) else chosen
        self.say(f'Embedding runs {queue().decide()}. PRISM_MEMORY["QUEUE"] is {name!r}.')
        return int(count)

    def list_collections(self, waiting: MemoryQuerySet, limit: int) -> None:
        collections = waiting.values(
            "collection_key", "collection", "owner_model", "owner", "scope"
        ).annotate(memories=Count("pk"), oldest=Min("created_at"))
        now = timezone.now()
        for row in collections.order_by("oldest", "collection_key")[:limit]:
            owner = whose(row["owner_model"], row["owner"])
            name = f"{owner} in {shown(row['scope'])}" if owner else shown(row["collection"])
            self.say(f"  {row['memories']:>7,}  {age(now - row['oldest']):<18}  {name}")

    def list_failures(self, waiting: MemoryQuerySet) -> None:
        """Say how many texts can't be embedded, by kind of failure, and when one is tried again."""
        failing = waiting.exclude(failure="")
        kinds = failing.order_by("failure").values_list("failure").annotate(Count("pk"))
        told = ", ".join(f"{count:,} × {shown(kind)}" for kind, count in kinds)
        if told:
            wait = failing.aggregate(next=Min("not_before"))["next"] - timezone.now()
            due = f"in {age(wait)}" if wait.total_seconds() > 0 else "now"
            self.say(f"Can't be embedded: {told}. The next try is due {due}.")
