"""Points in time: what is taken, in which zone, and how they spread over a list."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.db.models import DateTimeField
from django.test import override_settings
from django.utils import timezone as django_timezone
from hypothesis import given
from hypothesis import strategies as st

from prism_memory.exceptions import InvalidTimestamp
from prism_memory.timestamps import as_moment, from_database, moments, spread, to_database

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
STEP = timedelta(microseconds=1)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture(autouse=True)
def greenwich(settings: Any) -> None:
    settings.TIME_ZONE = "UTC"


def refusal(value: object, argument: str = "occurred_at") -> str:
    with pytest.raises(InvalidTimestamp) as caught:
        as_moment(value, argument)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


class TestAsMoment:
    @pytest.mark.parametrize(
        "value",
        [
            NOON,
            NOON.astimezone(BERLIN),
            NOON.astimezone(timezone(timedelta(hours=-9, minutes=-30))),
            "2026-01-31T12:00:00Z",
            "2026-01-31 12:00:00+00:00",
            "2026-01-31T13:00+01:00",
            "20260131T120000Z",
            "2026-01-31T12:00:00.000000Z",
        ],
    )
    def test_aware_values_become_utc(self, value: object) -> None:
        with django_timezone.override("Asia/Tokyo"):
            moment = as_moment(value)
        assert moment == NOON
        assert moment.tzinfo is UTC

    @pytest.mark.parametrize(
        "value", [datetime(2026, 1, 31, 13), "2026-01-31T13:00:00", "2026-01-31 13:00"]
    )
    def test_naive_values_are_in_the_current_time_zone(self, value: object) -> None:
        with django_timezone.override(BERLIN):
            assert as_moment(value) == NOON
        assert as_moment(value) == NOON + timedelta(hours=1)

    @pytest.mark.parametrize(
        "value", [date(2026, 1, 31), "2026-01-31", "20260131", "2026-W05-6", "2026W056"]
    )
    def test_a_date_is_its_midnight_in_the_current_time_zone(self, value: object) -> None:
        with django_timezone.override(BERLIN):
            assert as_moment(value) == datetime(2026, 1, 30, 23, tzinfo=UTC)
        assert as_moment(value) == datetime(2026, 1, 31, tzinfo=UTC)

    def test_a_repeated_hour_is_decided_by_fold(self) -> None:
        repeated = datetime(2026, 10, 25, 2, 30)
        with django_timezone.override(BERLIN):
            assert as_moment(repeated) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
            assert as_moment(repeated.replace(fold=1)) == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)

    def test_a_skipped_hour_is_read_by_the_offset_before(self) -> None:
        with django_timezone.override(BERLIN):
            assert as_moment("2026-03-29T02:30") == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)

    def test_a_zone_that_names_no_offset_is_none(self) -> None:
        class Nowhere(tzinfo):
            def utcoffset(self, when: datetime | None) -> timedelta | None:
                return None

        with django_timezone.override(BERLIN):
            assert as_moment(datetime(2026, 1, 31, 13, tzinfo=Nowhere())) == NOON

    def test_subclasses_become_plain(self) -> None:
        class Stamp(datetime):
            pass

        assert type(as_moment(Stamp(2026, 1, 31, 12, 0, 0, 7, tzinfo=UTC))) is datetime
        assert as_moment(Stamp(2026, 1, 31, 12, 0, 0, 7, tzinfo=UTC)) == NOON + 7 * STEP

    @override_settings(USE_TZ=False, TIME_ZONE="Europe/Berlin")
    def test_without_use_tz(self) -> None:
        assert as_moment(datetime(2026, 1, 31, 13)) == NOON
        assert as_moment(NOON) == NOON

    @pytest.mark.parametrize(
        "value", [None, True, 7, 1.5, b"2026-01-31", [], {}, time(12), object()]
    )
    def test_other_types_are_refused(self, value: object) -> None:
        problem = refusal(value, "when")
        assert problem.startswith(f"when is of type {type(value).__name__}; pass a datetime")
        assert ("fromtimestamp" in problem) == (type(value) in (int, float))

    @pytest.mark.parametrize(
        "value",
        [
            *("", " ", "now", "12:00", "2026", "2026-01", "2026-13-01", "2026-02-30", "31.01.2026"),
            *("2026-01-31 ", " 2026-01-31", "2026-01-31T", "2026-01-31x12:00", "2026-01-31T25:00"),
            *("1712010212345", "1712010212", "1712010212.5", "²026-01-31", "x" * 5000),
            "٢٠٢٦-٠١-٣١",
        ],
    )
    def test_strings_that_are_not_iso_8601_are_refused_unquoted(self, value: str) -> None:
        problem = refusal(value)
        assert f"a string of {len(value)} characters" in problem
        assert len(problem) < 250
        assert repr(value) not in problem

    @pytest.mark.parametrize(
        "value",
        [
            datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
            datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
            "0001-01-01T00:00:00+14:00",
            "9999-12-31T23:59:59-01:00",
        ],
    )
    def test_what_utc_can_not_express_is_refused(self, value: object) -> None:
        assert "outside the years 1 to 9999" in refusal(value)

    def test_naive_values_at_the_ends(self) -> None:
        with django_timezone.override("Asia/Tokyo"):
            assert "outside" in refusal(datetime.min)
            assert "outside" in refusal(date.min)
        with django_timezone.override("America/New_York"):
            assert "outside" in refusal(datetime.max)

    def test_the_ends_themselves_are_taken(self) -> None:
        assert as_moment(datetime.min.replace(tzinfo=UTC)).year == 1
        assert as_moment(datetime.max.replace(tzinfo=UTC)).year == 9999

    def test_a_datetime_that_is_none_is_refused(self) -> None:
        class NotATime(datetime):  # like pandas.NaT
            def utcoffset(self) -> None:
                return None

            def replace(self, **changes: object) -> NotATime:  # type: ignore[override]
                return self

            def astimezone(self, tz: tzinfo | None = None) -> NotATime:  # type: ignore[override]
                raise ValueError

        refusal(NotATime(2026, 1, 1))


class TestMoments:
    def test_nothing_said(self) -> None:
        assert moments(None, 3, [0, 2]) == [None, None]

    def test_one_value_spreads_by_position(self) -> None:
        for value in (NOON, "2026-01-31T12:00:00Z"):
            assert moments(value, 4, [1, 3]) == [NOON + STEP, NOON + 3 * STEP]
        assert moments(date(2026, 1, 31), 1, [0]) == [NOON - timedelta(hours=12)]

    def test_a_sequence_has_one_a_message_given(self) -> None:
        each = [NOON, "2026-02-01", None, NOON]
        second = datetime(2026, 2, 1, tzinfo=UTC)
        assert moments(each, 4, [1, 2, 3]) == [second, None, NOON]
        assert moments(tuple(each), 4, [0]) == [NOON]
        assert moments([], 0, []) == []

    @pytest.mark.parametrize("length", [0, 1, 3])
    def test_another_length_is_refused(self, length: int) -> None:
        with pytest.raises(InvalidTimestamp, match=f"{length} items for 2 messages"):
            moments([NOON] * length, 2, [0])

    def test_errors_name_the_item(self) -> None:
        with pytest.raises(InvalidTimestamp, match=r"^occurred_at\[1\] is of type int"):
            moments([NOON, 7], 2, [0])  # also of a message that is skipped

    @pytest.mark.parametrize("value", [b"2026-01-31", {NOON}, {0: NOON}, iter([NOON])])
    def test_other_collections_are_refused(self, value: object) -> None:
        with pytest.raises(InvalidTimestamp, match=r"^occurred_at is of type"):
            moments(value, 1, [0])

    def test_a_spread_over_the_end_is_refused(self) -> None:
        end = datetime.max.replace(tzinfo=UTC)
        assert spread(end, [0]) == [end]
        with pytest.raises(InvalidTimestamp, match="9999"):
            spread(end, [0, 1])


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kathmandu"])
class TestDatabase:
    def test_with_use_tz_moments_stay(self, zone: str) -> None:
        with override_settings(USE_TZ=True, TIME_ZONE=zone):
            assert to_database(NOON) is NOON
            assert from_database(NOON.astimezone(BERLIN)).tzinfo is UTC
            assert to_database(None) is None
            assert from_database(None) is None

    def test_without_use_tz_they_are_naive_in_the_time_zone_of_the_settings(
        self, zone: str
    ) -> None:
        with (
            override_settings(USE_TZ=False, TIME_ZONE=zone),
            django_timezone.override("Asia/Tokyo"),
        ):
            stored = to_database(NOON)
            assert stored == NOON.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
            assert stored.tzinfo is None
            assert from_database(stored) == NOON
            assert from_database(stored).tzinfo is UTC
            assert to_database(None) is None

    def test_a_datetime_field_takes_them(self, zone: str) -> None:
        for use_tz in (True, False):
            with override_settings(USE_TZ=use_tz, TIME_ZONE=zone):
                field = DateTimeField()
                value = field.get_db_prep_value(to_database(NOON), connection)
                assert value is not None

    def test_now_and_a_moment_agree(self, zone: str) -> None:
        with override_settings(USE_TZ=False, TIME_ZONE=zone):
            now = django_timezone.now()  # naive, by the clock of the settings' zone
            assert abs(from_database(now) - datetime.now(UTC)) < timedelta(minutes=1)


@override_settings(USE_TZ=False, TIME_ZONE="Asia/Tokyo")
def test_what_a_naive_column_can_not_express_is_refused() -> None:
    with pytest.raises(InvalidTimestamp, match="outside"):
        to_database(datetime.max.replace(tzinfo=UTC))
    with pytest.raises(InvalidTimestamp, match="outside"):
        from_database(datetime.min)


@given(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)))
def test_a_round_trip_changes_nothing(naive: datetime) -> None:
    moment = naive.replace(tzinfo=UTC)
    assert as_moment(moment.isoformat()) == moment
    with override_settings(USE_TZ=False, TIME_ZONE="Asia/Kathmandu"):
        gap = abs(from_database(to_database(moment)) - moment)
        assert gap in (timedelta(0), timedelta(minutes=15))  # the clock change of 1986
