"""What is taken from messages, what is skipped, and what is refused."""

from __future__ import annotations

import enum
import subprocess
import sys
from collections import namedtuple
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from django.utils.functional import SimpleLazyObject
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy
from openai.types.chat import ChatCompletion, ChatCompletionMessage

from prism_memory.exceptions import InvalidMessage
from prism_memory.messages import Utterance, utterances
from prism_memory.texts import MAX_CONTENT, MAX_NAME, is_blank

SECRET = "SECRET-4711"
BLANKS = [
    *("", " ", "\n\t\r ", "\u00a0\u3000\u2003\u2028\u2029\x85", "\x1f"),
    *("\u200b", "\ufeff", "\u2060", "\u00ad", "\u200d \u200e", "\u3164", "\u2800", "\ufe0f"),
]
NOT_KEPT = ["system", "developer", "tool", "function"]


@pytest.fixture(scope="session")
def litellm() -> ModuleType:
    import litellm

    return litellm


def one(message: object) -> Utterance:
    [(position, utterance)] = utterances(message)
    assert position == 0
    return utterance


def refusal(messages: object) -> str:
    with pytest.raises(InvalidMessage) as caught:
        utterances(messages)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def test_the_name_is_embedded_with_the_text() -> None:
    assert Utterance("user", "Ann", "hi").embedded_text == "Ann: hi"
    assert Utterance("user", "", "hi").embedded_text == "hi"


