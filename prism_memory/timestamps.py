"""When something happened: what callers give as a point in time, as aware datetimes in UTC."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, overload

from django.conf import settings
from django.utils import timezone

from .exceptions import InvalidTimestamp

__all__ = ["as_moment", "from_database", "moments", "spread", "to_database"]

ACCEPTED: Final = "pass a datetime, a date, or an ISO 8601 string like '2026-01-31T12:00:00Z'"
STEP: Final = timedelta(microseconds=1)

# fromisoformat() takes any separator, so that it would read milliseconds since 1970 as a date in
# the year 1712. This leaves the forms that people mean; fromisoformat() checks the numbers.
ISO_8601: Final = re.compile(
    r"(\d{4}-\d\d-\d\d|\d{8}|\d{4}-?W\d\d(-?\d)?)([Tt ]\d.*)?", re.ASCII | re.DOTALL
)


def as_moment(value: object, argument: str = "occurred_at") -> datetime:
    """Return a point in time as an aware datetime in UTC.

    ``value`` is a datetime, a date (its first moment), or an ISO 8601 string of either. What names
    no zone is in Django's current time zone; of a local time that a clock change repeats, ``fold``
    decides (by default the first), and one that it leaves out is read by the offset before the
    change. ``argument`` is the name that an error uses.

    Raises:
        InvalidTimestamp: ``value`` is something else, or lies outside the years 1 to 9999 in UTC.
    """
    if isinstance(value, str):
        value = _parsed(value, argument)
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time.min)
    if not isinstance(value, datetime):
        hint = ""
        if isinstance(value, int | float) and not isinstance(value, bool):
            hint = "; of seconds since 1970, make datetime.fromtimestamp(seconds, tz=UTC)"
        raise InvalidTimestamp(
            f"{argument} is of type {type(value).__qualname__}; {ACCEPTED}{hint}."
        )
    return _in_utc(value, timezone.get_current_timezone(), argument)


def moments(occurred_at: object, count: int, positions: Sequence[int]) -> list[datetime | None]:
    """Return when the messages at ``positions`` of a list of ``count`` messages happened.

    * None: None for each; nothing was said about the time.
    * One point in time: that of the list's first message; each further one, skipped messages
      included, is a microsecond later, so that reading by time restores the order of the list.
    * A list or another sequence: one a message of the *given* list, skipped messages included.
      None in it means that nothing is said about this message.

    Raises:
        InvalidTimestamp: Something is no point in time, or a sequence has another length than the
            list of messages.
    """
    if occurred_at is None:
        return [None] * len(positions)
    if not isinstance(occurred_at, Sequence) or isinstance(
        occurred_at, str | bytes | bytearray | memoryview
    ):
        return list(spread(as_moment(occurred_at), positions))
    if len(occurred_at) != count:
        raise InvalidTimestamp(
            f"occurred_at has {len(occurred_at)} items for {count} messages; a list has one for "
            "each message that was given, also for those that are skipped."
        )
    each = [
        None if value is None else as_moment(value, f"occurred_at[{index}]")
        for index, value in enumerate(occurred_at)
    ]
    return [each[position] for position in positions]


def spread(base: datetime, positions: Sequence[int]) -> list[datetime]:
    """Return ``base`` plus one microsecond a position.

    Raises:
        InvalidTimestamp: The result would lie after the year 9999.
    """
    try:
        return [base + position * STEP for position in positions]
    except OverflowError:
        raise InvalidTimestamp(
            "occurred_at is too close to the end of the year 9999 for the messages that follow."
        ) from None


@overload
def to_database(moment: datetime) -> datetime: ...
@overload
def to_database(moment: None) -> None: ...
def to_database(moment: datetime | None) -> datetime | None:
    """Return an aware moment as a DateTimeField of this project takes it.

    With ``USE_TZ = False`` that is naive, in the time zone of the settings. Such columns can't
    tell the two readings of an hour that a clock change repeats.

    Raises:
        InvalidTimestamp: The local time lies outside the years 1 to 9999.
    """
    if moment is None or settings.USE_TZ:
        return moment
    try:
        return timezone.make_naive(moment, timezone.get_default_timezone())
    except (OverflowError, ValueError):
        raise InvalidTimestamp(_out_of_range("a moment")) from None


@overload
def from_database(value: datetime) -> datetime: ...
@overload
def from_database(value: None) -> None: ...
def from_database(value: datetime | None) -> datetime | None:
    """Return what a DateTimeField of this project holds as an aware datetime in UTC.

    Raises:
        InvalidTimestamp: The moment lies outside the years 1 to 9999 in UTC.
    """
    if value is None or (type(value) is datetime and value.tzinfo is UTC):
        return value
    return _in_utc(value, timezone.get_default_timezone(), "a stored moment")


def _parsed(text: str, argument: str) -> datetime:
    if ISO_8601.fullmatch(text):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass  # the message of this error quotes the text
    raise InvalidTimestamp(
        f"{argument} is a string of {len(text)} characters that is not ISO 8601; {ACCEPTED}."
    )


def _in_utc(value: datetime, zone: tzinfo, argument: str) -> datetime:
    try:
        if value.utcoffset() is None:
            value = value.replace(tzinfo=zone)
        moment = value.astimezone(UTC)
        # Made anew, so that subclasses (of pandas, of time-freezing tools) end here.
        return datetime.combine(moment.date(), moment.time(), tzinfo=UTC)
    except (OverflowError, ValueError, TypeError):  # pandas' NaT is a datetime that raises these
        raise InvalidTimestamp(_out_of_range(argument)) from None


def _out_of_range(argument: str) -> str:
    return f"{argument} lies outside the years 1 to 9999, in UTC or local time; {ACCEPTED}."
