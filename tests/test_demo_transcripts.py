"""Reading transcripts for the demo."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from example_project.demo.transcripts import LONGEST, TranscriptError, read


def said(content="Hello.", role="user", **others):
    return {"role": role, "content": content, **others}


@pytest.fixture
def given(tmp_path):
    """Read what a file would hold; a text as it is, anything else as JSON."""

    def given(text, name="chat.json"):
        path = tmp_path / name
        path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        return read(path)

    return given


def test_a_list_is_one_conversation_named_after_the_file(given):
    [transcript] = given([said("One."), said("Two.", "assistant"), said("Skipped.", "system")])
    assert transcript.name == "chat"
    assert [message["content"] for message in transcript.messages] == ["One.", "Two.", "Skipped."]
    assert transcript.size == 2
    assert transcript.span is None
    assert len(transcript.sessions) == 1


def test_lines_are_conversations_with_names_of_their_own(given):
    lines = [{"conversation": name, "messages": [said()]} for name in ("a", "a", "", 7)]
    text = "\n\n".join(map(json.dumps, lines)) + "\n"
    assert [each.name for each in given(text)] == ["a", "a (2)", "chat", "7"]


def test_a_single_object_may_spread_over_lines(given):
    [transcript] = given(json.dumps({"conversation": "b", "messages": [said()]}, indent=2))
    assert transcript.name == "b"


def test_a_name_holds_nothing_that_a_terminal_obeys(given):
    [transcript] = given({"conversation": "\x1b[31m\nred" + "d" * 99, "messages": [said()]})
    assert transcript.name == ("[31mred" + "d" * 99)[:40]


def test_silence_begins_a_session(given):
    times = ("2024-03-01T10:00:00Z", "2024-03-01T12:59:00Z", None, "2024-03-01T16:00:00Z")
    [transcript] = given([said(str(t), occurred_at=t) for t in times])
    assert [len(session.messages) for session in transcript.sessions] == [3, 1]
    assert transcript.sessions[0].began == datetime(2024, 3, 1, 10, tzinfo=UTC)
    assert transcript.sessions[0].moments[2] is None
    first, last = transcript.span
    assert last - first == timedelta(hours=6)


def test_a_long_session_is_cut(given):
    [transcript] = given([said(str(number)) for number in range(LONGEST + 1)])
    assert [len(session.messages) for session in transcript.sessions] == [LONGEST, 1]


def test_a_repeat_counts_once(given):
    [transcript] = given([said(), said(), said(role="assistant")])
    assert transcript.size == 2


def test_questions_know_what_answers_them(given):
    [transcript] = given(
        {
            "messages": [said("Blue.", id=1), said([], id=2)],
            "questions": [{"question": "Which?", "evidence": [1, 2, 3]}, {"question": "Who?"}],
        }
    )
    known, unknown = transcript.questions
    assert known.evidence == {("user", "Blue.")}
    assert unknown.evidence == frozenset()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[{"role": "user", "content": "secret"', "at line 1, column 38"),
        ('{"messages": []}\n{"messages": [secret]}', "at line 2, column 15"),
        ("", "is not JSON"),
        ("3", "neither a list of messages nor"),
        ({"text": "secret"}, "neither a list of messages nor"),
        ('{"messages": []}\n["secret"]\n{}', "line 3 is neither"),
        ([], "holds no message"),
        ([said("secret", "system")], "holds no message"),
        ([said("secret"), {"content": "secret"}], "messages[1] is of type dict and has no role"),
        ([said("secret", occurred_at="yesterday")], "messages[0]['occurred_at'] is a string"),
        ({"messages": [said("secret")], "questions": {}}, "'questions' is not a list"),
        ({"messages": [said("secret")], "questions": ["secret"]}, "questions[0] has no text"),
    ],
)
def test_an_error_says_where_and_quotes_nothing(given, text, words):
    with pytest.raises(TranscriptError) as caught:
        given(text)
    assert words in str(caught.value)
    assert "chat.json" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_not_text(tmp_path):
    path = tmp_path / "chat.json"
    path.write_bytes(b'"\xff"')
    with pytest.raises(TranscriptError, match=r"not UTF-8 \(byte 1\)"):
        read(path)
    with pytest.raises(TranscriptError, match="can't be read"):
        read(tmp_path)
