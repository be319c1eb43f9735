"""How PostgreSQL finds what the store asks for."""

from __future__ import annotations

from typing import Any

from django.db import connection

from prism_memory.stores import Matches, VectorQuery, VectorStore

__all__ = ["planned"]


def planned(store: VectorStore, asked: VectorQuery) -> tuple[Matches, list[str]]:
    """Search, and return also the plans of what the index was asked, in the very same settings."""
    plans: list[str] = []

    def explain(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("SELECT memory_id FROM"):
            execute(f"EXPLAIN {sql}", params, many, context)
            plans.append("\n".join(line for (line,) in context["cursor"].fetchall()))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explain):
        return store.search(asked), plans