class TestShapes:
    def test_a_list_may_mix_them_all(self, litellm: ModuleType) -> None:
        response = litellm.ModelResponse(
            choices=[{"message": {"role": "assistant", "content": "from a response"}}]
        )
        found = utterances(
            [
                {"role": "system", "content": "be kind"},
                {"role": "user", "content": "from a dict"},
                "plain",
                litellm.Message(role="assistant", content="from litellm"),
                response,
                ChatCompletionMessage(role="assistant", content="from openai"),
            ]
        )
        assert list(found) == [
            (1, Utterance("user", "", "from a dict")),
            (2, Utterance("", "", "plain")),
            (3, Utterance("assistant", "", "from litellm")),
            (4, Utterance("assistant", "", "from a response")),
            (5, Utterance("assistant", "", "from openai")),
        ]
        assert found.given == 6

    def test_each_alone(self, litellm: ModuleType) -> None:
        message = {"role": "assistant", "content": "x"}
        wanted = Utterance("assistant", "", "x")
        completion = {"id": "1", "created": 1, "model": "m", "object": "chat.completion"}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        second = {**choice, "index": 1, "message": {"role": "assistant", "content": "y"}}
        assert one(message) == wanted
        assert one(litellm.Message(**message)) == wanted
        assert one(litellm.ModelResponse(choices=[choice, second])) == wanted
        assert one(ChatCompletionMessage(**message)) == wanted
        assert one(ChatCompletion(choices=[choice, second], **completion)) == wanted
        assert one({"choices": [choice], **completion}) == wanted
        assert one(SimpleNamespace(**message)) == wanted
        assert utterances("x").given == utterances(message).given == 1

    def test_a_real_completion(self, litellm: ModuleType) -> None:
        question = [{"role": "user", "content": "?"}]
        response = litellm.completion(model="gpt-4o", messages=question, mock_response="Sure.")
        assert one(response) == Utterance("assistant", "", "Sure.")

    def test_iterables(self) -> None:
        wanted = [(0, Utterance("", "", "a")), (1, Utterance("", "", "b"))]
        assert utterances(("a", "b")) == wanted
        assert utterances(text for text in ("a", "b")) == wanted
        assert utterances({1: "a", 2: "b"}.values()) == wanted
        counted = utterances(text for text in ("a", "", "b", " "))
        assert (counted.given, [position for position, _ in counted]) == (4, [0, 2])

    def test_a_message_that_iterates_is_one_message(self) -> None:
        message = namedtuple("message", ["role", "content"])("user", "x")
        choice = SimpleNamespace(message=message)
        completion = namedtuple("completion", ["choices"])([choice])
        assert one(message) == one(completion) == Utterance("user", "", "x")

    def test_nothing_given_is_nothing(self) -> None:
        assert utterances([]) == []
        assert utterances([]).given == 0

    def test_text_is_kept_verbatim(self) -> None:
        for text in ("  a\r\n\tb ", "e\u0301 \u00e9 \ufb01", "\u200bx", "x" * MAX_CONTENT):
            assert one(text).content == text
            assert one({"role": "user", "content": text}).content == text

    def test_only_plain_strings_come_out(self) -> None:
        class Role(enum.StrEnum):
            USER = "user"

        class Mixed(str, enum.Enum):  # noqa: UP042 - its str() is not its value
            ASSISTANT = "assistant"
            SYSTEM = "system"

        for message, wanted in [
            ({"role": Role.USER, "content": mark_safe("<b>")}, Utterance("user", "", "<b>")),
            ({"role": Mixed.ASSISTANT, "content": "x"}, Utterance("assistant", "", "x")),
            (gettext_lazy("hello"), Utterance("", "", "hello")),
            (SimpleLazyObject(lambda: "hello"), Utterance("", "", "hello")),
            (
                {"role": "user", "name": mark_safe("n"), "content": gettext_lazy("hello")},
                Utterance("user", "n", "hello"),
            ),
        ]:
            found = one(message)
            assert found == wanted
            assert {type(found.role), type(found.name), type(found.content)} == {str}
        assert utterances([{"role": Mixed.SYSTEM, "content": "x"}]) == []

    def test_neither_litellm_nor_openai_is_imported(self) -> None:
        code = (
            "import sys, prism_memory.messages as m; m.utterances([{'role': 'user', 'content': "
            "'x'}]); sys.exit(bool({'litellm', 'openai', 'pydantic'} & set(sys.modules)))"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestContent:
    def test_text_parts_are_joined_by_a_newline(self) -> None:
        parts = [
            {"type": "text", "text": "a"},
            {"type": "image_url", "image_url": {"url": SECRET}},
            SimpleNamespace(type="input_text", text="b"),
            {"type": "output_text", "text": "c\n", "annotations": []},
            "d",
        ]
        assert one({"role": "user", "content": parts}).content == "a\nb\nc\n\nd"
        assert one({"role": "user", "content": tuple(parts)}).content == "a\nb\nc\n\nd"

    @pytest.mark.parametrize(
        "part",
        [
            {"type": "thinking", "thinking": SECRET, "text": SECRET},
            {"type": "redacted_thinking", "data": SECRET},
            {"type": "reasoning", "text": SECRET},
            {"type": "tool_use", "id": "1", "name": "f", "input": {"q": SECRET}},
            {"type": "tool_result", "content": [{"type": "text", "text": SECRET}]},
            {"type": "refusal", "refusal": SECRET},
            {"type": "input_audio", "input_audio": {"data": SECRET}},
            {"type": "document", "source": {"type": "text", "data": SECRET}},
            SimpleNamespace(type="thinking", text=SECRET),
        ],
    )
    def test_other_parts_never_leak(self, part: object) -> None:
        said = {"type": "text", "text": "a"}
        for role in ("user", "assistant"):
            assert one({"role": role, "content": [part, said]}).content == "a"
            assert utterances([{"role": role, "content": [part]}]) == []
            assert "no text" in refusal({"role": role, "content": [part]})

    def test_other_fields_never_leak(self, litellm: ModuleType) -> None:
        extra: dict[str, Any] = {
            "reasoning_content": SECRET,
            "thinking_blocks": [{"type": "thinking", "thinking": SECRET, "signature": "s"}],
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": SECRET}}
            ],
        }
        wanted = Utterance("assistant", "", "x")
        message = {"role": "assistant", "content": "x", **extra}
        assert one(message) == one(litellm.Message(**message)) == wanted
        audio = {"id": "1", "data": "", "expires_at": 1, "transcript": SECRET}
        other = {"role": "assistant", "content": None, "refusal": SECRET, "audio": audio}
        assert utterances([other, ChatCompletionMessage(**other)]) == []

    @pytest.mark.parametrize(
        "extra",
        [
            {"tool_calls": [{"id": "1"}]},
            {"function_call": {"name": "f"}},
            {"refusal": "no"},
            {"audio": {"id": "1"}},
            {"reasoning_content": "why"},
        ],
    )
    def test_an_answer_without_words_is_nothing(self, extra: dict[str, object]) -> None:
        for message in ({"role": "assistant", "content": None, **extra}, {"role": "assistant"}):
            message = {**message, **extra}
            assert list(utterances([message, "x"])) == [(1, Utterance("", "", "x"))]
            assert "nothing to remember" in refusal(message)

    def test_no_content_and_nothing_instead_is_an_unknown_shape(self) -> None:
        problem = refusal(["x", {"role": "user", "text": SECRET}])
        assert "messages[1] (dict)" in problem
        assert "'content'" in problem

    @pytest.mark.parametrize("content", [7, 1.5, True, {"text": SECRET}, SECRET.encode(), {SECRET}])
    def test_other_types_are_refused(self, content: object) -> None:
        problem = refusal(["x", {"role": "user", "content": content}])
        assert f"messages[1] has content of type {type(content).__name__}" in problem

    @pytest.mark.parametrize(
        "part",
        [7, None, {"text": SECRET}, {"type": 7}, {"type": "text", "text": {"value": SECRET}}],
    )
    def test_parts_of_unknown_shapes_are_refused(self, part: object) -> None:
        content = [{"type": "text", "text": "x"}, part]
        assert "the message has a part of content, content[1]" in refusal(
            {"role": "user", "content": content}
        )

    @pytest.mark.parametrize("blank", BLANKS)
    def test_blank_text_is_skipped_in_a_list_and_refused_alone(self, blank: str) -> None:
        assert is_blank(blank)
        message = {"role": "user", "content": blank}
        parts = {"role": "user", "content": [{"type": "text", "text": blank}]}
        assert list(utterances([blank, message, parts, "x"])) == [(3, Utterance("", "", "x"))]
        for alone in (blank, message, parts):
            assert "blank" in refusal(alone)

    def test_visible_text_is_not_blank(self) -> None:
        for text in (".", "\u200b.", "\u0301", "👩‍👩‍👧", "한", "\ue000", "\U000f0000"):
            assert not is_blank(text)


