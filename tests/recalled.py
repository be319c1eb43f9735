"""Recalled memories for tests, made without a database."""

from __future__ import annotations

import hashlib
from datetime import UTC, date, datetime
from typing import Any

from prism_memory.context import Entry
from prism_memory.recollection import Recalled, Recollection

MARCH = datetime(2024, 3, 1, 9, 30, tzinfo=UTC)


def recalled(content: str = "I moved to Graz.", **fields: Any) -> Recalled:
    given: dict[str, Any] = {
        "id": hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest(),
        "content": content,
        "role": "user",
        "name": "",
        "kind": "observation",
        "occurred_at": MARCH,
        "metadata": {},
        "similarity": 0.5,
        "recency": 0.0,
        "score": 0.5,
    }
    return Recalled(**{**given, **fields})


def recollection(*memories: Recalled) -> Recollection:
    return Recollection(memories, counter=None)


def shown(memory: Recalled) -> Entry:
    """The entry as it should be parsed back, made without the code under test."""
    day = memory.occurred_at.astimezone(UTC)
    return Entry(date(day.year, day.month, day.day), memory.role, memory.name, memory.content)
