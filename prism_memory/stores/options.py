"""What stores say of options that they can't take."""

from __future__ import annotations

from collections.abc import Sequence

from ..exceptions import ConfigurationError

__all__ = ["one_of", "seconds", "text", "whole_number"]

#: Seconds in a day.
LONGEST = 86_400


def one_of(option: str, value: object, choices: Sequence[str]) -> str:
    """Return the value of an option that is one of some strings, or raise ConfigurationError."""
    if not isinstance(value, str) or value not in choices:
        raise ConfigurationError(
            f"{option} is {value!r:.80}. Choose one of {', '.join(map(repr, choices))}."
        )
    return value


def whole_number(option: str, value: object, *, multiple: int = 1) -> int:
    """Return the value of an option that is a positive multiple, or raise ConfigurationError."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1 or value % multiple:
        wanted = "whole number of at least 1" if multiple == 1 else f"multiple of {multiple}"
        example = "" if multiple == 1 else f", such as {4 * multiple}"
        raise ConfigurationError(f"{option} is {value!r:.80}. Give a {wanted}{example}.")
    return value


def text(option: str, value: object, *, secret: bool = False) -> str:
    """Return the value of an option that is a string, or raise ConfigurationError.

    Of a ``secret`` one, the error shows the type alone.
    """
    if not isinstance(value, str):
        shown = f"of type {type(value).__name__}" if secret else f"{value!r:.80}"
        raise ConfigurationError(f"{option} is {shown}. Give a string.")
    return value


def seconds(option: str, value: object) -> float:
    """Return the value of an option that is a number of seconds, or raise ConfigurationError."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value <= LONGEST:
        raise ConfigurationError(
            f"{option} is {value!r:.80}. Give a number of seconds above 0, at most {LONGEST:,}."
        )
    return float(value)
