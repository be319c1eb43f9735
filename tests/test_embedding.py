"""What an embedder returns or raises, checked in one place for every embedder."""

from __future__ import annotations

import logging
from decimal import Decimal

import numpy as np
import pytest

from prism_memory.answers import Ask, answers, embed_question
from prism_memory.embedders import Embedder
from prism_memory.exceptions import EmbeddingInvalid, EmbeddingUnavailable, TextRefused
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


def answered(embedder, texts, deadline=None) -> list[Vector | str]:
    """A vector, or the kind of failure, for every text."""
    found: dict[int, Vector | str] = {}
    for brought in answers(embedder, texts, Ask(deadline)):
        found.update(brought)
    return [found[position] for position in range(len(texts))]


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
    try:
        found = answered(Answering(answer), ["one", "two"])
    except EmbeddingInvalid as error:
        assert_silent(error)
    else:
        assert {"unusable vector", "no vector"} & {each for each in found if isinstance(each, str)}


class Scripted(Embedder):
    """Calls a function with the texts, and keeps them."""

    space = "scripted@1"

    def __init__(self, script) -> None:
        self.script = script
        self.calls: list[list[str]] = []

    def embed(self, texts):
        self.calls.append(list(texts))
        return self.script(texts)


def ones(texts):
    return [[float(len(text))] for text in texts]


class TestOneBadText:
    def test_is_found_by_splitting_and_the_rest_is_embedded(self):
        def refuse(texts):
            if "bad" in texts:
                raise TextRefused("too long")
            return ones(texts)

        texts = [f"{n}" * (n % 5 + 1) for n in range(95)] + ["bad"]
        embedder = Scripted(refuse)
        found = answered(embedder, texts)
        assert found[:95] == [Vector.of(row) for row in ones(texts[:95])]
        assert found[95] == "too long"
        # One call, one to see whether anything is refused, and two a halving.
        assert len(embedder.calls) <= 2 + 2 * 7

    def test_does_not_take_a_batch_apart_when_anything_is_refused(self):
        def refuse(texts):
            raise TextRefused("wrong model")

        embedder = Scripted(refuse)
        with pytest.raises(EmbeddingUnavailable, match="wrong model"):
            answered(embedder, ["text"] * 96)
        assert len(embedder.calls) == 2

    def test_an_unusable_vector_costs_no_second_call(self):
        embedder = Scripted(lambda texts: [[1.0], [float("nan")], [2.0]])
        assert answered(embedder, ["one", "two", "three"]) == [
            Vector.of([1.0]),
            "unusable vector",
            Vector.of([2.0]),
        ]
        assert len(embedder.calls) == 1

    def test_what_was_paid_for_before_the_provider_failed_is_kept(self):
        def fail(texts):
            if len(texts) > 1 and "bad" in texts:
                raise TextRefused("too long")
            if texts == ["bad"]:
                raise ConnectionError
            return ones(texts)

        brought = answers(Scripted(fail), ["a", "b", "c", "bad"], Ask())
        assert next(brought) == [(0, Vector.of([1.0])), (1, Vector.of([1.0]))]
        assert next(brought) == [(2, Vector.of([1.0]))]
        with pytest.raises(EmbeddingUnavailable):
            next(brought)


class TestMiscounting:
    """Without numbers, nobody can tell which text a vector belongs to."""

    def test_of_batches_makes_the_texts_go_alone(self):
        embedder = Scripted(lambda texts: ones(texts)[: max(1, len(texts) - 1)])
        assert answered(embedder, ["a", "bb", "ccc"]) == [
            Vector.of([1.0]),
            Vector.of([2.0]),
            Vector.of([3.0]),
        ]

    @pytest.mark.parametrize("rows", [[], [[1.0], [1.0]]], ids=["none", "two"])
    def test_of_any_text_is_the_providers_fault(self, rows):
        embedder = Scripted(lambda texts: rows)
        with pytest.raises(EmbeddingInvalid, match="miscounted"):
            answered(embedder, ["a"])

    def test_of_one_text_is_that_texts_failure(self):
        embedder = Scripted(lambda texts: [] if texts == ["a"] else ones(texts))
        assert answered(embedder, ["a"]) == ["miscounted"]


def test_what_ends_a_job_is_no_failure_of_the_provider():
    class TimeIsUp(Exception):
        pass

    def stop(texts):
        raise TimeIsUp

    with pytest.raises(TimeIsUp):
        list(answers(Scripted(stop), ["a"], Ask(interrupts=(TimeIsUp,))))


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
    assert answered(Answering(rows), ["one", "two"]) == expected


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
            answered(Answering(failure), [TEXT], deadline)
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
            answered(Answering(KeyboardInterrupt()), ["one"])


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
