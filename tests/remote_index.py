"""A driver with an index on a server that exists only here, and fails when it is told to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prism_memory.exceptions import IndexUnavailable
from prism_memory.stores import Entry, OutboxStore


def unit(vector):
    """The direction in single precision, in which the vector itself may be infinite."""
    return (vector / np.linalg.norm(vector)).astype(np.float32)


class Server:
    """What the index holds: by space, by entry."""

    def __init__(self) -> None:
        self.spaces: dict[str, dict[int, Entry]] = {}
        self.down = False
        self.calls: list[tuple[str, list[int]]] = []
        #: Called in the midst of a call, before it takes effect and after.
        self.before: Callable[[str], object] = lambda call: None
        self.after: Callable[[str], object] = lambda call: None

    def entries(self, space) -> dict[int, Entry]:
        if self.down or space.name not in self.spaces:
            raise IndexUnavailable("The index in test does not answer. Start it.")
        return self.spaces[space.name]


class RemoteIndex(OutboxStore):
    """Nearest by the single-precision vectors that the server holds."""

    timeout = 0.02

    def __init__(self, server: Server | None = None, *, name: str = "here", **options) -> None:
        super().__init__(**options)
        self.server = server or Server()
        self.name = name

    @property
    def place(self):
        return f"test:{self.name}"

    def prepare(self, using, space, *, fresh):
        if self.server.down:
            raise IndexUnavailable("The index in test does not answer. Start it.")
        if fresh:
            self.server.spaces.pop(space.name, None)
        self.server.spaces.setdefault(space.name, {})

    def drop(self, using, space):
        self.server.entries(space)
        del self.server.spaces[space.name]

    def send(self, space, entries):
        held = self.server.entries(space)
        self.server.calls.append(("send", [entry.id for entry in entries]))
        self.server.before("send")
        held.update({entry.id: entry for entry in entries})
        self.server.after("send")

    def withdraw(self, space, ids):
        held = self.server.entries(space)
        self.server.calls.append(("withdraw", list(ids)))
        self.server.before("withdraw")
        for pk in ids:
            held.pop(pk, None)
        self.server.after("withdraw")

    def held(self, using, space, low, high):
        ids = self.server.entries(space)
        return {pk for pk in ids if low <= pk and (high is None or pk < high)}

    def nearest(self, search, count):
        found = [
            entry
            for entry in self.server.entries(search.space).values()
            if entry.collection_key in search.collections
            and all(
                set(entry.tokens) & tokens
                for tokens in search.filter.tokens(search.collections[entry.collection_key])
            )
        ]
        query = unit(search.vector)

        def score(entry):
            return float(unit(entry.vector) @ query)

        ranked = sorted(found, key=lambda entry: (-score(entry), entry.id))
        return [entry.memory_id for entry in ranked[:count]]
