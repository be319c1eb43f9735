"""Names that some database would take for one another are told apart on every one."""

from __future__ import annotations

import pytest

from prism_memory.models import Space
from prism_memory.stores import DatabaseStore, remove_space
from tests.invariants import check_tables
from tests.searching import at, query, record

pytestmark = pytest.mark.django_db

#: By case, accent, form of Unicode, width, trailing space, and what some collations ignore.
NAMES = [
    *("a", "A", "á", "a\u0301", "ａ", "a ", "a  ", " a", "a\t", "a\u200b"),
    *("ß", "ss", "ı", "i", "İ", "😀", "🚀", "a%", "a_", "a\\"),
]


@pytest.fixture
def store():
    yield DatabaseStore()
    check_tables()


def test_of_records(store):
    for metadata in ({}, {"again": True}):
        store.upsert(
            record(name, at(0.5), content=f"I am {name!r}.", metadata=metadata) for name in NAMES
        )
    assert store.count("c") == len(NAMES)
    found = store.search(query(limit=99, filter={"again": True}))
    assert {match.id: match.content for match in found} == {n: f"I am {n!r}." for n in NAMES}
    for left, name in enumerate(NAMES, 1):
        assert store.forget("c", [name]) == 1
        assert store.count("c") == len(NAMES) - left


def test_of_collections(store):
    store.upsert(record("r", at(0.5), name, content=f"In {name!r}.") for name in NAMES)
    for name in NAMES:
        assert [match.content for match in store.search(query(None, [name]))] == [f"In {name!r}."]
    assert len(store.search(query(None, NAMES, limit=99))) == len(NAMES)
    for left, name in enumerate(NAMES, 1):
        assert store.purge(name) == 1
        assert sum(store.count(each) for each in NAMES) == len(NAMES) - left


def test_of_spaces(store):
    store.upsert(record(f"r{n}", at(0.5), f"c{n}", space=name) for n, name in enumerate(NAMES))
    assert set(Space.objects.values_list("name", flat=True)) == set(NAMES)
    for n, name in enumerate(NAMES):
        assert [m.id for m in store.search(query(None, [f"c{n}"], space=name))] == [f"r{n}"]
        assert remove_space(name) == 1
    assert not Space.objects.exists()
