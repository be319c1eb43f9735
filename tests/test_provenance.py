from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_memory.exceptions import InvalidMetadata
from prism_memory.provenance import Provenance

TEXTS = st.none() | st.text()
WHOLE = st.none() | st.integers()
LENGTHS = st.none() | st.integers(min_value=0)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
KNOWN = ("id", "uri", "title", "version", "part", "page", "offset", "length", "heading")
UNKNOWN = st.text().filter(lambda name: name not in KNOWN).map("source_{}".format)
KEYS = st.text() | UNKNOWN | st.sampled_from([f"source_{name}" for name in KNOWN])

PROVENANCE = st.builds(
    Provenance,
    id=TEXTS,
    uri=TEXTS,
    title=TEXTS,
    version=TEXTS,
    part=WHOLE,
    page=WHOLE,
    offset=LENGTHS,
    length=LENGTHS,
    heading=TEXTS,
    extra=st.dictionaries(UNKNOWN, SCALARS),
)


def test_writes_source_keys_and_leaves_out_what_is_unset():
    assert Provenance(id="handbook.md", part=4).to_metadata() == {
        "source_id": "handbook.md",
        "source_part": 4,
    }
    assert Provenance().to_metadata() == {}


def test_zero_and_empty_text_are_set():
    assert Provenance(title="", offset=0, page=0).to_metadata() == {
        "source_title": "",
        "source_offset": 0,
        "source_page": 0,
    }


def test_every_field_has_its_key():
    values = {
        "id": "1",
        "uri": "u",
        "title": "t",
        "version": "v",
        "part": 1,
        "page": 2,
        "offset": 3,
        "length": 4,
        "heading": "h",
    }
    expected = {f"source_{name}": value for name, value in values.items()}
    assert tuple(values) == KNOWN
    assert Provenance(**values).to_metadata() == expected
    assert Provenance.from_metadata(expected) == Provenance(**values)


def test_absent_and_null_are_both_unset():
    assert Provenance.from_metadata({"source_page": None, "source_id": "a"}) == Provenance(id="a")
    assert Provenance.from_metadata({}) == Provenance()
    assert Provenance.from_metadata(None) == Provenance()


def test_unknown_source_keys_are_kept_and_others_ignored():
    metadata = {
        "source_id": "a",
        "source_licence": "MIT",
        "source_seen": None,
        "k": 1,
        "sourceid": 2,
    }
    provenance = Provenance.from_metadata(metadata)
    assert provenance.extra == {"source_licence": "MIT", "source_seen": None}
    assert provenance.to_metadata() == {
        "source_id": "a",
        "source_licence": "MIT",
        "source_seen": None,
    }


@given(PROVENANCE)
def test_round_trip(provenance):
    metadata = provenance.to_metadata()
    assert Provenance.from_metadata(metadata) == provenance
    assert hash(Provenance.from_metadata(metadata)) == hash(provenance)
    assert Provenance.from_metadata({**metadata, "other": 1}).to_metadata() == metadata


@given(st.dictionaries(KEYS, SCALARS))
def test_reading_scalars_never_raises_and_loses_no_source_key(metadata):
    provenance = Provenance.from_metadata(metadata)
    expected = {
        key: value
        for key, value in metadata.items()
        if key.startswith("source_")
        and not (value is None and key.removeprefix("source_") in KNOWN)
    }
    assert provenance.to_metadata() == expected
    assert Provenance.from_metadata(provenance.to_metadata()) == provenance


@pytest.mark.parametrize(
    "odd",
    [
        {"source_page": "7"},
        {"source_page": True},
        {"source_page": 7.5},
        {"source_offset": -1},
        {"source_id": 12},
        {"source_id": float("inf")},
        {"source_": "nothing"},
        {"source_extra": "no field"},
    ],
)
def test_odd_stored_values_are_kept_aside_as_they_are(odd):
    provenance = Provenance.from_metadata(odd)
    assert provenance == Provenance(extra=odd)
    assert provenance.to_metadata() == odd


def test_reading_survives_what_metadata_can_not_even_hold():
    assert Provenance.from_metadata({1: 2, "source_id": [], "source_x": {}}) == Provenance()
    assert Provenance.from_metadata([("source_id", "a")]) == Provenance()  # type: ignore[arg-type]


def test_a_whole_float_is_the_number_it_stands_for():
    provenance = Provenance.from_metadata({"source_page": 7.0})
    assert provenance.page == 7
    assert type(provenance.page) is int


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": 1},
        {"uri": b"x"},
        {"title": ["s3cret"]},
        {"version": 1.0},
        {"heading": True},
        {"part": "s3cret"},
        {"page": 1.0},
        {"page": True},
        {"offset": -1},
        {"length": -5},
    ],
)
def test_refuses_other_types_naming_the_field_only(wrong):
    with pytest.raises(InvalidMetadata, match=next(iter(wrong))) as caught:
        Provenance(**wrong)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "extra",
    [
        {"licence": "MIT"},
        {1: 2},
        {"source_x": []},
        {"source_x": {"nested": 1}},
        {"source_id": "a"},
        {"source_page": 3},
        {"source_page": None},
    ],
)
def test_refuses_extra_keys_that_would_not_come_back(extra):
    with pytest.raises(InvalidMetadata):
        Provenance(extra=extra)


def test_does_not_change_with_its_arguments_and_can_be_copied():
    extra = {"source_x": 1}
    provenance = Provenance(id="a", extra=extra)
    extra["source_x"] = 2
    assert provenance.extra == {"source_x": 1}
    assert pickle.loads(pickle.dumps(provenance)) == provenance
    assert copy.deepcopy(provenance) == provenance
    assert provenance != Provenance(id="a")
    with pytest.raises(FrozenInstanceError):
        provenance.id = "b"  # type: ignore[misc]
