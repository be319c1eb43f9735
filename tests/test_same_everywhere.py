"""The same calls give the same answers, to the last bit, whatever the database."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from prism_memory.stores import DatabaseStore, VectorQuery, VectorRecord

pytestmark = pytest.mark.django_db

GOLDEN = Path(__file__).parent / "golden" / "answers.json"
STARTED = datetime(2024, 3, 1, 12, tzinfo=UTC)
WIDTH = 16
#: Ids that some database takes for one another, or can't hold by its default.
IDS = ["a", "A", "á", "a ", "😀", "🚀", "ß", "ss", "ı", "I", *(f"r{n}" for n in range(90))]
VALUES = [1, 1.0, True, "1", None, "", "é", "e\u0301", 1e300, -0.0, "😀"]
KEYS = ["k", "K", "a.b", "q\"uo'te", "a__b", "$[0]", "", "😀"]
FILTERS = [
    {}, {"k": 1}, {"k": True}, {"k": "1"}, {"k": None}, {"K": 1.0}, {"a.b": ""},
    {'q"uo\'te': [1, None]}, {"a__b": "é"}, {"$[0]": 1e300}, {"": 0}, {"😀": "😀"},
]  # fmt: skip


def vector(seed: str) -> list[float]:
    """Doubles with all bits in use, the same on every machine."""
    stream = hashlib.shake_256(seed.encode()).digest(8 * WIDTH)
    numbers = (stream[at : at + 8] for at in range(0, len(stream), 8))
    return [(int.from_bytes(number, "little") - 2**63) / 2**63 for number in numbers]


def written(store: DatabaseStore) -> None:
    store.upsert(
        VectorRecord(
            collection=("c", "C")[row % 2],
            id=name,
            content=f"Text {row} 😀",
            vector=vector(f"row {row}"),
            space="s",
            metadata={KEYS[row % len(KEYS)]: VALUES[row % len(VALUES)]},
            occurred_at=STARTED + row * timedelta(microseconds=1),
        )
        for row, name in enumerate(IDS)
    )


def answers(store: DatabaseStore) -> list[list[str]]:
    found = []
    for number, conditions in enumerate(FILTERS):
        for collections in (["c"], ["c", "C"]):
            query = VectorQuery(
                collections, vector(f"query {number}"), "s", limit=7, filter=conditions
            )
            found.append(
                [
                    f"{match.collection} {match.id!a} {match.similarity.hex()} "
                    f"{match.occurred_at.isoformat()} {json.dumps(match.metadata)}"
                    for match in store.search(query)
                ]
            )
    return found


@pytest.mark.parametrize("strategy", ["signature", "exact"])
def test_ids_order_scores_times_and_metadata(strategy: str) -> None:
    store = DatabaseStore(strategy=strategy)
    written(store)
    assert store.count("c") + store.count("C") == len(IDS)
    assert answers(store) == json.loads(GOLDEN.read_text("utf-8"))


def test_every_id_is_one_of_its_own() -> None:
    store = DatabaseStore()
    written(store)
    for number, name in enumerate(IDS):
        assert store.forget(("c", "C")[number % 2], [name]) == 1
    assert store.count("c") + store.count("C") == 0
