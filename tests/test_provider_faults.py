"""What a provider does wrong, over real HTTP and through the real litellm: one outcome each."""

from __future__ import annotations

import base64
import json
import logging
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from prism_memory import backends
from prism_memory.exceptions import EmbeddingUnavailable
from prism_memory.models import Embedding, Memory
from prism_memory.vectors import Vector
from tests.openai_server import KEY, Server, item, malformed, never, numbered, respond, slow_down

pytestmark = pytest.mark.django_db
TEXTS = ["first SECRET", "second SECRET", "third SECRET"]


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def server(running: Server, settings: Any) -> Server:
    running.reset()
    configure(running, settings)
    return running


def configure(server: Server, settings: Any, **options: Any) -> None:
    options = {"model": "text-embedding-3-small", "api_key": KEY, "timeout": 5, **options}
    backend = "prism_memory.embedders.LiteLLMEmbedder"
    options.setdefault("api_base", server.url)
    settings.PRISM_MEMORY = {"EMBEDDER": {"BACKEND": backend, "OPTIONS": options}}


@pytest.fixture
def memory() -> Any:
    """A handle whose memories wait: nothing commits in these tests."""
    handle = Memory.objects.for_owner("ana")
    handle.remember(TEXTS)
    return handle


def failures(memory: Any) -> dict[str, str]:
    return dict(memory.records().exclude(failure="").values_list("content", "failure"))


def vectors() -> list[Vector]:
    rows = Embedding.objects.order_by("memory__occurred_at")
    return [Vector.from_bytes(row.vector) for row in rows]


@pytest.mark.parametrize(
    ("faults", "requests"),
    [
        pytest.param([], 1, id="none"),
        pytest.param([500], 2, id="500, then fine"),
        pytest.param([503, 503], 3, id="503 twice, then fine"),
        pytest.param([slow_down], 2, id="429 with Retry-After, then fine"),
        pytest.param([never], 2, id="time-out, then fine"),
    ],
)
def test_is_asked_again_and_everything_is_embedded(server, settings, memory, faults, requests):
    configure(server, settings, timeout=0.2 if never in faults else 5)
    server.faults = list(faults)
    assert memory.embed_pending() == 3
    assert memory.pending() == 0
    assert len(server.asked) == requests


@pytest.mark.parametrize(
    ("faults", "requests"),
    [
        pytest.param([500] * 9, 3, id="500"),
        pytest.param([slow_down] * 9, 3, id="429"),
        pytest.param([never] * 9, 3, id="time-out"),
        pytest.param([malformed] * 9, 1, id="malformed JSON"),
        pytest.param([401] * 9, 1, id="401"),
        pytest.param([403] * 9, 1, id="403"),
    ],
)
def test_a_provider_that_stays_down_leaves_everything_pending(
    server, settings, memory, faults, requests, caplog
):
    caplog.set_level(logging.DEBUG)
    configure(server, settings, timeout=0.2 if never in faults else 5)
    server.faults = list(faults)
    with pytest.raises(EmbeddingUnavailable) as caught:
        memory.embed_pending()
    assert len(server.asked) <= requests
    assert (memory.count(), memory.pending(), failures(memory)) == (3, 3, {})
    assert_silent(caught.value, caplog)


def test_a_refused_connection_leaves_everything_pending(server, settings, memory):
    configure(server, settings, api_base="http://127.0.0.1:9/v1")
    with pytest.raises(EmbeddingUnavailable):
        memory.embed_pending()
    assert memory.pending() == 3


def test_shuffled_answers_are_put_in_order(server, memory):
    server.answer = lambda texts: numbered(texts)[::-1]
    assert memory.embed_pending() == 3
    assert vectors() == [Vector.of([float(n), 1.0]) for n in range(3)]


def test_of_a_short_answer_what_is_numbered_is_kept(server, memory):
    server.answer = lambda texts: [item(0, 1.0), item(2, 2.0)]
    assert memory.embed_pending() == 2
    assert failures(memory) == {TEXTS[1]: "no vector"}
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "indices",
    [[0, 1, 2, 3], [0, 0, 1], [0, 0, 0], [0, None, 1], [1, 2, 3]],
    ids=["more", "repeated", "all the same", "one missing", "from one"],
)
def test_an_answer_that_cant_be_told_apart_is_refused_whole(server, memory, indices):
    server.answer = lambda texts: [item(index, 1.0, 2.0) for index in indices]
    with pytest.raises(EmbeddingUnavailable):
        memory.embed_pending()
    assert (memory.pending(), failures(memory), len(server.asked)) == (3, {}, 1)


