"""The query that somebody would word by hand for the same server, and reading the rows it names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["milvus", "pgvector"]


def pgvector(count: int, *, vectors: bool) -> Callable[[Any], object]:
    from django.db import connection, transaction

    from prism_memory.models import Memory, Space

    space = Space.objects.get()
    key = Memory.objects.values_list("collection_key", flat=True).first()
    sql = (
        f"SELECT memory_id FROM prism_memory_pgvector_entry WHERE space_id = {space.pk} "
        f"AND collection_key = %s ORDER BY (vector::vector({space.width})) <=> "
        f"%s::vector({space.width}) LIMIT {count}"
    )

    def ask(vector: Any) -> object:
        text = "[" + ",".join(map(repr, vector.tolist())) + "]"
        with transaction.atomic(), connection.cursor() as cursor:
            if count > 40:  # pgvector's own ef_search
                cursor.execute(f"SET LOCAL hnsw.ef_search = {count}")
            cursor.execute(sql, [key, text])
            return rows([pk for (pk,) in cursor.fetchall()], vectors=vectors)

    return ask


def milvus(count: int, *, vectors: bool) -> Callable[[Any], object]:
    import os

    from pymilvus import MilvusClient

    from prism_memory.models import Memory, Space
    from prism_memory.stores import default_store

    store: Any = default_store()
    client = MilvusClient(os.environ["PRISM_TEST_MILVUS"])
    name = store.collection(Space.objects.get())
    key = Memory.objects.values_list("collection_key", flat=True).first()

    def ask(vector: Any) -> object:
        [hits] = client.search(
            name,
            [vector.astype("f4")],
            filter=f'collection_key == "{key}"',
            limit=count,
            output_fields=["memory"],
            search_params={"metric_type": "COSINE", "params": {"ef": max(count, 64)}},
        )
        return rows([hit["entity"]["memory"] for hit in hits], vectors=vectors)

    return ask


def rows(ids: Sequence[int], *, vectors: bool) -> list[tuple[Any, ...]]:
    from prism_memory.models import Embedding, Memory

    if vectors:
        return list(Embedding.objects.filter(memory__in=ids).values_list("memory", "vector"))
    return list(Memory.objects.filter(pk__in=ids).values_list("record_id", "content", "metadata"))
