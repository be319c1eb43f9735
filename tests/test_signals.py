"""Signals for metrics: counts and keys, never content."""

from __future__ import annotations

import pytest

from prism_memory import signals
from prism_memory.exceptions import TextRefused
from prism_memory.models import Memory
from prism_memory.stores import DatabaseStore, default_store

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent():
    """What each signal was sent with, in order."""
    seen = []
    receivers = []
    for name in signals.__all__:

        def receive(sender, signal, name=name, **given):
            seen.append((name, sender, given))

        receivers.append((getattr(signals, name), receive))
        getattr(signals, name).connect(receive)
    yield seen
    for signal, receive in receivers:
        signal.disconnect(receive)


def test_embedded(memory, sent):
    memory.remember(["one", "two"])
    memory.remember(["one", "two"])
    given = {"collection": memory.collection, "count": 2}
    assert sent == [("embedded", DatabaseStore, given)]


def test_failed(memory, sent, embedder, monkeypatch):
    embed = embedder.embed

    def refuse(texts):
        if "bad" in texts:
            raise TextRefused("too long")
        return embed(texts)

    monkeypatch.setattr(embedder, "embed", refuse)
    waiting = Memory.objects.for_owner("ana")
    _, bad = waiting.remember(["good", "bad"])
    waiting.embed_pending()
    collection = waiting.collection
    assert sent == [
        ("embedded", DatabaseStore, {"collection": collection, "count": 1}),
        ("failed", DatabaseStore, {"collection": collection, "failures": {bad: "too long"}}),
    ]


def test_recalled(memory, sent):
    memory.remember(["one", "two"])
    sent.clear()
    memory.recall("one", limit=1)
    [(name, sender, given)] = sent
    assert (name, sender) == ("recalled", DatabaseStore)
    assert given == {
        "collection": memory.collection, "count": 1, "rows_ranked": 2, "vectors_scored": 2
    }  # fmt: skip
    sent.clear()
    memory.recall("  ")
    assert [given["count"] for _, _, given in sent] in ([], [0])


def test_forgotten(memory, sent):
    memory.remember(["one", "two", "three"])
    sent.clear()
    memory.forget()
    memory.forget()
    default_store().purge("nothing")
    given = {"collection": memory.collection, "count": 3}
    assert sent == [("forgotten", Memory, given)]


@pytest.mark.parametrize("name", signals.__all__)
def test_a_receiver_that_raises_does_no_harm(memory, name, embedder, monkeypatch):
    def fail(**given):
        raise RuntimeError

    signal = getattr(signals, name)
    signal.connect(fail)
    try:
        memory.remember("one")
        assert len(memory.recall("one")) == 1
        assert memory.forget() == 1
    finally:
        signal.disconnect(fail)
