"""The ids of messages that are stored without one: a digest of what was said."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_memory.messages import Utterance, utterances


def one(message: object) -> Utterance:
    [(_, utterance)] = utterances(message)
    return utterance


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class TestRecordId:
    def test_a_plain_string_has_no_role(self) -> None:
        assert one("hello").record_id == sha256(b"|hello")
        assert one("hello").record_id == (
            "94582e26c4c46203f3b576eafc8317b13f488e612d6a523a8798a4617c3e6b03"
        )

    def test_the_role_is_part_of_it(self) -> None:
        said = {"content": "hello"}
        assert one({"role": "user", **said}).record_id == sha256(b"user|hello")
        assert one({"role": "assistant", **said}).record_id == sha256(b"assistant|hello")

    def test_a_name_joins_with_its_length_in_bytes(self) -> None:
        message = {"role": "user", "name": "Zoë", "content": "hello"}
        assert one(message).record_id == sha256("user+4:Zoë|hello".encode())

    def test_text_is_hashed_as_utf8(self) -> None:
        assert one("né 😀").record_id == sha256("|né 😀".encode())

    triples = st.tuples(
        st.sampled_from(["", "user", "assistant"]),
        st.text("|+:1u\u00e9", max_size=5),
        st.text("|+:1u\u00e9", max_size=5),
    )

    @given(triples, triples)
    def test_only_equal_utterances_share_one(
        self, a: tuple[str, str, str], b: tuple[str, str, str]
    ) -> None:
        assert (Utterance(*a).record_id == Utterance(*b).record_id) == (a == b)

    @pytest.mark.parametrize(
        ("a", "b"),
        [
            (("user", "a", "b"), ("user", "", "a|b")),
            (("user", "a", "b"), ("user", "", "+1:a|b")),
            (("", "user", "x"), ("user", "", "x")),
            (("user", "a|b", "c"), ("user", "a", "b|c")),
            (("user", "1:a", "c"), ("user", "a", "c")),
        ],
    )
    def test_adversarial_pairs(self, a: tuple[str, str, str], b: tuple[str, str, str]) -> None:
        assert Utterance(*a).record_id != Utterance(*b).record_id
