"""Filters: typed equality, in memory and by tokens alike."""

from __future__ import annotations

import enum
import hashlib
import math

import numpy
import pytest
from django.db.models import TextChoices
from hypothesis import example, given
from hypothesis import strategies as st

from prism_memory.exceptions import InvalidFilter
from prism_memory.filters import Filter, attribute_tokens
from prism_memory.metadata import Scalar

SECRET = "SECRET-4711"
HUGE = 2**53


class Level(enum.IntEnum):
    ONE = 1


class Kind(TextChoices):
    A = "a", "Label"


def found(wanted: dict[str, object] | None, attributes: dict[str, Scalar]) -> bool:
    """Whether the attributes pass, which the tokens have to agree with."""
    chosen = Filter.of(wanted)
    matches = chosen.matches(attributes)
    held = set(attribute_tokens("c", attributes))
    assert all(held & tokens for tokens in chosen.tokens("c")) == matches
    return matches


def refusal(wanted: object) -> str:
    with pytest.raises(InvalidFilter) as caught:
        Filter.of(wanted)  # type: ignore[arg-type]
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    str(caught.value).encode()
    return str(caught.value)


text = st.text(max_size=3)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.integers(HUGE - 1, HUGE + 2)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e300, float(HUGE), "1", "True", "", "null"])
    | text
)


def same(a: Scalar, b: Scalar) -> bool:
    """The rule, said another way than the code says it."""
    numbers = [isinstance(x, int | float) and not isinstance(x, bool) for x in (a, b)]
    return a == b if all(numbers) else type(a) is type(b) and a == b


class TestEquality:
    @given(scalars, scalars)
    @example(1, 1.0)
    @example(1, True)
    @example(HUGE + 1, float(HUGE))
    @example(10**300, float(10**300))
    def test_by_type(self, wanted: Scalar, held: Scalar) -> None:
        assert found({"k": wanted}, {"k": held}) == same(wanted, held)
        assert found({"k": held}, {"k": held})

    def test_numbers_are_one_type(self) -> None:
        assert found({"k": 1}, {"k": 1.0})
        assert found({"k": 0}, {"k": -0.0})
        assert found({"k": HUGE}, {"k": float(HUGE)})
        assert found({"k": int(1e300)}, {"k": 1e300})
        assert not found({"k": HUGE + 1}, {"k": float(HUGE)})
        assert not found({"k": 1.5}, {"k": 1})
        assert not found({"k": 0.1 + 0.2}, {"k": 0.3})

    def test_other_types_stay_apart(self) -> None:
        one_of_each: list[Scalar] = [1, True, "1", "True", None, "None", "", 0, False]
        for wanted in one_of_each:
            assert [found({"k": wanted}, {"k": held}) for held in one_of_each].count(True) == 1

    def test_strings_are_compared_exactly(self) -> None:
        for held in ("Alice", "álice", "alice ", "a\u0301lice", "🚀"):
            assert not found({"k": "alice"}, {"k": held})
        assert not found({"k": "\u00e9"}, {"k": "e\u0301"})
        assert not found({"k": "😀"}, {"k": "🚀"})

    def test_none_is_a_null_that_is_there(self) -> None:
        assert found({"k": None}, {"k": None})
        assert not found({"k": None}, {})
        assert not found({"k": None}, {"other": None})

    def test_members_count_as_their_values(self) -> None:
        assert found({"k": Level.ONE, "a": Kind.A}, {"k": 1, "a": "a"})
        assert found({"k": 1, "a": "a"}, {"k": Level.ONE, "a": Kind.A})
        assert found({"k": [Kind.A]}, {"k": Kind.A})
        assert found({"k": numpy.float64(0.5)}, {"k": 0.5})


