"""What stores say of options that they can't take."""

from __future__ import annotations

from collections.abc import Sequence

from ..exceptions import ConfigurationError

__all__ = ["one_of", "whole_number"]


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