class TestRoles:
    @pytest.mark.parametrize("role", NOT_KEPT)
    def test_others_are_skipped_in_a_list_and_refused_alone(self, role: str) -> None:
        message = {"role": role, "content": SECRET, "name": 7}
        assert list(utterances([message, "x"])) == [(1, Utterance("", "", "x"))]
        problem = refusal(message)
        assert f"'{role}'" in problem
        assert "user and assistant" in problem

    @pytest.mark.parametrize("role", ["human", "ai", "User", "user ", "", "model"])
    def test_unknown_ones_are_refused(self, role: str) -> None:
        problem = refusal(["x", "y", {"role": role, "content": SECRET}])
        assert f"messages[2] has the unknown role {role!r}" in problem
        assert "user, assistant" in problem

    def test_a_long_unknown_role_is_cut(self) -> None:
        assert len(refusal({"role": "x" * 5000, "content": "y"})) < 300

    def test_missing_ones_are_refused(self) -> None:
        for message in ({"content": SECRET}, {"role": None, "content": SECRET}, {}):
            assert "messages[1] is of type dict and has no role" in refusal(["x", message])

    @pytest.mark.parametrize("role", [7, b"user", ["user"]])
    def test_other_types_are_refused(self, role: object) -> None:
        problem = refusal({"role": role, "content": SECRET})
        assert f"a role of type {type(role).__name__}" in problem


