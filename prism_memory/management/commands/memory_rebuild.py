"""Fills the index of a store from the tables, and compares the two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError
from django.db import router

from ...exceptions import PrismMemoryError, UnknownStore
from ...models import Embedding, IndexState, Space
from ...stores import stores
from ..base import FAILED, MISUSED, MemoryCommand
from ..words import counted, shown

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

    from ...stores import IndexedStore

__all__ = ["Command"]


class Command(MemoryCommand):
    help = (
        "Fills the index of a store (pgvector, Milvus, …) from the tables, without calling a "
        "provider, compares both entry by entry, and declares it ready to be searched. Can be "
        "stopped and run again. Exits with 1 when it did not come to that."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--store", required=True, metavar="ALIAS", help="The store's key in STORES."
        )
        how = parser.add_mutually_exclusive_group()
        how.add_argument(
            "--fresh",
            action="store_true",
            help="First drop what the index holds. Needed after a database was restored.",
        )
        how.add_argument(
            "--check",
            action="store_true",
            help="Only compare; exit with 1 when the index and the tables differ.",
        )

    def handle(self, *, store: str, fresh: bool, check: bool, **options: Any) -> None:
        indexed = self.indexed(store)
        spaces = list(Space.objects.using(router.db_for_write(Space)).order_by("pk"))
        if not spaces:
            self.say("Nothing is embedded yet, so there is nothing to index.")
        differing = 0
        for space in spaces:
            try:
                differing += (
                    self.compare(indexed, space) if check else self.fill(indexed, space, fresh)
                )
            except PrismMemoryError as error:
                raise CommandError(str(error), returncode=FAILED) from error
        if differing:
            raise CommandError(
                f"The index and the tables differ. Run manage.py memory_rebuild --store {store}.",
                returncode=FAILED,
            )

    def indexed(self, alias: str) -> IndexedStore:
        """Return the store of this alias, which has an index to fill."""
        from ...stores import IndexedStore

        try:
            store = stores[alias]
        except UnknownStore as error:
            raise CommandError(str(error), returncode=MISUSED) from error
        if not isinstance(store, IndexedStore):
            raise CommandError(
                f"The store {alias!r} ({type(store).__qualname__}) keeps no index beside the "
                "tables, so there is nothing to rebuild.",
                returncode=MISUSED,
            )
        return store

    def fill(self, store: IndexedStore, space: Space, fresh: bool) -> int:
        from ...stores.rebuilding import rebuild

        with self.progress(f"Comparing {shown(space.name)}", self.vectors(space)) as bar:
            mended = rebuild(store, space, fresh=fresh, progress=bar.advance)
        self.say(
            f"The index for the space {shown(space.name)} is ready: "
            f"{counted(bar.done, 'vector', 'vectors')} compared, {mended.missing:,} added, "
            f"{mended.surplus:,} removed."
        )
        return 0

    def compare(self, store: IndexedStore, space: Space) -> int:
        from ...stores.rebuilding import compare

        states = IndexState.objects.using(router.db_for_write(IndexState))
        state = states.filter(key=store.index_key, space=space).first()
        if state is None:
            self.say(f"The index for the space {shown(space.name)} was never built.")
            return 1
        with self.progress(f"Comparing {shown(space.name)}", self.vectors(space)) as bar:
            found = compare(store, state, progress=bar.advance)
        self.say(
            f"The index for the space {shown(space.name)}: "
            f"{counted(bar.done, 'vector', 'vectors')} compared, {found.missing:,} missing, "
            f"{found.surplus:,} that the tables don't have."
        )
        return int(bool(found) or state.ready_at is None)

    def vectors(self, space: Space) -> int:
        using = router.db_for_write(Embedding)
        return Embedding.objects.using(using).filter(space=space).count()
