"""memory_pending: what waits for its vector, since when, and embedding it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from prism_memory.exceptions import EmbeddingUnavailable, TextRefused
from prism_memory.management import backlog, paging
from prism_memory.models import Memory
from prism_memory.stores import VectorRecord, default_store

from .commands import misused, run
from .queues import RECORDING

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting(user, embedder):
    """A handle whose records wait: nothing commits in these tests."""
    return Memory.objects.for_owner(user, scope="support")


def stored_ago(handle, **ago):
    handle.records().update(created_at=timezone.now() - timedelta(**ago))


def test_nothing_waits(memory):
    memory.remember("embedded at once")
    ran = run("memory_pending")
    assert ran.code == 0
    assert ran.out.startswith("Nothing waits for a vector in the space fake@64/")


def test_the_backlog_is_listed_by_collection_oldest_first(waiting, user):
    waiting.remember(["one", "two"])
    stored_ago(waiting, days=3)
    default_store().upsert([VectorRecord(collection="handbook", id="h-1", content="three")])
    Memory.objects.filter(collection="handbook").update(
        created_at=timezone.now() - timedelta(days=9)
    )
    Memory.objects.for_owner("session 7").remember("four")
    out = run("memory_pending").out.splitlines()
    assert out[0].endswith(": 4 memories in 3 collections, the oldest for 9 days.")
    assert [line.split() for line in out[1:4]] == [
        ["1", "9", "days", "handbook"],
        ["2", "3", "days", f"auth.User:{user.pk}", "in", "support"],
        ["1", "less", "than", "a", "minute", "'session", "7'", "in", "default"],
    ]


def test_the_age_is_that_of_the_oldest_record_not_of_what_it_tells(waiting):
    waiting.remember("long ago", occurred_at="1999-01-01")
    waiting.remember("just now")
    waiting.records().filter(content="just now").update(
        created_at=timezone.now() - timedelta(hours=5)
    )
    assert "the oldest for 5 hours." in run("memory_pending").out


def test_the_list_is_limited_and_says_what_it_leaves_out(waiting):
    for owner in ("a", "b", "c"):
        Memory.objects.for_owner(owner).remember("hello")
    out = run("memory_pending", "--limit", "1").out
    assert "3 memories in 3 collections" in out
    assert out.count("in default") == 1
    assert "and 2 collections more" in out


def test_what_has_expired_does_not_wait(waiting):
    waiting.remember("over")
    waiting.records().update(expires_at=timezone.now())
    assert "Nothing waits" in run("memory_pending").out


def test_a_vector_in_another_space_does_not_count(memory, settings):
    memory.remember("embedded by the model before")
    settings.PRISM_MEMORY = {
        "EMBEDDER": {
            "BACKEND": "prism_memory.testing.FakeEmbedder",
            "OPTIONS": {"dimensions": 32},
        }
    }
    assert "1 memory in 1 collection" in run("memory_pending").out
    run("memory_pending", "--embed")
    assert memory.pending() == 0


@pytest.mark.parametrize(
    ("queue", "decision", "named"),
    [
        ("inline", 'inline, after the commit (QUEUE is "inline")', "'inline'"),
        ("auto", "inline, after the commit (django-rq is not configured: there is no", "'auto'"),
        ("slow", "on the queue 'slow' (django-rq is not configured: there is no", "'slow'"),
        (RECORDING, "on the queue 'recording' (a test asks for it)", "'tests.queues.Rec"),
    ],
    ids=["inline", "auto", "named", "backend"],
)
def test_it_says_where_embedding_runs_and_why(db, settings, queue, decision, named):
    settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "QUEUE": queue}
    out = run("memory_pending").out
    assert f"Embedding runs {decision}" in out
    assert f'PRISM_MEMORY["QUEUE"] is {named}' in out


def test_embed_embeds_everything(waiting, embedder):
    waiting.remember(["one", "two"])
    default_store().upsert([VectorRecord(collection="handbook", id="h-1", content="three")])
    ran = run("memory_pending", "--embed", "--fail-over", "0")
    assert ran.code == 0
    assert ran.out.startswith("Embedded 3 memories.\nNothing waits")
    assert waiting.pending() == 0
    assert default_store().count("handbook", embedded_only=True) == 1


def test_collections_are_paged_through(waiting, embedder, monkeypatch):
    monkeypatch.setattr(paging, "PAGE", 2)
    for owner in "abcde":
        Memory.objects.for_owner(owner).remember("hello")
    assert run("memory_pending", "--embed").out.startswith("Embedded 5 memories.")


def test_embedding_shows_its_progress_on_a_terminal_only(waiting):
    waiting.remember(["one", "two"])
    assert run("memory_pending", "--embed", terminal=False).err == ""
    waiting.remember("three")
    assert "Embedding [" in run("memory_pending", "--embed", terminal=True).err


def test_the_bar_moves_after_every_batch(waiting, embedder, monkeypatch):
    monkeypatch.setattr("prism_memory.management.progress.SECONDS_BETWEEN_DRAWINGS", 0)
    monkeypatch.setattr(embedder, "batch_size", 1)
    waiting.remember(["one", "two"])
    err = run("memory_pending", "--embed", terminal=True).err
    assert err.index("0 of 2") < err.index("1 of 2") < err.index("2 of 2")


def test_a_failing_provider_is_reported_with_what_was_done_and_what_waits(
    waiting, embedder, monkeypatch
):
    def second_call_fails(texts):
        embedder.calls.append(texts)
        if len(embedder.calls) > 1:
            raise OSError("secret words")
        return [embedder.vector(text) for text in texts]

    monkeypatch.setattr(embedder, "batch_size", 1)
    monkeypatch.setattr(embedder, "embed", second_call_fails)
    waiting.remember(["one", "two", "three"])
    ran = run("memory_pending", "--embed")
    assert ran.code == 1
    assert ran.out.startswith("Embedded 1 memory.")
    assert "The embedding provider failed with builtins.OSError" in ran.err
    assert "Still waiting: 2 memories." in ran.err
    assert "secret" not in ran.err + ran.out


def test_failing_collections_do_not_hold_up_the_others(embedder, db, monkeypatch):
    def refuses_poison(texts):
        if "poison" in texts:
            raise EmbeddingUnavailable("Refused.")
        return [embedder.vector(text) for text in texts]

    monkeypatch.setattr(embedder, "embed", refuses_poison)
    for owner in range(12):
        Memory.objects.for_owner(f"owner {owner}").remember("fine")
    # Every other one, in the order in which they are embedded: never too many in a row.
    keys = list(Memory.objects.order_by("collection_key").values_list("pk", flat=True))
    Memory.objects.filter(pk__in=keys[::2]).update(content="poison")
    ran = run("memory_pending", "--embed")
    assert ran.code == 1
    assert ran.out.startswith("Embedded 6 memories.")
    assert "Refused. Still waiting: 6 memories." in ran.err


def test_a_text_that_can_not_be_embedded_is_a_failure_that_holds_up_nothing(
    waiting, embedder, monkeypatch
):
    def refuses_poison(texts):
        if "poison" in texts:
            raise TextRefused("HTTP 400")
        return [embedder.vector(text) for text in texts]

    monkeypatch.setattr(embedder, "embed", refuses_poison)
    waiting.remember(["poison", "one", "two"])
    ran = run("memory_pending", "--embed")
    assert ran.code == 1
    assert ran.out.startswith("Embedded 2 memories.")
    assert "Some texts can't be embedded: 1 × " in ran.err
    assert "Still waiting: 1 memory." in ran.err
    assert "poison" not in ran.out + ran.err


def test_a_provider_that_is_down_is_not_asked_for_every_collection(waiting, embedder):
    for owner in "abcdefgh":
        Memory.objects.for_owner(owner).remember("hello")
    embedder.failure = OSError()
    assert run("memory_pending", "--embed").code == 1
    assert len(embedder.calls) == backlog.PATIENCE


@pytest.mark.parametrize(("most", "code"), [("1", 1), ("2", 0), ("3", 0)])
def test_monitoring_fails_when_more_wait_than_allowed(waiting, most, code):
    waiting.remember(["one", "two"])
    ran = run("memory_pending", "--fail-over", most)
    assert ran.code == code
    assert ("Waiting: 2 memories, more than 1." in ran.err) == (code == 1)


def test_without_a_limit_a_backlog_is_no_failure(waiting):
    waiting.remember("one")
    assert run("memory_pending").code == 0


def test_verbosity_0_says_errors_only(waiting):
    waiting.remember("one")
    ran = run("memory_pending", "--fail-over", "0", "--verbosity", "0")
    assert (ran.out, ran.code) == ("", 1)
    assert run("memory_pending", "--embed", "-v", "0", terminal=True).err == ""


def test_texts_never_appear(waiting, embedder):
    waiting.remember("my secret is mauve")
    embedder.failure = OSError("mauve")
    for arguments in ([], ["--embed"], ["--fail-over", "0"]):
        ran = run("memory_pending", *arguments)
        assert "mauve" not in ran.out + ran.err


def test_names_can_not_steer_the_terminal(embedder, db):
    Memory.objects.for_owner("\x1b[2J", scope="\x1b[31m").remember("hello")
    assert "\x1b" not in run("memory_pending").out


@pytest.mark.parametrize("value", ["-1", "many", "1.5"])
def test_a_number_that_is_none_is_misuse(value):
    assert "is not a whole number" in misused("memory_pending", f"--fail-over={value}")


def test_a_store_that_keeps_its_own_records_is_named(db, settings, monkeypatch):
    from prism_memory.stores import VectorStore

    monkeypatch.setattr("prism_memory.stores.default_store", lambda: VectorStore())
    assert "keeps its own records" in run("memory_pending").err
