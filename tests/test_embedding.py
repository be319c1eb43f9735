"""What an embedder returns or raises, checked in one place for every embedder."""

from __future__ import annotations

import logging
from decimal import Decimal

import numpy as np
import pytest

from prism_memory.embedders import Embedder
from prism_memory.embedding import embed_question, embed_texts
from prism_memory.exceptions import EmbeddingInvalid, EmbeddingUnavailable
from prism_memory.models import Embedding
from prism_memory.vectors import Vector

TEXT = "TEXT-4711"
KEY = "sk-KEY-4711"


class Answering(Embedder):
    """Answers with what it is given, or raises it."""

    space = "answering@2"

    def __init__(self, answer) -> None:
        self.answer = answer

    def embed(self, texts):
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class APIError(Exception):
    """Looks like those of openai: it quotes what it was sent, and with which key."""

    status_code = 429

    def __init__(self) -> None:
        super().__init__(f"Bearer {KEY} may not embed {TEXT}")
        self.request = KEY


def chain(error: BaseException) -> list[BaseException]:
    """An exception with everything that a log or an error page would show with it."""
    seen: list[BaseException] = []
    left: list[BaseException | None] = [error]
    while left:
        found = left.pop()
        if found is not None and found not in seen:
            seen.append(found)
            left += [found.__cause__, found.__context__]
    return seen


def assert_silent(error: BaseException) -> None:
    for part in chain(error):
        shown = f"{part!r} {part} {vars(part)} {getattr(part, '__notes__', '')}"
        assert TEXT not in shown
        assert KEY not in shown


UNUSABLE = {
    "too few": [[1.0, 2.0]],
    "too many": [[1.0, 2.0]] * 3,
    "none": [],
    "nothing": None,
    "a number": 5,
    "a generator": (row for row in [[1.0], [2.0]]),
    "a dict": {"data": 1, "usage": 2},
    "texts": [TEXT, TEXT],
    "words": [[TEXT, KEY], [TEXT, KEY]],
    "nulls": [None, None],
    "rows of null": [[None, 1.0], [1.0, 2.0]],
    "nested": [[[1.0]], [[1.0]]],
    "empty rows": [[], []],
    "NaN": [[float("nan"), 1.0], [1.0, 2.0]],
    "inf": [[1.0, 2.0], [float("inf"), 1.0]],
    "zero": [[1.0, 2.0], [0.0, 0.0]],
    "overflow": [[1e200, 1e200], [1.0, 2.0]],
    "huge": [[10**400, 1], [1.0, 2.0]],
    "widths": [[1.0, 2.0], [1.0, 2.0, 3.0]],
    "base64": ["AAAAAAAA8D8=", "AAAAAAAA8D8="],
}


@pytest.mark.parametrize("answer", UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_answer_is_refused(answer):
    with pytest.raises(EmbeddingInvalid) as caught:
        embed_texts(Answering(answer), ["one", "two"])
    assert_silent(caught.value)


@pytest.mark.parametrize(
    "rows",
    [
        [[3, 4], [1, 0]],
        [["3", "4.0"], ["1", "0"]],
        [(Decimal(3), 4), (1, 0)],
        np.array([[3, 4], [1, 0]], dtype=np.float32),
    ],
    ids=["integers", "strings", "decimals", "array"],
)
def test_numbers_of_other_types_are_converted(rows):
    expected = [Vector.of([3.0, 4.0]), Vector.of([1.0, 0.0])]
    assert embed_texts(Answering(rows), ["one", "two"]) == expected


@pytest.mark.parametrize("answer", [[], [[1.0]] * 2, None, [[0.0, 0.0]], [None]], ids=str)
def test_an_unusable_answer_to_a_question_is_refused(answer):
    with pytest.raises(EmbeddingInvalid):
        embed_question(Answering(answer), "Where do I live?")


def test_an_embedder_may_tell_questions_from_documents():
    class Asking(Answering):
        def embed_query(self, text):
            return [5, 12]

    assert embed_question(Asking(None), "Where?") == Vector.of([5.0, 12.0])
    with pytest.raises(EmbeddingUnavailable):
        embed_question(type("Failing", (Asking,), {"embed_query": None})(None), "Where?")


class TestFailure:
    @pytest.mark.parametrize("deadline", [None, float("1e9")], ids=["waiting", "until"])
    @pytest.mark.parametrize("kind", ["plain", "chained", "our own"])
    def test_is_told_without_the_providers_words(self, deadline, kind):
        failure: BaseException = APIError()
        if kind != "plain":
            try:
                try:
                    raise ValueError(f"{KEY} {TEXT}")
                except ValueError as error:
                    words = "The provider is down."
                    failure = APIError() if kind == "chained" else EmbeddingUnavailable(words)
                    raise failure from error
            except (APIError, EmbeddingUnavailable):
                pass
        with pytest.raises(EmbeddingUnavailable) as caught:
            embed_texts(Answering(failure), [TEXT], deadline=deadline)
        assert_silent(caught.value)
        if kind == "our own":
            assert str(caught.value) == "The provider is down."
        else:
            assert "APIError (HTTP 429)" in str(caught.value)

    def test_of_a_question_too(self):
        with pytest.raises(EmbeddingUnavailable) as caught:
            embed_question(Answering(APIError()), TEXT)
        assert_silent(caught.value)

    def test_that_ends_the_process_is_not_caught(self):
        with pytest.raises(KeyboardInterrupt):
            embed_texts(Answering(KeyboardInterrupt()), ["one"])


@pytest.mark.django_db
class TestSynchronously:
    def test_a_failure_is_raised_with_the_records_stored(self, memory, embedder, caplog):
        caplog.set_level(logging.DEBUG)
        embedder.failure = APIError()
        with pytest.raises(EmbeddingUnavailable) as caught:
            memory.remember(["one", TEXT])
        assert_silent(caught.value)
        assert TEXT not in caplog.text
        assert KEY not in caplog.text
        assert (memory.count(), memory.pending()) == (2, 2)
        embedder.failure = None
        assert memory.embed_pending() == 2

    @pytest.mark.parametrize("rows", [[], [[1.0] * 64] * 3, [[0.0] * 64], [[float("nan")] * 64]])
    def test_an_unusable_answer_leaves_the_records_pending(
        self, memory, embedder, monkeypatch, rows
    ):
        monkeypatch.setattr(embedder, "embed", lambda texts: rows)
        with pytest.raises(EmbeddingInvalid):
            memory.remember(TEXT)
        assert (memory.count(), memory.pending()) == (1, 1)
        assert not Embedding.objects.exists()

    def test_a_failing_recall_is_no_empty_answer(self, memory, embedder):
        memory.remember("one")
        embedder.failure = APIError()
        with pytest.raises(EmbeddingUnavailable) as caught:
            memory.recall(f"one {TEXT}")
        assert_silent(caught.value)

    def test_the_name_is_embedded_with_the_text(self, memory, embedder):
        memory.remember({"role": "user", "name": "ana", "content": "I live in Graz."})
        assert embedder.calls == [["ana: I live in Graz."]]
