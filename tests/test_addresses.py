"""The digests that rows are addressed by. Stored rows rely on them: they may never change."""

from __future__ import annotations

import hashlib
import json

import pytest

from prism_memory.digests import DIGEST_LENGTH, digest
from prism_memory.owners import Owner, address
from prism_memory.stores.keys import collection_key, record_key, space_key


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (["a", "b"], '["a","b"]'),
        (["ab"], '["ab"]'),
        (["a,b"], '["a,b"]'),
        (['a","b'], '["a\\",\\"b"]'),
        (["", ""], '["",""]'),
        (["á", "a\u0301"], '["\\u00e1","a\\u0301"]'),
        (["😀"], '["\\ud83d\\ude00"]'),
    ],
)
def test_a_digest_is_that_of_a_json_list_in_ascii(parts, text):
    assert digest(*parts) == sha256(text)
    assert len(digest(*parts)) == DIGEST_LENGTH
    assert json.loads(text) == parts


def test_addresses_are_derived_as_documented():
    owner = sha256('["owner","auth.User","5"]')
    assert Owner("auth.User", "5").digest == owner
    spoken = sha256('["owner","","ana"]')
    assert address("ana", "support").collection == "memory:" + sha256(
        f'["memory","{spoken}","support"]'
    )
    assert collection_key("handbook") == sha256('["collection","handbook"]')
    assert record_key("handbook", "h-1") == sha256('["record","handbook","h-1"]')
    assert space_key("my-model@256") == sha256('["space","my-model@256"]')


def test_an_address_never_changes():
    assert address("ana", "support").collection == (
        "memory:62449fc34ca3d939cb190f30cbcc8146535d74450a5ca392a18b7f4c17a13131"
    )
