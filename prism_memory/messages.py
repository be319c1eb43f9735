"""What in a message list is worth remembering: the text that a user or an assistant said.

Messages are recognised by their shape, so that neither litellm nor openai is imported here: a
mapping or an object with ``role`` and ``content``, a completion with ``choices``, or a string.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.utils.functional import Promise

from .exceptions import InvalidMessage
from .texts import is_blank
from .utterance import Utterance

__all__ = ["Utterance", "Utterances", "utterances"]

REMEMBERED: Final = ("user", "assistant")
SKIPPED: Final = ("system", "developer", "tool", "function")
TEXT_PARTS: Final = ("text", "input_text", "output_text")
# What an assistant's message may hold instead of text. Without any of these, a message that lacks
# "content" has an unknown shape (some formats keep the text elsewhere), and is not passed over.
WORDLESS: Final = (
    *("tool_calls", "function_call", "refusal", "audio"),
    *("reasoning", "reasoning_content", "thinking_blocks"),
)
ACCEPTED: Final = (
    "pass a string, a message with 'role' and 'content' (a dict, or an object of litellm or "
    "openai), a completion, or a list of these"
)
ALONE: Final = "the message"
_MISSING: Final = object()


class Utterances(list[tuple[int, Utterance]]):
    """Pairs of (position in the given list, utterance); ``given`` counts the skipped ones too."""

    given: int = 0


def utterances(messages: object) -> Utterances:
    """Return what was said in ``messages``, each with its position in the given list.

    ``messages`` is a string, one message, a completion (the message of its first choice is read),
    or an iterable that mixes these, read once. Only the text of ``content`` is taken, verbatim;
    of a list of parts the text parts, joined by a newline. In an iterable, messages of other roles
    than user and assistant, and messages without text, are skipped; given alone, they are refused.

    Raises:
        InvalidMessage: Something is no message, has an unknown role, or holds text that not every
            database stores; or the only message has nothing to remember.
    """
    found = Utterances()
    for position, (where, message) in enumerate(_each(messages)):
        found.given = position + 1
        heard = _hear(message, where)
        if isinstance(heard, Utterance):
            found.append((position, heard))
        elif where == ALONE:
            raise InvalidMessage(f"{where} {heard}; there is nothing to remember in it.")
    return found


def _each(messages: object) -> Iterable[tuple[str, object]]:
    """Return messages with the words by which errors call them."""
    if isinstance(messages, Iterable) and not _is_one(messages):
        return ((f"messages[{index}]", message) for index, message in enumerate(messages))
    return [(ALONE, messages)]


def _is_one(messages: Iterable[object]) -> bool:
    """Whether something iterable is one message, or nothing that could be a list of messages."""
    # A set has no order, and order is part of what is remembered.
    if isinstance(messages, str | Promise | bytes | bytearray | memoryview | Mapping):
        return True
    # Pydantic's models iterate over their fields.
    return (
        isinstance(messages, set | frozenset)
        or hasattr(type(messages), "__pydantic_fields__")
        or any(hasattr(messages, name) for name in ("role", "choices", "__fields__"))
    )


def _hear(message: object, where: str) -> Utterance | str:
    """Return what this message says, or the reason why there is nothing in it to remember."""
    if isinstance(message, str | Promise):
        return _said("", None, message, where)
    if _field(message, "role") is _MISSING and _field(message, "choices") is not _MISSING:
        message = _answer(message, where)
    role = _field(message, "role")
    if not isinstance(role, str):
        raise InvalidMessage(_unknown(message, role, where))
    if role in SKIPPED:
        return f"has the role '{role[:]}', and only those of {' and '.join(REMEMBERED)} are kept"
    if role not in REMEMBERED:
        raise InvalidMessage(
            f"{where} has the unknown role {role[:40]!r} ({len(role)} characters). Roles that are "
            f"remembered: {', '.join(REMEMBERED)}; skipped: {', '.join(SKIPPED)}."
        )
    content = _field(message, "content")
    if content is None:
        return "has no text"
    if content is _MISSING:
        if any(_field(message, name) is not _MISSING for name in WORDLESS):
            return "has no text"
        raise InvalidMessage(f"{where} ({_kind(message)}) has a role but no 'content'; {ACCEPTED}.")
    return _said(role, _field(message, "name"), content, where)


def _said(role: str, name: object, content: object, where: str) -> Utterance | str:
    if name is None or name is _MISSING:
        name = ""
    if not isinstance(name, str):
        raise InvalidMessage(f"{where} has a name of type {_kind(name)}; a name is a string.")
    # Slicing makes a plain str of an enum's member, a SafeString, or a lazy object that is a str.
    utterance = Utterance(role[:], name[:], _text(content, where)[:])
    utterance.refuse_unstorable(where)
    if is_blank(utterance.content):
        return "has no text, or only blank text"
    return utterance if not is_blank(name) else Utterance(utterance.role, "", utterance.content)


def _answer(completion: object, where: str) -> object:
    """Return the message of a completion's first choice; further choices were not said."""
    choices: Any = _field(completion, "choices")
    if isinstance(choices, list | tuple) and choices:
        message = _field(choices[0], "message")
        if message is not None and message is not _MISSING:
            return message
    raise InvalidMessage(
        f"{where} ({_kind(completion)}) has choices but no answer in the first of them. Streamed "
        "chunks have to be put together first, for instance by litellm.stream_chunk_builder()."
    )


def _text(content: object, where: str) -> str:
    """Return the text of ``content``. Parts of other types are no speech and never leak."""
    if isinstance(content, Promise):  # a lazily translated string
        return str(content)
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        raise InvalidMessage(
            f"{where} has content of type {_kind(content)}; content is a string or a list of parts."
        )
    texts: list[str] = []
    for number, part in enumerate(content):
        kind = "text" if isinstance(part, str) else _field(part, "type")
        text = part if isinstance(part, str) else _field(part, "text")
        if not isinstance(kind, str) or (kind in TEXT_PARTS and not isinstance(text, str)):
            raise InvalidMessage(
                f"{where} has a part of content, content[{number}], of an unknown shape "
                f"({_kind(part)}); a part looks like {{'type': 'text', 'text': '…'}}."
            )
        if kind in TEXT_PARTS:
            texts.append(str(text))
    return "\n".join(texts)


def _field(message: object, name: str) -> object:
    if isinstance(message, Mapping):
        return message.get(name, _MISSING)
    return getattr(message, name, _MISSING)


def _kind(value: object) -> str:
    return type(value).__qualname__


def _unknown(message: object, role: object, where: str) -> str:
    """Say of something without a usable role what it is and what to do about it."""
    if role is not _MISSING and role is not None:
        return f"{where} ({_kind(message)}) has a role of type {_kind(role)}; a role is a string."
    problem = f"{where} is of type {_kind(message)} and has no role"
    if _field(message, "parts") is not _MISSING:
        return f"{problem} but parts: make it {{'role': …, 'content': …}}, with the parts' text."
    if isinstance(_field(message, "type"), str):
        return (
            f"{problem} but a type. If it comes from LangChain, convert the messages with "
            "langchain_core.messages.convert_to_openai_messages(); otherwise " + ACCEPTED + "."
        )
    return f"{problem}; {ACCEPTED}."
