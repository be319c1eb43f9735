"""What PgVectorStore finds is what the exact store finds, with the same scores to the last bit."""

from __future__ import annotations

import pytest

from prism_memory.contrib.pgvector.models import IndexedVector
from prism_memory.models import Embedding
from prism_memory.stores import VectorQuery

from ..searching import EXACT, SPACE, at, query, random_vectors, record

pytestmark = pytest.mark.django_db(transaction=True)


def fill(store, vectors, collection="c", space=SPACE, **fields):
    store.upsert(
        record(f"{row:06}", vector, collection, space=space, **fields)
        for row, vector in enumerate(vectors)
    )


def same(found, expected):
    """Whether two answers agree in everything, the last bit of the scores included."""
    assert list(found) == list(expected)
    assert [m.similarity.hex() for m in found] == [m.similarity.hex() for m in expected]
    return True


@pytest.mark.parametrize("limit", [1, 10, 100, None])
def test_scores_and_order_are_those_of_the_exact_store(store, limit):
    fill(store, random_vectors(300))
    asked = query(random_vectors(1, seed=1)[0], limit=limit)
    assert same(store.search(asked), EXACT.search(asked))


def test_entries_are_written_in_the_transaction_of_the_vectors(store):
    fill(store, [at(1), at(0.5)])
    held = IndexedVector.objects.values_list("embedding_id", "memory_id")
    assert set(held) == set(Embedding.objects.values_list("pk", "memory_id"))


@pytest.mark.parametrize("width", [3, 384, 3072, 4001])
def test_spaces_of_any_width_stand_side_by_side(store, width):
    for other in (3, 384, 3072, 4001):
        fill(store, random_vectors(20, other), f"c{other}", space=f"test@{other}")
    asked = VectorQuery([f"c{width}"], random_vectors(1, width, 5)[0], f"test@{width}", limit=20)
    assert same(store.search(asked), EXACT.search(asked))
