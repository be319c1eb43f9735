"""``stores[alias]``: the configured stores, each built once per process."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from ..backends import build
from ..conf import Once, settings
from ..exceptions import UnknownStore, VolatileStore
from .contract import Durability, VectorStore

__all__ = ["Stores", "default_store", "stores"]


class Stores:
    """A map of alias to store, read from ``STORES`` on first use."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._registered: dict[str, VectorStore] = {}
        self._built: Once[dict[str, VectorStore]] = Once(dict)

    def __getitem__(self, alias: str) -> VectorStore:
        with self._lock:
            built = self._built()
            if alias not in built:
                built[alias] = self._resolve(alias)
            return built[alias]

    def __contains__(self, alias: object) -> bool:
        return alias in set(self)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*settings().stores, *self._registered]))

    def register(self, alias: str, store: VectorStore) -> None:
        """Add a store from code, or replace a configured one. Survives a change of settings."""
        with self._lock:
            store.alias = alias
            self._registered[alias] = store
            self._built.reset()

    def unregister(self, alias: str) -> None:
        """Take back what ``register`` did."""
        with self._lock:
            self._registered.pop(alias, None)
            self._built.reset()

    def _resolve(self, alias: str) -> VectorStore:
        if alias in self._registered:
            store, setting = self._registered[alias], f"the registered store {alias!r}"
        elif alias in settings().stores:
            entry = settings().stores[alias]
            store, setting = build(entry, VectorStore), entry.setting
            store.alias = alias
        else:
            raise UnknownStore(
                f'There is no store {alias!r} in PRISM_MEMORY["STORES"].',
                hint=f"Known: {', '.join(map(repr, self))}.",
                id="prism_memory.E004",
            )
        if settings().require_durable and store.durability is Durability.VOLATILE:
            raise volatile(setting, store)
        return store


def volatile(setting: str, store: VectorStore) -> VolatileStore:
    """The error that says what a volatile store may lose, and what to do."""
    return VolatileStore(
        f"{setting}: {type(store).__qualname__} says that it is VOLATILE: what people said, not "
        "only an index of it, would be lost with its process or machine.",
        hint='Use a durable store, or set PRISM_MEMORY["REQUIRE_DURABLE"] to False to accept that.',
        id="prism_memory.E008",
    )


stores = Stores()


def default_store() -> VectorStore:
    """Return the store that ``STORE`` names."""
    return stores[settings().store]
