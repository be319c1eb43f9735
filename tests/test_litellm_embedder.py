"""LiteLLMEmbedder through the real litellm, against a small server that speaks OpenAI's format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from prism_memory.answers import Ask, answers, embed_question
from prism_memory.embedders import TEXT_FORMAT, LiteLLMEmbedder
from prism_memory.exceptions import ConfigurationError, EmbeddingInvalid, EmbeddingUnavailable
from tests.openai_server import KEY, Server, item, numbered

TEXT = "SECRET TEXT"


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def server(running: Server) -> Server:
    running.reset()
    return running


def embedder(server: Server, **options: Any) -> LiteLLMEmbedder:
    options = {"model": "text-embedding-3-small", "api_key": KEY, **options}
    return LiteLLMEmbedder(api_base=server.url, **options)


def embed_texts(embedder: LiteLLMEmbedder, texts: list[str]) -> list[Any]:
    """The checked answers, by text; a failure of one text's own is a string."""
    found = [answer for part in answers(embedder, texts, Ask()) for answer in part]
    return [answer for _, answer in sorted(found, key=lambda each: each[0])]


def first_numbers(vectors: Any) -> list[float]:
    return [float(vector.values[0]) for vector in vectors]


class TestRequests:
    def test_nothing_optional_is_sent(self, server: Server) -> None:
        embed_texts(embedder(server), ["a", "b"])
        (asked,) = server.asked
        assert asked == {"model": "text-embedding-3-small", "input": ["a", "b"]}
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"

    def test_options_are_passed_on(self, server: Server) -> None:
        embed_texts(embedder(server, dimensions=2, timeout=9, user="u-1"), ["a"])
        (asked,) = server.asked
        assert (asked["dimensions"], asked["user"]) == (2, "u-1")

    def test_what_litellm_gets(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import litellm

        given: dict[str, Any] = {}

        class Response:
            data = [item(0, 1.0, 1.0)]

        def embedding(**arguments: Any) -> Response:
            given.update(arguments)
            return Response()

        monkeypatch.setattr(litellm, "embedding", embedding)
        LiteLLMEmbedder(model="m", batch_size=4).embed(("a",))
        assert given == {"model": "m", "input": ["a"]}
        LiteLLMEmbedder(model="m", timeout=2.5, dimensions=8, drop_params=True).embed(["a"])
        assert given == {
            "model": "m", "input": ["a"], "timeout": 2.5, "dimensions": 8, "drop_params": True,
        }  # fmt: skip

    def test_a_whole_batch_is_one_request(self, server: Server) -> None:
        texts = [f"text {n}" for n in range(96)]
        assert embedder(server).batch_size == 96
        assert first_numbers(embed_texts(embedder(server), texts)) == list(range(96))
        assert [len(asked["input"]) for asked in server.asked] == [96]

    def test_a_question_is_one_text(self, server: Server) -> None:
        assert len(embed_question(embedder(server), "why?")) == 2
        assert server.asked[0]["input"] == ["why?"]


class TestAnswers:
    def test_the_order_is_restored(self, server: Server) -> None:
        server.answer = lambda texts: numbered(texts)[::-1]
        assert first_numbers(embed_texts(embedder(server), ["a", "b", "c"])) == [0, 1, 2]

    @pytest.mark.parametrize("indices", [[0, 0], [1, 2], [0, None], [-1, 0], [0, 2]])
    def test_items_that_are_not_numbered_are_refused(
        self, server: Server, indices: list[Any]
    ) -> None:
        server.answer = lambda texts: [item(index, 1.0, 1.0) for index in indices]
        with pytest.raises(EmbeddingUnavailable):
            embed_texts(embedder(server), ["a", "b"])

    @pytest.mark.parametrize("count", [0, 3])
    def test_fewer_or_more_are_refused(self, server: Server, count: int) -> None:
        server.answer = lambda texts: numbered(["x"] * count)
        with pytest.raises(EmbeddingInvalid):
            embed_texts(embedder(server), ["a", "b"])
        with pytest.raises(EmbeddingInvalid, match=f"{count} vectors for 1 texts"):
            embed_question(embedder(server), "a")

    @pytest.mark.parametrize(
        "vector", ["AACAPwAA", "%", [], None, [None, 1.0], [0.0, 0.0], [[1.0]], {"a": 1}]
    )
    def test_what_is_no_vector_is_refused(self, server: Server, vector: object) -> None:
        server.answer = lambda texts: [{"object": "embedding", "index": 0, "embedding": vector}]
        with pytest.raises(EmbeddingUnavailable):
            embed_question(embedder(server), "a")

    def test_different_widths_are_refused(self, server: Server) -> None:
        server.answer = lambda texts: [item(0, 1, 1), item(1, 1, 2, 3)]
        with pytest.raises(EmbeddingInvalid, match="widths"):
            embed_texts(embedder(server), ["a", "b"])

    @pytest.mark.parametrize("status", [400, 401, 403, 413, 422])
    def test_a_failure_tells_neither_text_nor_key(self, server: Server, status: int) -> None:
        server.status = status
        with pytest.raises(EmbeddingUnavailable) as caught:
            embed_texts(embedder(server, max_retries=1), [TEXT])
        error: BaseException | None = caught.value
        assert ("too long" if status == 413 else f"HTTP {status}") in str(error)
        while error is not None:
            assert "SECRET" not in repr(error) + str(error)
            error = error.__cause__ or error.__context__


class TestSpace:
    def test_names_model_width_endpoint_and_format(self) -> None:
        def space(**options: Any) -> str:
            return LiteLLMEmbedder(**{"model": "m", **options}).space

        spaces = [
            space(),
            space(model="n"),
            space(dimensions=256),
            space(api_base="https://example.com/v1"),
            space(api_base="https://example.com/v2"),
            space(api_base="https://example.com:8443/v1"),
            space(api_base="https://example.org/v1"),
        ]
        assert len(set(spaces)) == len(spaces)
        assert all(each.endswith(TEXT_FORMAT) for each in spaces)
        assert space(dimensions=256).startswith("m@256")

    def test_keeps_when_nothing_of_the_vectors_changes(self) -> None:
        plain = LiteLLMEmbedder(model="m", api_base="https://example.com/v1")
        other = LiteLLMEmbedder(
            model="m", api_base="https://example.com/v1/", batch_size=8, timeout=3, api_key=KEY
        )
        assert plain.space == other.space

    def test_holds_no_credentials(self) -> None:
        base = f"https://user:{KEY}@Example.com/v1?key={KEY}#{KEY}"
        made = LiteLLMEmbedder(model="m", api_base=base, api_key=KEY)
        assert "SECRET" not in made.space
        assert "user" not in made.space
        assert "example.com/v1" in made.space

    @pytest.mark.parametrize(
        "base", ["", "example.com/v1", f"user:{KEY}@example.com", "http://", 7]
    )
    def test_an_endpoint_is_a_url(self, base: Any) -> None:
        with pytest.raises(ConfigurationError, match="api_base") as caught:
            LiteLLMEmbedder(model="m", api_base=base)
        assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [{"model": ""}, {"model": None}, {"dimensions": 0}, {"batch_size": 0}, {"batch_size": True}],
)
def test_unusable_options_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        LiteLLMEmbedder(**{"model": "m", **options})
