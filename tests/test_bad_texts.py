"""A text that can't be embedded: noted on its row, tried again later, and holding up nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from prism_memory.exceptions import TextRefused
from prism_memory.jobs import embed_collection
from prism_memory.models import Memory
from prism_memory.stores import VectorRecord, default_store
from prism_memory.stores.backlog import FIRST_RETRY, LAST_RETRY

from .commands import run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def picky(embedder, monkeypatch):
    """The embedder, which refuses texts that hold the word "bad"."""
    embed = embedder.embed
    embedder.refuses = "bad"

    def refuse(texts):
        vectors = embed(texts)
        if any(embedder.refuses in text for text in texts):
            raise TextRefused("too long")
        return vectors

    monkeypatch.setattr(embedder, "embed", refuse)
    return embedder


@pytest.fixture
def ana():
    return Memory.objects.for_owner("ana")


def bad():
    return Memory.objects.get(content__contains="bad")


def make_due():
    Memory.objects.exclude(failure="").update(not_before=timezone.now() - timedelta(seconds=1))


def test_is_noted_on_its_row(ana):
    ana.remember(["one", "bad", "two"])
    assert ana.pending() == 1
    assert (bad().attempts, bad().failure) == (1, "too long")
    assert timezone.now() < bad().not_before <= timezone.now() + FIRST_RETRY


def test_noting_it_is_no_reason_to_embed_it_again(ana, picky):
    ana.remember("bad")
    assert len(picky.calls) == 2  # the text, and an innocent one


def test_is_tried_again_after_twice_the_time_up_to_a_day(ana, picky):
    ana.remember("bad")
    for attempt in range(2, 15):
        make_due()
        embed_collection("default", ana.collection)
        assert bad().attempts == attempt
        wait = min(FIRST_RETRY * 2 ** (attempt - 1), LAST_RETRY)
        assert timedelta(0) <= timezone.now() + wait - bad().not_before < timedelta(seconds=20)


def test_a_job_leaves_it_alone_until_it_is_due(ana, picky):
    ana.remember("bad")
    picky.calls.clear()
    embed_collection("default", ana.collection)
    assert picky.calls == []


@pytest.mark.parametrize("asked", ["embed_pending", "memory_pending", "due"])
def test_is_tried_when_due_and_when_asked(ana, picky, asked):
    ana.remember("bad")
    picky.refuses = "worse"
    if asked == "embed_pending":
        assert ana.embed_pending() == 1
    elif asked == "memory_pending":
        assert run("memory_pending", "--embed").code == 0
    else:
        make_due()
        embed_collection("default", ana.collection)
    assert ana.pending() == 0
    assert (bad().attempts, bad().failure, bad().not_before) == (0, "", None)


def test_another_text_starts_anew(picky):
    def store(content):
        default_store().upsert([VectorRecord(collection="c", id="r", content=content)])

    store("bad")
    embed_collection("default", "c")
    store("also bad")
    assert (bad().attempts, bad().failure, bad().not_before) == (0, "", None)
    embed_collection("default", "c")
    assert bad().attempts == 1
    store("good")
    embed_collection("default", "c")
    assert Memory.objects.unembedded().count() == 0


def test_more_of_them_than_a_batch_hold_up_nothing(ana, picky, monkeypatch):
    monkeypatch.setattr(picky, "batch_size", 4)
    ana.remember([f"bad {number}" for number in range(9)])
    make_due()
    picky.calls.clear()
    default_store().upsert([VectorRecord(collection=ana.collection, id="x", content="fine")])
    embed_collection("default", ana.collection)
    assert ana.pending() == 9
    assert set(Memory.objects.exclude(failure="").values_list("attempts", flat=True)) == {2}


def test_that_are_due_again_while_a_job_runs_do_not_end_it(ana, picky, monkeypatch):
    embed = picky.embed

    def embed_and_make_due(texts):
        vectors = embed(texts)
        make_due()
        return vectors

    texts = [f"bad {number}" for number in range(2)] + [f"fine {number}" for number in range(4)]
    monkeypatch.setattr(picky, "failure", ConnectionError())
    ana.remember(texts)
    monkeypatch.setattr(picky, "failure", None)
    monkeypatch.setattr(picky, "batch_size", 2)
    monkeypatch.setattr(picky, "embed", embed_and_make_due)
    embed_collection("default", ana.collection)
    assert {row.content for row in ana.records().unembedded()} == {"bad 0", "bad 1"}


def test_the_pending_command_counts_them_by_kind(ana):
    ana.remember(["bad one", "bad two", "fine"])
    out = run("memory_pending").out
    assert "Can't be embedded: 2 × too long. The next try is due in less than a minute." in out
    Memory.objects.filter(content="bad two").update(failure="unusable vector")
    make_due()
    out = run("memory_pending").out
    assert "Can't be embedded: 1 × too long, 1 × unusable vector. The next try is due now." in out


def test_the_admin_shows_them(ana, admin_client):
    ana.remember(["bad one", "fine"])
    page = admin_client.get(f"/admin/prism_memory/memory/{bad().pk}/change/").content.decode()
    assert "too long" in page
    assert "failed attempts" in page.lower()
    for failed, count in (("yes", 1), ("no", 1)):
        page = admin_client.get("/admin/prism_memory/memory/", {"failed": failed})
        rows = page.context["cl"].result_list
        assert [row.failure != "" for row in rows] == [failed == "yes"] * count
