"""recall() on PostgreSQL and MariaDB beside SQLite: the same rows, one process after the other.

    python -m benchmarks.servers [--rows 100000] [--databases sqlite postgresql mariadb]

Servers are found by the variables that the tests use (PRISM_TEST_POSTGRESQL_HOST, …); a database
of its own is made there, and dropped at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.filling import EMBEDDER
from benchmarks.latency import ASKED, asked, filled
from benchmarks.measuring import seconds, table, write_json
from benchmarks.project import configure, sqlite

ENGINES = {"postgresql": ("postgresql", "5432", "postgres"), "mariadb": ("mysql", "3306", "root")}
WIDTH = 256


def database(kind: str, folder: str) -> dict[str, Any]:
    if kind == "sqlite":
        return sqlite(Path(folder) / "memories.sqlite3")
    engine, port, user = ENGINES[kind]

    def given(name: str, default: str) -> str:
        return os.environ.get(f"PRISM_TEST_{kind.upper()}_{name}", default)

    return {
        "ENGINE": f"django.db.backends.{engine}",
        "HOST": given("HOST", "127.0.0.1"),
        "PORT": given("PORT", port),
        "USER": given("USER", user),
        "PASSWORD": given("PASSWORD", ""),
        "NAME": "prism_memory",
        "OPTIONS": {"charset": "utf8mb4"} if kind == "mariadb" else {},
        "TEST": {"NAME": "prism_memory_benchmark"},
    }


def measured(kind: str, rows: int) -> float:
    """Median seconds, over a database that is made for this and dropped."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = database(kind, folder)
        configure(chosen, EMBEDDER, migrate=kind == "sqlite", RECALL={"query_cache": 0})
        from django.db import connection

        if kind != "sqlite":
            connection.creation.create_test_db(verbosity=0, autoclobber=True)
        filled(rows, WIDTH, "benchmark")
        if kind != "sqlite":
            with connection.cursor() as cursor:
                for name in ("memory", "embedding", "signaturepage"):
                    verb = "ANALYZE" if kind == "postgresql" else "ANALYZE TABLE"
                    cursor.execute(f"{verb} prism_memory_{name}")
                    cursor.fetchall() if kind == "mariadb" else None
        taken = [seconds(lambda turn=turn: asked("benchmark", turn)) for turn in range(ASKED)]  # type: ignore[misc]
        if kind != "sqlite":
            connection.creation.destroy_test_db(chosen["TEST"]["NAME"], verbosity=0)
        return median(taken[2:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--databases", nargs="+", default=["sqlite", *ENGINES])
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measured(arguments.one, arguments.rows)))
        return
    call = [sys.executable, "-m", "benchmarks.servers", "--rows", str(arguments.rows), "--one"]
    found = {}
    for kind in arguments.databases:
        run = subprocess.run([*call, kind], check=True, stdout=subprocess.PIPE, text=True)
        found[kind] = json.loads(run.stdout.splitlines()[-1])
    first = next(iter(found.values()))
    print(f"recall(), {arguments.rows:,} rows\n")
    print(table(["", "ms", f"× {next(iter(found))}"], [
        [kind, f"{1e3 * taken:.1f}", f"{taken / first:.2f}"] for kind, taken in found.items()
    ]))  # fmt: skip
    if arguments.output:
        write_json(arguments.output / "servers.json", {"rows": arguments.rows, "seconds": found})


if __name__ == "__main__":
    main()
