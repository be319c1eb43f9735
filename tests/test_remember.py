"""What remember() stores and returns: one id a remembered message, all or none."""

from __future__ import annotations

import hashlib
from enum import Enum

import pytest
from django.db import models

from prism_memory import Provenance
from prism_memory.exceptions import (
    InvalidArgument,
    InvalidMessage,
    InvalidMetadata,
    InvalidTimestamp,
)
from prism_memory.inserting import insert
from prism_memory.models import Embedding, Memory, SignaturePage
from prism_memory.stores import writing

pytestmark = pytest.mark.django_db

SECRET = "SECRET-4711"


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def said(role: str, content: object) -> dict[str, object]:
    return {"role": role, "content": content}


class TestIds:
    def test_are_one_a_remembered_message_in_order(self, memory):
        thread = [
            said("system", "Be kind."),
            said("user", "Where do I live?"),
            said("assistant", None),
            said("tool", "{}"),
            said("assistant", "In Graz."),
            "A note.",
            said("user", " \n"),
            said("user", "Where do I live?"),
        ]
        expected = ["user|Where do I live?", "assistant|In Graz.", "|A note."]
        expected.append("user|Where do I live?")
        assert memory.remember(thread) == [sha256(text) for text in expected]
        assert memory.count() == 3

    def test_are_a_list_for_one_message_too(self, memory):
        assert memory.remember("I live in Graz.") == [sha256("|I live in Graz.")]
        assert memory.remember(said("user", "é😀")) == [sha256("user|é😀")]

    def test_are_what_the_records_are_called(self, memory):
        ids = memory.remember(["one", "two"])
        assert sorted(ids) == sorted(memory.records().values_list("record_id", flat=True))
        assert [found.id for found in memory.recall("one", limit=1)] == ids[:1]

    def test_tell_apart_who_said_it(self, memory):
        sentence = "I live in Graz."
        ids = memory.remember(
            [
                said("user", sentence),
                said("assistant", sentence),
                sentence,
                {**said("user", sentence), "name": "ana"},
                {**said("user", sentence), "name": "Ana"},
            ]
        )
        assert len(set(ids)) == memory.count() == 5
        rows = {row.record_id: (row.role, row.name) for row in memory.records()}
        assert [rows[id] for id in ids] == [
            *(("user", ""), ("assistant", ""), ("", "")),
            *(("user", "ana"), ("user", "Ana")),
        ]

    def test_tell_apart_what_databases_take_for_the_same(self, memory):
        texts = ["a", "A", "á", "a\u0301", "a ", "a\n", "😀a", "🚀a"]
        ids = memory.remember(texts)
        assert [memory.records().get(record_id=id).content for id in ids] == texts

    @pytest.mark.parametrize("nothing", [[], (), [said("system", "x")], [""], iter([])])
    def test_are_none_when_there_is_nothing_to_remember(self, memory, embedder, nothing):
        assert memory.remember(nothing) == []
        assert memory.count() == 0
        assert embedder.calls == []


class TestNothingIsWritten:
    BAD = [
        *(5, said("oracle", "x"), said("user", 5), {"content": "x"}, None),
        *(said("user", f"{SECRET}\0"), said("user", f"{SECRET}\ud800")),
        *(said("user", SECRET * 100_000), {**said("user", SECRET), "name": "n" * 256}),
    ]

    @pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
    def test_when_the_last_of_many_messages_is_none(self, memory, embedder, bad):
        with pytest.raises(InvalidMessage) as caught:
            memory.remember([*(f"message {number}" for number in range(600)), bad])
        assert "messages[600]" in str(caught.value)
        assert SECRET not in str(caught.value)
        self.check(embedder)

    @pytest.mark.parametrize(
        "metadata",
        [
            *(5, "role", ["a", "b"], [[]], Provenance(id="x"), {5: 1}),
            *({"k": [SECRET]}, {"k": {"a": 1}}, {"k": float("nan")}, {"k": float("inf")}),
            *({"k": object()}, {"k": f"{SECRET}\0"}, {"k": f"{SECRET}\ud800"}, {"\0": 1}),
            *({"k": "x" * 70_000}, {"role": "user"}, {"kind": "observation"}),
        ],
        ids=lambda metadata: repr(metadata)[:20],
    )
    def test_when_the_metadata_is_unusable(self, memory, embedder, metadata):
        with pytest.raises(InvalidMetadata) as caught:
            memory.remember("I live in Graz.", metadata=metadata)
        assert SECRET not in str(caught.value)
        self.check(embedder)

    @pytest.mark.parametrize("when", [5, 5.0, "yesterday", object(), ["2024-01-01"], [], True])
    def test_when_the_time_is_unusable(self, memory, embedder, when):
        with pytest.raises(InvalidTimestamp):
            memory.remember(["I live in Graz.", "I work in Linz."], occurred_at=when)
        self.check(embedder)

    def test_when_the_second_half_does_not_reach_the_database(self, memory, embedder, monkeypatch):
        batches = []

        def fail_later(using, model, given, **options):
            batches.append(len(given["key"]))
            if len(batches) == 2:
                raise RuntimeError("the server went away")
            insert(using, model, given, **options)

        monkeypatch.setattr(writing, "insert", fail_later)
        with pytest.raises(RuntimeError):
            memory.remember([f"message {number}" for number in range(600)])
        assert len(batches) == 2
        self.check(embedder)

    def check(self, embedder):
        assert not Memory.objects.exists()
        assert not Embedding.objects.exists()
        assert not SignaturePage.objects.exists()
        assert embedder.calls == []

    def test_and_every_refusal_is_a_value_error(self, memory):
        with pytest.raises(ValueError, match="None"):
            memory.remember(None)
        assert issubclass(InvalidArgument, ValueError)


class TestMetadata:
    def test_is_given_to_every_message(self, memory):
        given = {"k": 1, "yes": True, "none": None, "x": 1.5, "": "empty key", "ключ": "значение"}
        memory.remember(["one", "two"], metadata=given)
        for row in memory.records():
            assert row.metadata == given
            assert [type(row.metadata[key]) for key in given] == [type(v) for v in given.values()]

    def test_of_a_member_of_an_enumeration_is_its_value(self, memory):
        class Channel(models.TextChoices):
            MAIL = "mail", "Mail"

        class Level(Enum):
            HIGH = 3

        memory.remember("one", metadata={"channel": Channel.MAIL, "level": Level.HIGH})
        assert memory.records().get().metadata == {"channel": "mail", "level": 3}
        assert len(memory.recall("one", filter={"channel": "mail", "level": Level.HIGH})) == 1

    def test_takes_provenance_in(self, memory):
        source = Provenance(id="handbook.md", part=4, heading="Address")
        memory.remember("one", metadata={"k": 1, **source.to_metadata()})
        [found] = memory.recall("one", filter={"source_id": "handbook.md"})
        assert Provenance.from_metadata(found.metadata) == source
        assert found.metadata["k"] == 1

    def test_is_copied(self, memory):
        metadata = {"k": 1}
        memory.remember("one", metadata=metadata)
        metadata["k"] = 2
        assert memory.records().get().metadata == {"k": 1}


def test_every_memory_is_an_observation(memory):
    memory.remember([said("user", "one"), "two"])
    assert {row.kind for row in memory.records()} == {"observation"}


def test_the_longest_text_is_kept_verbatim(memory):
    text = "é\r\n\t😀 " * 1000 + "\u2028x " * 10
    memory.remember(text)
    assert memory.records().get().content == text
    assert memory.recall("x")[0].content == text
