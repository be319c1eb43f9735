"""Reading conversations from a file, for the demo.

Two formats: a JSON list of messages as OpenAI's API takes them, or JSON objects, one a line (or one
for the whole file), that hold ``messages`` and perhaps a ``conversation`` name and ``questions``
with the ids of the messages that answer them. A message may say when it ``occurred_at``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from prism_memory.exceptions import InvalidArgument
from prism_memory.messages import utterances
from prism_memory.timestamps import as_moment

#: A longer silence than this begins a new session.
SILENCE = timedelta(hours=3)
#: Messages in a session at most, so that a long file without times is remembered in steps.
LONGEST = 200


class TranscriptError(Exception):
    """A file is no transcript. The message says where, and never quotes what is written there."""


@dataclass(frozen=True)
class Session:
    """Messages that were said in one sitting, and when; None where the file doesn't tell."""

    messages: list[dict[str, Any]]
    moments: list[datetime | None]

    @property
    def began(self) -> datetime | None:
        """The first moment that is known."""
        return next(filter(None, self.moments), None)


@dataclass(frozen=True)
class Question:
    """A question, and as (role, content) the messages that are known to answer it."""

    text: str
    evidence: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class Transcript:
    """One conversation. ``size`` counts what is worth remembering, a repeat only once."""

    name: str
    sessions: list[Session]
    size: int
    questions: list[Question] = field(default_factory=list)

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [message for session in self.sessions for message in session.messages]

    @property
    def span(self) -> tuple[datetime, datetime] | None:
        """The first and the last moment that the file tells, if it tells any."""
        known = [moment for each in self.sessions for moment in each.moments if moment]
        return (min(known), max(known)) if known else None


def read(path: Path) -> list[Transcript]:
    """Return the conversations of a file, each with a name of its own.

    Raises TranscriptError for a file that can't be read, holds no messages, or is something else.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise TranscriptError(f"{path} can't be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise TranscriptError(f"{path} is not UTF-8 (byte {error.start}).") from None
    found: dict[str, Transcript] = {}
    for where, value in _values(path, text):
        transcript = _transcript(value, path.stem, where, taken=found)
        found[transcript.name] = transcript
    if not any(transcript.size for transcript in found.values()):
        raise TranscriptError(f"{path} holds no message of a user or an assistant.")
    return list(found.values())


def _values(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Yield what the file holds, with the words that tell where: the whole, or line by line."""
    try:
        yield str(path), json.loads(text)
        return
    except json.JSONDecodeError as error:
        # Something valid, and then more: that is what JSON lines look like to a JSON parser.
        if error.msg != "Extra data":
            raise _not_json(str(path), error, error.lineno) from None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield f"{path}, line {number}", json.loads(line)
        except json.JSONDecodeError as error:
            raise _not_json(str(path), error, number) from None


def _not_json(path: str, error: json.JSONDecodeError, line: int) -> TranscriptError:
    return TranscriptError(
        f"{path} is not JSON: {error.msg} at line {line}, column {error.colno}. Give a JSON list "
        "of messages, or JSON lines with one conversation each."
    )


def _transcript(value: Any, stem: str, where: str, taken: dict[str, Transcript]) -> Transcript:
    if isinstance(value, list):
        value = {"conversation": stem, "messages": value}
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        raise TranscriptError(
            f"{where} is neither a list of messages nor an object with a list of 'messages'."
        )
    messages = value["messages"]
    try:
        said = utterances(messages)
        moments = [_moment(message, index) for index, message in enumerate(messages)]
    except InvalidArgument as error:
        raise TranscriptError(f"{where}: {error}") from None
    return Transcript(
        name=_name(value.get("conversation", stem), stem, taken),
        sessions=list(_sessions(messages, moments)),
        size=len({utterance.record_id for _, utterance in said}),
        questions=list(_questions(value.get("questions", []), messages, where)),
    )


def _name(given: object, stem: str, taken: dict[str, Transcript]) -> str:
    """Return a name to show and to own the memories; no two conversations share one."""
    printable = "".join(each for each in str(given) if each.isprintable()).strip()[:40]
    name = printable or stem
    return name if name not in taken else f"{name} ({len(taken) + 1})"


def _moment(message: Any, index: int) -> datetime | None:
    value = message.get("occurred_at") if isinstance(message, dict) else None
    return None if value is None else as_moment(value, f"messages[{index}]['occurred_at']")


def _sessions(messages: list[dict[str, Any]], moments: list[datetime | None]) -> Iterator[Session]:
    session, last = Session([], []), None
    for message, moment in zip(messages, moments, strict=True):
        silent = bool(last and moment and abs(moment - last) > SILENCE)
        if session.messages and (silent or len(session.messages) == LONGEST):
            yield session
            session = Session([], [])
        session.messages.append(message)
        session.moments.append(moment)
        last = moment or last
    if session.messages:
        yield session


def _questions(given: Any, messages: list[Any], where: str) -> Iterator[Question]:
    if not isinstance(given, list):
        raise TranscriptError(f"{where}: 'questions' is not a list.")
    by_id = {
        str(message["id"]): (message["role"], message["content"])
        for message in messages
        if isinstance(message, dict) and "id" in message and isinstance(message.get("content"), str)
    }
    for index, value in enumerate(given):
        text = value.get("question") if isinstance(value, dict) else None
        if not isinstance(text, str) or not text.strip():
            raise TranscriptError(f"{where}: questions[{index}] has no text under 'question'.")
        evidence = value.get("evidence")
        known = evidence if isinstance(evidence, list) else []
        yield Question(text, frozenset(by_id[str(id)] for id in known if str(id) in by_id))
