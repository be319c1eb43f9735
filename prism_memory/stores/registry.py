"""``stores[alias]``: the configured stores, each built once per process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from ..backends import build
from ..conf import Once, settings
from ..exceptions import UnknownStore, VolatileStore
from .contract import Durability, VectorStore

__all__ = ["Stores", "default_store", "stores"]


class Stores:
    """A map of alias to store, read from ``STORES`` on first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._registered: dict[str, VectorStore] = {}
        self._slots: Once[dict[str, Slot]] = Once(dict)

    def __getitem__(self, alias: str) -> VectorStore:
        return self._slot(alias).admitted()

    def __contains__(self, alias: object) -> bool:
        return alias in set(self)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*settings().stores, *self._registered]))

    def look_at(self, alias: str) -> VectorStore:
        """Return a store without asking whether it is durable, to see what it is.

        Content goes through ``stores[alias]`` only.
        """
        return self._slot(alias).built()

    def source(self, alias: str) -> str:
        """Return where a store comes from, as messages name it: a setting, or ``register()``."""
        return self._slot(alias).source

    def register(self, alias: str, store: VectorStore) -> None:
        """Add a store from code, or replace a configured one. Survives a change of settings."""
        with self._lock:
            store.alias = alias
            self._registered[alias] = store
            self._slots().pop(alias, None)

    def unregister(self, alias: str) -> None:
        """Take back what ``register`` did."""
        with self._lock:
            self._registered.pop(alias, None)
            self._slots().pop(alias, None)

    def _slot(self, alias: str) -> Slot:
        with self._lock:
            slots = self._slots()
            if alias not in slots:
                slots[alias] = self._new_slot(alias)
            return slots[alias]

    def _new_slot(self, alias: str) -> Slot:
        if alias in self._registered:
            store = self._registered[alias]
            return Slot(f"the registered store {alias!r}", lambda: store)
        if alias not in settings().stores:
            raise UnknownStore(
                f'There is no store {alias!r} in PRISM_MEMORY["STORES"].',
                hint=f"Known: {', '.join(map(repr, self))}.",
                id="prism_memory.E004",
            )
        entry = settings().stores[alias]

        def make() -> VectorStore:
            store = build(entry, VectorStore)
            store.alias = alias
            return store

        return Slot(entry.setting, make)


class Slot:
    """The place of one alias. Whoever comes first builds the store, and asks its durability.

    Each has a lock of its own, so that a store whose server does not answer holds up no other.
    """

    def __init__(self, source: str, make: Callable[[], VectorStore]) -> None:
        self.source = source
        self._make = make
        self._lock = threading.RLock()
        self._built: VectorStore | None = None
        self._admitted = False

    def built(self) -> VectorStore:
        with self._lock:
            if self._built is None:
                self._built = self._make()
            return self._built

    def admitted(self) -> VectorStore:
        with self._lock:
            store = self.built()
            if not self._admitted:
                if settings().require_durable and store.durability is Durability.VOLATILE:
                    raise volatile(self.source, store)
                self._admitted = True
            return store


def volatile(source: str, store: VectorStore) -> VolatileStore:
    """The error that says what a volatile store may lose, and what to do."""
    return VolatileStore(
        f"{source}: {type(store).__qualname__} says that it is VOLATILE: what people said, not "
        "only an index of it, would be lost with its process or machine.",
        hint='Use a durable store, or set PRISM_MEMORY["REQUIRE_DURABLE"] to False to accept that.',
        id="prism_memory.E008",
    )


stores = Stores()


def default_store() -> VectorStore:
    """Return the store that ``STORE`` names."""
    return stores[settings().store]