class TestUnknownShapes:
    @pytest.mark.parametrize("thing", [7, None, True, 1.5, object(), b"x", {"x"}, frozenset("x")])
    def test_are_refused_with_type_and_position(self, thing: object) -> None:
        name = type(thing).__name__
        assert f"the message is of type {name}" in refusal(thing)
        problem = refusal(["x", thing])
        assert f"messages[1] is of type {name}" in problem
        assert "pass a string, a message with 'role' and 'content'" in problem

    def test_lists_in_lists_are_refused(self) -> None:
        assert "messages[0] is of type list" in refusal([["x"]])

    def test_langchain_is_told_how_to_convert(self) -> None:
        from pydantic import BaseModel

        class HumanMessage(BaseModel):
            type: str = "human"
            content: str = SECRET

        for messages, where in ((HumanMessage(), "the message"), ([HumanMessage()], "messages[0]")):
            problem = refusal(messages)
            assert f"{where} is of type " in problem
            assert "HumanMessage" in problem
            assert "convert_to_openai_messages" in problem
        assert "convert_to_openai_messages" in refusal([{"type": "ai", "content": SECRET}])

    def test_pydantic_ai_is_told_how_to_convert(self) -> None:
        message = SimpleNamespace(parts=[SimpleNamespace(content=SECRET)], kind="request")
        assert "has no role but parts" in refusal([message])

    def test_a_model_without_a_role_is_not_taken_for_a_list_of_its_fields(self) -> None:
        from pydantic import BaseModel

        class Note(BaseModel):
            text: str = SECRET

        assert "the message is of type" in refusal(Note())

    def test_streamed_chunks_and_empty_completions(self, litellm: ModuleType) -> None:
        question = [{"role": "user", "content": "?"}]
        stream = litellm.completion(
            model="gpt-4o", messages=question, mock_response=SECRET, stream=True
        )
        assert "stream_chunk_builder" in refusal(next(iter(stream)))
        assert "messages[0] (dict) has choices" in refusal([{"choices": []}])
        assert "has choices" in refusal({"choices": [{"message": None}]})
        assert "nothing to remember" in refusal(litellm.ModelResponse())


class TestNames:
    @pytest.mark.parametrize("name", [None, *BLANKS])
    def test_blank_ones_count_as_none(self, name: str | None) -> None:
        assert one({"role": "user", "name": name, "content": "x"}) == Utterance("user", "", "x")

    def test_others_are_verbatim(self) -> None:
        for name in (" Ann ", "a|b", "x" * MAX_NAME):
            assert one({"role": "user", "name": name, "content": "x"}).name == name

    @pytest.mark.parametrize("name", [0, 7, b"x", [], {"x": SECRET}])
    def test_other_types_are_refused(self, name: object) -> None:
        problem = refusal([{"role": "user", "name": name, "content": "x"}])
        assert f"messages[0] has a name of type {type(name).__name__}" in problem


class TestWhatNotEveryDatabaseStores:
    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            (f"{SECRET}\x00", "a NUL character at offset 11"),
            (f"{SECRET}\ud83d", "half a surrogate pair at offset 11"),
            ("\x00", "a NUL character at offset 0"),
        ],
    )
    def test_is_refused_with_the_offset(self, text: str, reason: str) -> None:
        assert f"messages[1] has {reason} in its content" in refusal(["x", text])
        assert reason in refusal({"role": "user", "content": text})
        assert f"{reason} in its name" in refusal({"role": "user", "name": text, "content": "x"})

    def test_too_long_is_refused_with_the_length(self) -> None:
        problem = refusal(["x", "y" * (MAX_CONTENT + 1)])
        assert "messages[1] has a content of 1,000,001 characters" in problem
        assert len(problem) < 200
        problem = refusal({"role": "user", "name": "n" * (MAX_NAME + 1), "content": "x"})
        assert "a name of 256 characters" in problem