class TestConditions:
    def test_nothing_is_filtered_by_nothing(self) -> None:
        for wanted in (None, {}):
            assert not Filter.of(wanted)
            assert found(wanted, {})
            assert found(wanted, {"k": 1})
            assert Filter.of(wanted).tokens("c") == []

    def test_every_key_has_to_match(self) -> None:
        assert found({"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3})
        assert not found({"a": 1, "b": 2}, {"a": 1, "b": 3})
        assert not found({"a": 1, "b": 2}, {"a": 1})

    @pytest.mark.parametrize("kind", [list, tuple, set, frozenset])
    def test_any_of_several_values(self, kind: type) -> None:
        wanted = {"k": kind([1, "x", None])}
        for held in (1, 1.0, "x", None):
            assert found(wanted, {"k": held})
        for held in (True, "1", "y", 2):
            assert not found(wanted, {"k": held})

    @pytest.mark.parametrize("empty", [[], (), set(), frozenset()])
    def test_any_of_none_matches_nothing(self, empty: object) -> None:
        assert Filter.of({"k": empty})
        assert not found({"k": empty}, {"k": None})
        assert not found({"k": empty}, {})
        assert not found({"a": 1, "k": empty}, {"a": 1, "k": 1})
        assert Filter.of({"k": empty}).tokens("c") == [frozenset()]

    @pytest.mark.parametrize(
        "key",
        ["", "0", "a__b", "contains", "k__in", "isnull", "q\"uo'te", "a.b", "$.k", "😀", "\x00"],
    )
    def test_any_string_is_a_key_and_none_a_lookup(self, key: str) -> None:
        assert found({key: "x"}, {key: "x"})
        assert not found({key: "x"}, {f"{key}_": "x"})
        assert not found({key: "x"}, {"k": "x", "a": "x", "b": "x"})

    @given(st.dictionaries(text, scalars, max_size=4))
    def test_a_record_passes_its_own_attributes(self, attributes: dict[str, Scalar]) -> None:
        assert found(dict(attributes), attributes)
        assert found({key: [value, "?"] for key, value in attributes.items()}, attributes)

    def test_a_filter_is_a_value(self) -> None:
        first = Filter.of({"a": [1, 2, 2.0], "b": "x"})
        second = Filter.of({"b": ("x",), "a": {2, 1.0}})
        assert first == second
        assert hash(first) == hash(second)
        assert first.tokens("c") == second.tokens("c")
        assert Filter.of(first) is first
        assert first != Filter.of({"a": [1, 2], "b": "y"})
        assert Filter.of({"k": 1}) != Filter.of({"k": True})

    def test_a_change_of_the_callers_map_does_not_show(self) -> None:
        values = [1]
        chosen = Filter.of({"k": values})
        values.append(2)
        assert not chosen.matches({"k": 2})


class TestRefusals:
    @pytest.mark.parametrize("wanted", [7, "k", [("k", 1)], {"k"}, object()])
    def test_what_is_no_mapping(self, wanted: object) -> None:
        assert f"filter is of type {type(wanted).__name__}" in refusal(wanted)

    @pytest.mark.parametrize("key", [7, None, b"k", (SECRET,)])
    def test_keys_that_are_no_strings(self, key: object) -> None:
        assert f"a key of type {type(key).__name__}" in refusal({key: 1})

    @pytest.mark.parametrize(
        "value",
        [
            {"a": SECRET},
            [[SECRET]],
            [{"a": 1}],
            b"x",
            1j,
            object(),
            range(3),
            iter([1]),
            numpy.int64(1),
        ],
    )
    def test_values_that_are_no_scalars(self, value: object) -> None:
        inner = value[0] if isinstance(value, list) else value
        problem = refusal({"the key": value})
        assert f"the filter's value for 'the key' is of type {type(inner).__name__};" in problem

    @pytest.mark.parametrize("value", [math.nan, math.inf, [1, -math.inf]])
    def test_values_that_are_not_finite(self, value: object) -> None:
        assert "not finite" in refusal({"k": value})

    def test_texts_that_no_record_can_have(self) -> None:
        assert "has half a surrogate pair at offset 0" in refusal({"\ud800": 1})
        assert "has half a surrogate pair at offset 11" in refusal({"k": ["a", f"{SECRET}\ud800"]})

    def test_long_keys_are_cut(self) -> None:
        assert len(refusal({"k" * 5000: object()})) < 200


class TestTokens:
    def test_are_what_the_documentation_says(self) -> None:
        digest = hashlib.sha256("1:c4:näh6:number1:1".encode()).digest()
        token = int.from_bytes(digest[:8], "little", signed=True)
        assert attribute_tokens("c", {"näh": 1.0}) == [token]

    def test_stay_the_same_for_ever(self) -> None:
        """These numbers are in databases: a change needs a migration."""
        attributes: dict[str, Scalar] = {
            "a": "x",
            "b": 255,
            "c": -1.0,
            "d": 0.5,
            "e": True,
            "f": False,
            "g": None,
        }
        assert attribute_tokens("memory", attributes) == GOLDEN

    def test_fit_a_signed_column(self) -> None:
        tokens = attribute_tokens("c", {str(number): number for number in range(1000)})
        assert all(-(2**63) <= token < 2**63 for token in tokens)
        assert min(tokens) < 0 < max(tokens)
        assert len(set(tokens)) == 1000

    def test_differ_between_collections(self) -> None:
        attributes: dict[str, Scalar] = {"k": 1}
        assert attribute_tokens("a", attributes) != attribute_tokens("b", attributes)
        assert Filter.of(attributes).tokens("a") == [frozenset(attribute_tokens("a", attributes))]

    fields = st.tuples(*[st.text("1:s", max_size=4)] * 3)

    @given(fields, fields)
    def test_fields_do_not_run_together(
        self, a: tuple[str, str, str], b: tuple[str, str, str]
    ) -> None:
        first, second = (attribute_tokens(c, {key: value}) for c, key, value in (a, b))
        assert (first == second) == (a == b)


GOLDEN = [
    7028196566892847528,
    -4238922135805984110,
    3146146946273518778,
    -742118808253658199,
    -265923819884940952,
    -4408525307889699096,
    1858365558515750255,
]
