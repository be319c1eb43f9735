"""How the commands say numbers, ages and names."""

from __future__ import annotations

from datetime import timedelta

__all__ = ["age", "counted", "shown", "whose"]

LONGEST = 60
UNITS = {"day": 86_400, "hour": 3_600, "minute": 60}


def counted(number: int, noun: str = "memory", plural: str = "memories") -> str:
    """Say a number of things: "1 memory", "2,000 memories"."""
    return f"{number:,} {noun if number == 1 else plural}"


def age(passed: timedelta) -> str:
    """Say how long something has been, in its largest unit."""
    for unit, seconds in UNITS.items():
        if (number := int(passed.total_seconds() // seconds)) > 0:
            return counted(number, unit, f"{unit}s")
    return "less than a minute"


def shown(text: str) -> str:
    """Return a name as it may go to a terminal: anybody may have chosen its characters."""
    text = text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
    return text if text.isprintable() else repr(text)


def whose(owner_model: str, owner: str) -> str:
    """Name an owner as ``--owner`` takes it, a string in quotes, nobody as ""."""
    if owner_model:
        return shown(f"{owner_model}:{owner}")
    return repr(owner if len(owner) <= LONGEST else f"{owner[: LONGEST - 3]}...") if owner else ""
