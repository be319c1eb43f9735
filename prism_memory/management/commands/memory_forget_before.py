"""Forgets what happened before a date, of one owner or of all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...owners import Address, Owner
from ...stores.keys import collection_key
from ...timestamps import to_database
from ..arguments import moment, name, owner_named
from ..base import MemoryCommand
from ..paging import collection_pages
from ..words import counted, shown, whose

if TYPE_CHECKING:
    from datetime import datetime

    from django.core.management.base import CommandParser

    from ...managers import MemoryQuerySet

__all__ = ["Command"]


class Command(MemoryCommand):
    help = (
        "Forgets for good what happened strictly before DATE, whenever it was stored. "
        "Passages that other packages keep in the same tables have no owner and stay."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "date",
            type=moment,
            metavar="DATE",
            help="An ISO 8601 date or datetime; without a zone, in the project's.",
        )
        owners = parser.add_mutually_exclusive_group(required=True)
        owners.add_argument(
            "--owner",
            metavar="app.Model:pk",
            help="Of this instance, also when it no longer exists.",
        )
        owners.add_argument(
            "--owner-string", type=name, metavar="TEXT", help="Of an owner that is a string."
        )
        owners.add_argument("--all", action="store_true", help="Of every owner.")
        parser.add_argument("--scope", type=name, help="Only in this scope (default: in all).")
        parser.add_argument(
            "--dry-run", action="store_true", help="Only say how many would be forgotten."
        )
        parser.add_argument(
            "--no-input", "--noinput", action="store_false", dest="interactive",
            help="Don't ask for confirmation.",
        )  # fmt: skip

    def handle(
        self,
        *,
        date: datetime,
        owner: str | None,
        owner_string: str | None,
        scope: str | None,
        dry_run: bool,
        interactive: bool,
        **options: Any,
    ) -> None:
        self.warn_of_other_records()
        if owner is not None:
            whom: Owner | None = owner_named(owner, self.memories())
        else:
            whom = None if owner_string is None else Owner("", owner_string)
        owned = self.memories().exclude(owner_key="")  # the others are passages
        before = owned.filter(occurred_at__lt=to_database(date))
        doomed = list(_of(before, whom, scope))
        found = sum(part.count() for part in doomed)
        of = f"of {whose(whom.model, whom.key)}" if whom else "of all owners"
        of += f" in {shown(scope)}" if scope is not None else " in all scopes"
        what = f"{counted(found)} {of} from before {date.isoformat()}"
        if dry_run:
            self.say(f"Would forget {what}.")
            return
        if found and interactive:
            self.confirm(f"This forgets {what}, for good.")
        with self.progress("Forgetting", found) as bar:
            for part in doomed:
                self.erase(part, bar)
        self.say(f"Forgot {counted(bar.done)}.")


def _of(
    memories: MemoryQuerySet, owner: Owner | None, scope: str | None
) -> Iterator[MemoryQuerySet]:
    """Yield the memories of an owner, or of all, in a scope, or in all; in one or more parts."""
    if scope is None:
        yield memories if owner is None else memories.filter(owner_key=owner.digest)
    elif owner is not None:
        collection = Address(owner, scope).collection
        yield memories.filter(collection_key=collection_key(collection))
    else:
        # Compared here: some databases take "support" and "Support " for the same text.
        for page in collection_pages(memories.filter(scope=scope), "scope"):
            exact = [key for key, found in page if found == scope]
            yield memories.filter(collection_key__in=exact)
