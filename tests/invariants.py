"""What must hold of the tables after every call."""

from __future__ import annotations

from collections import Counter
from typing import Any

from prism_memory import pages
from prism_memory.filters import attribute_tokens
from prism_memory.models import Embedding, Memory, SignaturePage, Space
from prism_memory.pages import Page
from prism_memory.signatures import signature
from prism_memory.stores.keys import collection_key, record_key
from prism_memory.vectors import Vector

Entry = tuple[Any, ...]


def check_tables() -> None:
    """Assert that keys, vectors, signatures and pages agree with one another."""
    memories = {row.pk: row for row in Memory.objects.all()}
    for row in memories.values():
        assert row.collection_key == collection_key(row.collection)
        assert row.key == record_key(row.collection, row.record_id)
    spaces = {space.pk: space for space in Space.objects.all()}
    expected: Counter[Entry] = Counter()
    for row in Embedding.objects.all():
        assert row.memory_id in memories, "a vector without its memory"
        memory, space = memories[row.memory_id], spaces[row.space_id]
        vector = Vector.from_bytes(row.vector)
        assert len(vector) == space.width
        assert bytes(row.signature) == signature(vector.values, space.bits)
        tokens = Counter(attribute_tokens(memory.collection, memory.attributes))
        expected[
            memory.collection_key,
            space.pk,
            memory.pk,
            bytes(row.signature),
            tuple(sorted(tokens.items())),
        ] += 1
    assert page_entries() == expected


def page_entries() -> Counter[Entry]:
    """Every entry of every page, unpacked; and assert that each page is sound in itself."""
    found: Counter[Entry] = Counter()
    for row in SignaturePage.objects.all():
        page = Page.read(row)
        assert 0 < row.size <= pages.PAGE_SIZE
        assert len(page.ids) == len(page.signatures) == len(page.token_counts) == row.size
        assert len(page.tokens) == page.token_counts.sum()
        assert (row.first_id, row.last_id) == (page.ids.min(), page.ids.max())
        start = 0
        for pk, signs, count in zip(page.ids, page.signatures, page.token_counts, strict=True):
            tokens = Counter(page.tokens[start : start + count].tolist())
            start += int(count)
            found[
                row.collection_key,
                row.space_id,
                int(pk),
                signs.tobytes(),
                tuple(sorted(tokens.items())),
            ] += 1
    return found
