"""Kill workers in the middle of their work, again and again, and count what was lost.

    python tools/soak.py                        50 kills, 20,000 memories, 10,000 forgets, on SQLite
    python tools/soak.py --database postgresql --kills 5 --memories 1000 --forgets 500

Starts a Redis of its own (``redis-server``), makes a test database, and runs real workers of
django-rq. Every tenth kill also empties Redis, so that the jobs are lost too. Then every owner says
one thing more, and its job has to embed whatever is left. Exits with 1 when a memory was lost, is
there twice, has the vector of another text, still waits, or came back after it was forgotten; or
when an index outside the database, which the same workers tell of changes, holds other vectors.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

OWNERS = 4
WORKERS = 2
#: What a call of the provider takes, so that most kills hit a worker that waits for one.
SECONDS = 0.1
#: Memories that are forgotten in one go while they are embedded.
FORGOTTEN = 100


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--memories", type=int, default=20_000)
    parser.add_argument("--forgets", type=int, default=10_000)
    parser.add_argument("--database", choices=["sqlite", "postgresql", "mariadb"], default="sqlite")
    parser.add_argument("--seed", type=int, default=0, help="of the moments that are chosen")
    return parser.parse_args()


@contextmanager
def surroundings(database: str, folder: Path) -> Iterator[str]:
    """A Redis and a test database; yields the URL of the one, and Django is set up for the other.

    Django is imported only here: its settings are read from the environment.
    """
    from tests.redis.servers import RedisServer

    redis_server = RedisServer(folder)
    os.environ.update(
        DJANGO_SETTINGS_MODULE="tests.redis.settings",
        PRISM_TEST_DATABASE=database,
        PRISM_TEST_REDIS=redis_server.url,
        PRISM_WORKER_FOLDER=str(folder),
        PRISM_WORKER_SECONDS=str(SECONDS),
        PRISM_WORKER_CLAIM="5",
        PRISM_WORKER_INDEX=str(folder / "index.sqlite3"),
    )
    os.environ.setdefault("PRISM_TEST_DATABASE_NAME", "prism_memory_soak")
    try:
        import django

        django.setup()
        from django.db import connection

        name = connection.settings_dict["NAME"]
        connection.creation.create_test_db(verbosity=0, autoclobber=True)
        os.environ["PRISM_WORKER_DATABASE"] = str(connection.settings_dict["NAME"])
        try:
            yield redis_server.url
        finally:
            connection.creation.destroy_test_db(name, verbosity=0)
    finally:
        redis_server.stop()


class Soak:
    """Owners who remember and forget while their workers are killed; and what came of it."""

    def __init__(self, url: str, folder: Path, seed: int) -> None:
        import redis

        from tests.redis.workers import Worker

        self.random = random.Random(seed)
        self.redis = redis.Redis.from_url(url)
        self.start_worker = lambda: Worker({}, folder / "log")
        self.workers = [self.start_worker() for _ in range(WORKERS)]
        self.sent = folder / "sent"
        self.kept: dict[str, set[str]] = {f"owner {number}": set() for number in range(OWNERS)}
        self.forgotten: dict[str, set[str]] = {owner: set() for owner in self.kept}
        self.kills_at_work = 0

    def memory(self, owner: str) -> Any:
        from prism_memory.models import Memory

        return Memory.objects.for_owner(owner)

    def remember_and_kill(self, kills: int, memories: int) -> None:
        for kill in range(kills):
            start, end = memories * kill // kills, memories * (kill + 1) // kills
            self.remember([f"memory number {number}" for number in range(start, end)])
            self.kill_one(horse_only=kill % 5 == 4)
            if kill % 10 == 9:
                self.redis.flushdb()

    def remember(self, texts: list[str]) -> None:
        for owner in self.kept:
            mine = [text for text in texts if hash_of(text) % OWNERS == int(owner[6:])]
            if mine:
                self.kept[owner].update(self.memory(owner).remember(mine))

    def kill_one(self, *, horse_only: bool) -> None:
        until = time.monotonic() + 10
        while not (at_work := self.at_work()) and time.monotonic() < until:
            time.sleep(0.005)
        position = self.random.choice(at_work or range(WORKERS))
        time.sleep(self.random.random() * SECONDS)
        self.kills_at_work += position in self.at_work()
        self.workers[position].kill(horse_only=horse_only)
        if not horse_only:
            self.workers[position] = self.start_worker()

    def at_work(self) -> list[int]:
        """The workers of which a child has called the provider."""
        callers = {int(line.split()[0]) for line in self.calls()}
        return [n for n, worker in enumerate(self.workers) if callers & set(worker.horses())]

    def calls(self) -> list[str]:
        return self.sent.read_text().splitlines() if self.sent.exists() else []

    def forget_while_embedding(self, forgets: int) -> None:
        owners = list(self.kept)
        for start in range(0, forgets, FORGOTTEN):
            owner = owners[start // FORGOTTEN % OWNERS]
            count = min(FORGOTTEN, forgets - start)
            memory = self.memory(owner)
            ids = memory.remember([f"to be forgotten {start + n}" for n in range(count)])
            time.sleep(self.random.random() * 3 * SECONDS)
            if memory.forget(ids) != count:
                raise SystemExit("forget() did not find what was remembered")
            self.forgotten[owner].update(ids)

    def settle(self) -> None:
        """One job for each owner, which embeds whatever is left."""
        from prism_memory.models import IndexChange, Memory

        for owner in self.kept:
            self.kept[owner].update(self.memory(owner).remember(f"the last word of {owner}"))
        until = time.monotonic() + 300
        waiting = [Memory.objects.unembedded(), IndexChange.objects.all()]
        while any(rows.exists() for rows in waiting) and time.monotonic() < until:
            time.sleep(0.2)

    def stop(self) -> None:
        for worker in self.workers:
            worker.kill()

    def faults(self) -> dict[str, int]:
        """What must be 0, counted."""
        from prism_memory import backends
        from prism_memory.models import Embedding, Memory
        from prism_memory.stores import stores
        from prism_memory.vectors import Vector
        from tests.invariants import check_tables

        check_tables()
        held = stores["index"].held("default", None, 0, None)  # type: ignore[attr-defined]
        embedded = set(Embedding.objects.values_list("pk", flat=True))
        rows = list(Memory.objects.values_list("owner", "record_id"))
        stored = set(rows)
        kept = {(owner, record_id) for owner, ids in self.kept.items() for record_id in ids}
        gone = {(owner, record_id) for owner, ids in self.forgotten.items() for record_id in ids}
        embeddings = Embedding.objects.values_list("memory", "memory__content", "vector")
        vector = backends.embedder().vector  # type: ignore[attr-defined]
        return {
            "lost": len(kept - stored),
            "resurrected": len(gone & stored),
            "duplicated": len(rows)
            - len(stored)
            + len(embeddings)
            - len({e[0] for e in embeddings}),
            "with a wrong vector": sum(
                bytes(held) != Vector.of(vector(text)).to_bytes() for _, text, held in embeddings
            ),
            "pending": Memory.objects.unembedded().count(),
            "missing in the index": len(embedded - held),
            "left in the index": len(held - embedded),
        }

    def texts_sent(self) -> int:
        return sum(int(line.split()[1]) for line in self.calls())


def hash_of(text: str) -> int:
    return int(text.rpartition(" ")[2])


def main() -> int:
    asked = arguments()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, surroundings(asked.database, Path(folder)) as url:
        soak = Soak(url, Path(folder), asked.seed)
        try:
            soak.remember_and_kill(asked.kills, asked.memories)
            soak.settle()
            sent = soak.texts_sent()
            soak.forget_while_embedding(asked.forgets)
            in_flight = soak.texts_sent() - sent
            soak.settle()
        finally:
            soak.stop()
        faults = soak.faults()
        rows = sum(map(len, soak.kept.values()))
    print(f"{asked.database}: {rows:,} memories, {WORKERS} workers")
    print(
        f"{asked.kills} kills, {soak.kills_at_work} of them of a worker that waited for an answer"
    )
    print(f"{sent:,} texts were sent to the provider for them")
    print(f"{asked.forgets:,} more were forgotten, {in_flight:,} of them after they had been sent")
    print(", ".join(f"{count} {fault}" for fault, count in faults.items()))
    print(f"{time.monotonic() - started:.0f} s")
    return 1 if any(faults.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
