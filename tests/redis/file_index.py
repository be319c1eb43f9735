"""An index that several processes share, in a file of its own, and that takes its time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

from prism_memory.stores import OutboxStore


class FileIndex(OutboxStore):
    """Holds the ids of entries; nobody searches it. ``seconds``: what each half of a call takes."""

    timeout = 0.5

    def __init__(self, *, path: str, seconds: float = 0.0) -> None:
        super().__init__()
        self.path = path
        self.seconds = seconds

    @property
    def place(self):
        return "test:file"

    @contextmanager
    def entries(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.path, timeout=60)
        try:
            with connection:
                connection.execute("CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY)")
                yield connection
        finally:
            connection.close()

    def prepare(self, using, space, *, fresh):
        with self.entries() as connection:
            if fresh:
                connection.execute("DELETE FROM entries")

    def send(self, space, entries):
        time.sleep(self.seconds)
        with self.entries() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO entries VALUES (?)", [(entry.id,) for entry in entries]
            )
        time.sleep(self.seconds)

    def withdraw(self, space, ids):
        time.sleep(self.seconds)
        with self.entries() as connection:
            connection.executemany("DELETE FROM entries WHERE id = ?", [(pk,) for pk in ids])
        time.sleep(self.seconds)

    def held(self, using, space, low, high):
        with self.entries() as connection:
            return {pk for (pk,) in connection.execute("SELECT id FROM entries")}
