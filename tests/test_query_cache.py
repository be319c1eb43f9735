"""The cache of query vectors: it saves calls, and is never a reason to fail."""

from __future__ import annotations

import pytest

from prism_memory import queries
from prism_memory.exceptions import EmbeddingUnavailable

pytestmark = pytest.mark.django_db
TEXT = "a private question"


@pytest.fixture
def asked(embedder, monkeypatch) -> list[str]:
    """The queries that reach the embedder."""
    texts: list[str] = []
    original = embedder.embed_query

    def embed_query(text: str) -> list[float]:
        texts.append(text)
        return original(text)

    monkeypatch.setattr(embedder, "embed_query", embed_query)
    return texts


class Spy:
    """Stands in for Django's cache and notes how it is used."""

    def __init__(self, failing: bool = False, held: object = None) -> None:
        self.failing, self.held = failing, held
        self.calls: list[tuple[object, ...]] = []

    def get(self, *arguments: object) -> object:
        self.calls.append(("get", *arguments))
        if self.failing:
            raise ConnectionError(f"no cache for {TEXT}")
        return self.held

    def set(self, *arguments: object) -> None:
        self.calls.append(("set", *arguments))
        if self.failing:
            raise ConnectionError(f"no cache for {TEXT}")


def test_a_repeated_query_is_embedded_once(memory, asked) -> None:
    memory.remember("alpha")
    first, second = memory.recall(TEXT), memory.recall(TEXT)
    assert asked == [TEXT]
    assert first.digest() == second.digest()
    assert first[0].similarity.hex() == second[0].similarity.hex()


def test_every_text_and_space_has_its_own_entry(memory, asked, embedder, monkeypatch) -> None:
    for text in (TEXT, TEXT.upper(), f" {TEXT}", TEXT):
        memory.recall(text)
    assert asked == [TEXT, TEXT.upper(), f" {TEXT}"]
    monkeypatch.setattr(embedder, "space", "another")
    memory.recall(TEXT)
    assert len(asked) == 4


def test_what_is_remembered_is_no_query(memory, asked) -> None:
    """Another purpose: providers may embed documents another way."""
    memory.remember(TEXT)
    memory.recall(TEXT)
    assert asked == [TEXT]


def test_the_key_and_value_hold_no_text(memory, asked, monkeypatch) -> None:
    spy = Spy()
    monkeypatch.setattr(queries, "cache", spy)
    memory.recall(TEXT)
    (_, key), (_, same_key, _, seconds) = spy.calls
    assert key == same_key
    assert seconds == 300
    assert "private" not in repr(spy.calls)
    assert str(key).isascii()
    assert len(str(key)) < 200


def test_zero_turns_it_off(memory, asked, settings, monkeypatch) -> None:
    spy = Spy()
    monkeypatch.setattr(queries, "cache", spy)
    settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "RECALL": {"query_cache": 0}}
    memory.recall(TEXT)
    memory.recall(TEXT)
    assert spy.calls == []


def test_its_seconds_are_a_setting(memory, settings, monkeypatch) -> None:
    spy = Spy()
    monkeypatch.setattr(queries, "cache", spy)
    settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "RECALL": {"query_cache": 7}}
    memory.recall(TEXT)
    assert spy.calls[-1][-1] == 7


def test_a_failing_cache_is_ignored(memory, asked, monkeypatch, caplog) -> None:
    memory.remember("alpha")
    monkeypatch.setattr(queries, "cache", Spy(failing=True))
    assert len(memory.recall(TEXT)) == 1
    assert asked == [TEXT]
    assert "ConnectionError" in caplog.text
    assert TEXT not in caplog.text


@pytest.mark.parametrize("held", ["nonsense", 7, b"\xff", "", "AAAAAAAAAAA="])
def test_a_damaged_entry_is_ignored(memory, asked, monkeypatch, held: object) -> None:
    memory.remember("alpha")
    monkeypatch.setattr(queries, "cache", Spy(held=held))
    assert len(memory.recall(TEXT)) == 1
    assert asked == [TEXT]


def test_a_failure_is_not_kept(memory, embedder) -> None:
    memory.remember("alpha")
    embedder.failure = RuntimeError()
    with pytest.raises(EmbeddingUnavailable):
        memory.recall(TEXT)
    embedder.failure = None
    assert len(memory.recall(TEXT)) == 1


def test_a_cached_query_survives_a_failing_provider(memory, embedder) -> None:
    memory.remember("alpha")
    memory.recall(TEXT)
    embedder.failure = RuntimeError()
    assert len(memory.recall(TEXT)) == 1