def test_an_answer_without_numbers_is_taken_in_its_order(server, memory):
    server.answer = lambda texts: [item(None, float(n)) for n in range(1, 4)]
    assert memory.embed_pending() == 3
    assert vectors() == [Vector.of([float(n)]) for n in range(1, 4)]


def test_base64_is_decoded(server, settings, memory):
    packed = base64.b64encode(struct.pack("<2f", 0.5, -2.0)).decode()
    configure(server, settings, encoding_format="base64")
    server.answer = lambda texts: [
        {**item(index), "embedding": packed} for index in range(len(texts))
    ]
    assert memory.embed_pending() == 3
    assert server.asked[0]["encoding_format"] == "base64"
    assert vectors() == [Vector.of([0.5, -2.0])] * 3


def test_integers_and_numeric_strings_are_converted(server, memory):
    server.answer = lambda texts: [item(0, 1, 2), item(1, "0.5", "1e-3"), item(2, 3, "4")]
    assert memory.embed_pending() == 3
    assert vectors() == [Vector.of([1.0, 2.0]), Vector.of([0.5, 0.001]), Vector.of([3.0, 4.0])]


@pytest.mark.parametrize("numbers", [(float("nan"), 1.0), (0.0, 0.0), (None, 1.0), ()], ids=str)
def test_an_unusable_vector_is_that_texts_failure_alone(server, memory, numbers):
    server.answer = lambda texts: [item(0, 1.0, 1.0), item(1, *numbers), item(2, 2.0, 1.0)]
    assert memory.embed_pending() == 2
    assert failures(memory) == {TEXTS[1]: "unusable vector"}
    assert len(server.asked) == 1


def test_another_width_is_refused_whole(server, memory):
    assert memory.embed_pending() == 3
    memory.remember("fourth")
    server.answer = lambda texts: [item(index, 1.0, 2.0, 3.0) for index in range(len(texts))]
    with pytest.raises(Exception, match="width"):
        memory.embed_pending()
    assert (memory.count(), memory.pending()) == (4, 1)


def test_another_models_name_is_taken_for_the_same_model(server, memory):
    server.model = "text-embedding-3-small-2026"
    assert memory.embed_pending() == 3
    assert Embedding.objects.first().space.name.startswith("text-embedding-3-small@")


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "This model's maximum context length is 8192 tokens.", "too long"),
        (413, "Payload too large", "too long"),
        (422, "Unprocessable", "refused with HTTP 422"),
        (400, "Your input was rejected", "refused with HTTP 400"),
    ],
)
def test_a_refused_text_is_found_and_the_rest_is_embedded(
    server, memory, caplog, status, message, kind
):
    caplog.set_level(logging.DEBUG)
    server.message = message

    def refuse(handler: Any, body: dict[str, Any]) -> None:
        if TEXTS[1] in body["input"]:
            respond(handler, status, server.refusal(body))
        else:
            respond(handler, 200, json.dumps({"data": numbered(body["input"]), "model": "m"}))

    server.faults = [refuse] * 20
    assert memory.embed_pending() == 2
    assert failures(memory) == {TEXTS[1]: kind}
    assert_silent(None, caplog)


def test_a_provider_that_refuses_anything_is_not_asked_text_by_text(server, memory):
    server.status, server.message = 400, "no such model"
    with pytest.raises(EmbeddingUnavailable, match="any text"):
        memory.embed_pending()
    assert len(server.asked) == 2
    assert failures(memory) == {}


def test_a_text_that_is_too_long_is_cut_only_when_asked_to(server, settings):
    from prism_memory.tokens import TiktokenCounter

    handle = Memory.objects.for_owner("ana")
    handle.remember("word " * 9_000)
    configure(server, settings, truncate=True)
    assert handle.embed_pending() == 1
    (sent,) = server.asked[0]["input"]
    assert TiktokenCounter(encoding="cl100k_base").count(sent) == 8_191
    assert ("word " * 9_000).startswith(sent)


def test_cutting_needs_a_known_limit(server, settings, memory):
    configure(server, settings, model="openai/of-our-own", truncate=True)
    with pytest.raises(Exception, match="truncate"):
        backends.embedder().embed(["a"])
    assert server.asked == []


def assert_silent(error: BaseException | None, caplog: pytest.LogCaptureFixture) -> None:
    # litellm's own logger, at DEBUG, is the host's to configure.
    ours = [record for record in caplog.records if record.name.startswith("prism_memory")]
    assert "SECRET" not in " ".join(record.getMessage() for record in ours)
    while error is not None:
        assert "SECRET" not in repr(error) + str(error)
        error = error.__cause__ or error.__context__
