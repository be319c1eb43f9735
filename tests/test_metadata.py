"""Metadata comes out flat, plain and storable, or is refused without being quoted."""

from __future__ import annotations

import enum
import json
import math
from collections import OrderedDict
from types import MappingProxyType

import numpy
import pytest
from django.utils.safestring import mark_safe
from hypothesis import given
from hypothesis import strategies as st

from prism_memory.exceptions import InvalidMetadata
from prism_memory.metadata import (
    MAX_BYTES,
    RESERVED_KEYS,
    as_scalar,
    decode,
    encode,
    normalise_metadata,
    refuse_reserved,
)

SECRET = "SECRET-4711"


class Colour(enum.Enum):
    RED = "red"
    NESTED = ["red"]


class Level(enum.IntEnum):
    HIGH = 3


class Text(str, enum.Enum):  # noqa: UP042 - its str() is not its value
    A = "a"


def refusal(metadata: object) -> str:
    with pytest.raises(InvalidMetadata) as caught:
        normalise_metadata(metadata)  # type: ignore[arg-type]
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def typed(metadata: dict[str, object] | None) -> list[tuple[str, type, object]]:
    assert metadata is not None
    return [(key, type(value), value) for key, value in metadata.items()]


storable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**1024) + 1, 2**1024 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | storable
)


class TestNormalise:
    def test_none_and_empty_stay_apart(self) -> None:
        assert normalise_metadata(None) is None
        assert normalise_metadata({}) == {}

    def test_types_and_order_are_kept(self) -> None:
        given = {"z": True, "a": 1, "m": 1.0, "": None, "é": "1", "n": -0.0}
        result = normalise_metadata(given)
        assert typed(result) == typed(given)
        assert math.copysign(1, result["n"]) == -1
        assert result is not given

    def test_subclasses_and_members_become_plain(self) -> None:
        result = normalise_metadata(
            {
                "red": Colour.RED,
                "level": Level.HIGH,
                Text.A: Text.A,
                "safe": mark_safe("<b>"),
                "float": numpy.float64(0.5),
            }
        )
        assert typed(result) == [
            ("red", str, "red"),
            ("level", int, 3),
            ("a", str, "a"),
            ("safe", str, "<b>"),
            ("float", float, 0.5),
        ]
        assert {type(key) for key in result} == {str}

    def test_any_mapping_is_taken(self) -> None:
        for mapping in (OrderedDict(a=1), MappingProxyType({"a": 1})):
            result = normalise_metadata(mapping)
            assert type(result) is dict
            assert result == {"a": 1}

    @given(st.dictionaries(storable, scalars, max_size=8))
    def test_what_is_stored_comes_back(self, given: dict[str, object]) -> None:
        result = normalise_metadata(given)
        assert typed(result) == typed(given)
        assert typed(decode(encode(result))) == typed(given)

    @pytest.mark.parametrize("metadata", [7, "k=v", [("a", 1)], {"a"}, object()])
    def test_what_is_no_mapping_is_refused(self, metadata: object) -> None:
        assert f"metadata is of type {type(metadata).__name__}" in refusal(metadata)

    @pytest.mark.parametrize("key", [7, None, b"a", (SECRET,), Colour.RED])
    def test_keys_are_strings(self, key: object) -> None:
        assert f"a key of type {type(key).__name__}" in refusal({key: 1})

    @pytest.mark.parametrize(
        "value",
        [
            {"a": SECRET},
            [SECRET],
            (1,),
            {1},
            SECRET.encode(),
            1j,
            object(),
            numpy.int64(1),
            numpy.bool_(True),
            numpy.float32(1),
            Colour.NESTED,
        ],
    )
    def test_values_are_scalars(self, value: object) -> None:
        problem = refusal({"fine": 1, "the key": value})
        assert problem.startswith("metadata under 'the key' is of type ")
        kind = "list" if value is Colour.NESTED else type(value).__name__
        assert f"of type {kind};" in problem

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, numpy.float64("nan")])
    def test_floats_are_finite(self, value: float) -> None:
        assert "metadata under 'k' is a float that is not finite" in refusal({"k": value})

    def test_integers_are_bounded_where_floats_are(self) -> None:
        assert normalise_metadata({"k": -(2**1024 - 1)}) == {"k": -(2**1024 - 1)}
        for value in (2**1024, -(2**1024), 10**5000):
            assert "an int of over 1,024 bits" in refusal({"k": value})

    @pytest.mark.parametrize(
        ("text", "reason"), [("xy\x00", "a NUL character"), ("xy\udc00", "half a surrogate pair")]
    )
    def test_texts_that_not_every_database_stores(self, text: str, reason: str) -> None:
        problem = refusal({"k": SECRET + text})
        assert f"metadata under 'k', a str of 14 characters, has {reason} at offset 13" in problem
        problem = refusal({text: 1})
        assert f"the metadata key {text!r} has {reason} at offset 2" in problem
        problem.encode()

    def test_long_keys_are_cut(self) -> None:
        for key in ("k" * 5000, "\x00" * 5000):
            problem = refusal({key: []})
            assert len(problem) < 180
            assert "…" in problem

    def test_size_is_bounded_in_bytes(self) -> None:
        room = MAX_BYTES - len('{"k":""}')
        assert normalise_metadata({"k": "x" * room})
        assert normalise_metadata({"k": "é" * (room // 2)})
        assert "65,537 bytes" in refusal({"k": "x" * (room + 1)})
        assert "65,538 bytes" in refusal({"k": "é" * (room // 2 + 1)})


class TestReserved:
    @pytest.mark.parametrize("key", sorted(RESERVED_KEYS))
    def test_keys_of_the_app_are_refused(self, key: str) -> None:
        with pytest.raises(InvalidMetadata, match=f"reserved key '{key}'"):
            refuse_reserved({"a": 1, key: SECRET})

    def test_others_are_not(self) -> None:
        assert {"kind", "role"} == RESERVED_KEYS
        for metadata in (None, {}, {"Kind": 1, "role ": 2, "source_id": "x"}):
            refuse_reserved(metadata)


class TestEncode:
    def test_is_compact_and_readable(self) -> None:
        assert encode({}) == "{}"
        assert encode({"z": "é😀", "a": None, "f": 1.0, "i": 1, "b": True}) == (
            '{"z":"é😀","a":null,"f":1.0,"i":1,"b":true}'
        )

    def test_is_standard_json(self) -> None:
        with pytest.raises(ValueError, match="JSON"):
            encode({"k": math.nan})
        assert json.loads(encode({"a": "\u2028\x01"})) == {"a": "\u2028\x01"}


def test_as_scalar_says_why_not() -> None:
    assert as_scalar(Level.HIGH) == 3
    with pytest.raises(ValueError, match="of type list"):
        as_scalar([])
