"""MilvusStore without a Milvus: its options, and what it would send."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from django.core.checks import run_checks
from django.utils import timezone

from prism_memory.exceptions import ConfigurationError
from prism_memory.filters import AttributeTokens, Filter
from prism_memory.models import Space
from prism_memory.stores import Durability, Entry, MilvusStore, Search, stores
from prism_memory.stores.milvus import connection, rows


def entry(number=1, tokens=(), width=3):
    return Entry(number, 10 * number, "k" * 64, np.ones(width), list(tokens))


def search(collections, filter=None):
    space = Space(name="s", key="5" * 64, width=3, bits=256)
    return Search(
        "default", collections, space, np.ones(3), Filter.of(filter), 256, timezone.now(), None
    )


class TestOptions:
    @pytest.mark.parametrize(
        ("option", "value", "words"),
        [
            ("uri", 19530, "uri is 19530"),
            ("uri", "", "uri is ''"),
            ("uri", "localhost:19530", "uri is 'localhost:19530'"),
            ("uri", "ftp://milvus:19530", "uri is 'ftp://"),
            ("uri", "http://milvus:19530/books", "db_name"),
            ("db_name", None, "db_name is None"),
            ("prefix", "a-b", "prefix is 'a-b'"),
            ("prefix", "1a", "prefix is '1a'"),
            ("prefix", "", "prefix is ''"),
            ("timeout", 0, "timeout is 0"),
            ("timeout", "10", "timeout is '10'"),
            ("timeout", True, "timeout is True"),
            ("timeout", float("nan"), "timeout is nan"),
            ("m", 0, "m is 0"),
            ("m", 16.0, "m is 16.0"),
            ("ef_construction", "200", "ef_construction is '200'"),
            ("partitions", 0, "partitions is 0"),
            ("candidates", 0, "candidates is 0"),
            ("strategy", "signature", "strategy is 'signature'"),
        ],
    )
    def test_what_it_can_t_take_is_named_with_its_value(self, option, value, words):
        with pytest.raises(ConfigurationError) as caught:
            MilvusStore(**{option: value})
        assert words in str(caught.value)

    @pytest.mark.parametrize(
        "options",
        [
            {"token": ["root:hush-hush"]},
            {"uri": "http://root:hush-hush@milvus:19530"},
        ],
        ids=str,
    )
    def test_a_secret_is_in_no_error(self, options):
        with pytest.raises(ConfigurationError) as caught:
            MilvusStore(**options)
        assert "hush" not in str(caught.value)

    def test_a_secret_is_in_no_place_and_no_repr(self):
        store = MilvusStore(token="root:hush-hush")
        assert "hush" not in f"{store.place} {store!r} {store._connection!r}"

    def test_an_unknown_option_is_an_error_of_the_settings(self, settings):
        options = {"url": "http://milvus:19530", "token": "root:hush-hush"}
        milvus = {"BACKEND": "prism_memory.stores.MilvusStore", "OPTIONS": options}
        settings.PRISM_MEMORY = {
            **settings.PRISM_MEMORY,
            "STORES": {"default": {"BACKEND": "prism_memory.stores.DatabaseStore"}, "m": milvus},
        }
        with pytest.raises(ConfigurationError, match="unknown options 'url'") as caught:
            stores["m"]
        assert "hush" not in str(caught.value)

    def test_the_place_names_server_database_and_prefix(self):
        assert MilvusStore().place == "milvus:http://127.0.0.1:19530/default/prism_memory"
        store = MilvusStore(uri="https://milvus:443/", db_name="books", prefix="shop")
        assert store.place == "milvus:https://milvus:443/books/shop"

    def test_a_file_is_named_by_its_whole_path(self):
        assert MilvusStore(uri="x.db").place == f"milvus:{os.getcwd()}/x.db/default/prism_memory"

    def test_its_content_is_durable(self):
        assert MilvusStore.durability is Durability.DURABLE


class TestWithoutPackages:
    def configure(self, settings, **options):
        settings.PRISM_MEMORY = {
            **settings.PRISM_MEMORY,
            "STORES": {
                "default": {"BACKEND": "prism_memory.stores.DatabaseStore"},
                "m": {"BACKEND": "prism_memory.stores.MilvusStore", "OPTIONS": options},
            },
        }

    @pytest.mark.parametrize(
        ("uri", "package", "extra"),
        [
            ("http://milvus:19530", "pymilvus", "milvus"),
            ("x.db", "milvus_lite", "milvus-lite"),
        ],
    )
    def test_prism_memory_E011(self, settings, monkeypatch, uri, package, extra):  # noqa: N802
        self.configure(settings, uri=uri)
        monkeypatch.setattr(connection, "find_spec", lambda name: None if name == package else 1)
        [message] = [each for each in run_checks() if each.id == "prism_memory.E011"]
        assert message.msg == (
            f"PRISM_MEMORY[\"STORES\"]['m']: MilvusStore needs the package {package}, which is not "
            "installed."
        )
        assert f"prism-memory-django[{extra}]" in message.hint

    def test_a_check_is_silent_when_they_are_there(self, settings, monkeypatch):
        self.configure(settings)
        monkeypatch.setattr(connection, "find_spec", lambda name: 1)
        assert not [each for each in run_checks() if each.id == "prism_memory.E011"]

    def test_a_call_says_so_too(self, monkeypatch):
        monkeypatch.setattr(connection, "find_spec", lambda name: None)
        monkeypatch.delitem(sys.modules, "pymilvus", raising=False)
        space = Space(name="s", key="5" * 64, width=3, bits=256)
        with pytest.raises(ConfigurationError, match=r"prism-memory-django\[milvus\]"):
            MilvusStore().held("default", space, 0, None)


class TestRows:
    def test_a_row(self):
        made = rows.row(entry(7, tokens=[5, -1]))
        assert made["vector"].dtype == np.float32
        assert np.allclose(made.pop("vector"), 3**-0.5)
        assert made == {
            "id": 7,
            "memory": 70,
            "collection_key": "k" * 64,
            "tokens": [5, 2**63 - 1],
        }

    @pytest.mark.parametrize("factor", [1e-150, 1.0, 1e150])
    def test_a_direction_survives_single_precision(self, factor):
        short = rows.unit(factor * np.array([3.0, -4.0]))
        assert short.tolist() == pytest.approx([0.6, -0.8])

    def test_a_vector_of_one_number_gets_a_second(self):
        assert rows.dimensions(1) == 2
        assert rows.unit(np.array([-5.0])).tolist() == [-1.0, 0.0]

    def test_too_many_tokens_become_one_that_matches_any_filter(self):
        assert rows.row(entry(tokens=range(1, rows.MOST_TOKENS + 1)))["tokens"][0] == 1
        assert rows.row(entry(tokens=range(1, rows.MOST_TOKENS + 2)))["tokens"] == [rows.ANY]

    @pytest.mark.parametrize(("width", "number"), [(3, 500), (1536, 2_000), (32_768, 100)])
    def test_messages_are_of_a_size_that_servers_take(self, width, number):
        made = list(rows.batches([entry(n, width=width) for n in range(number)]))
        assert [row["id"] for batch in made for row in batch] == list(range(number))
        weights = [sum(row["vector"].nbytes for row in batch) for batch in made]
        assert max(weights) <= rows.BATCH_BYTES
        # All but the last are full.
        assert all(weight > rows.BATCH_BYTES / 2 for weight in weights[:-1])

    def test_nothing_is_no_message(self):
        assert list(rows.batches([])) == []


class TestExpressions:
    def test_collections(self):
        keys = {"b" * 64: "two", "a" * 64: "one"}
        assert rows.expression(search(keys)) == f'collection_key in ["{"a" * 64}", "{"b" * 64}"]'

    def test_every_key_of_a_filter_is_a_condition_of_its_own(self):
        found = rows.expression(search({"a" * 64: "one"}, {"k": [1, 2], "role": "user"}))
        parts = found.split(" and ")
        assert len(parts) == 3
        tokens = AttributeTokens("one")
        wanted = [tokens({"k": 1})[0] & rows.MASK, tokens({"k": 2})[0] & rows.MASK]
        assert parts[1] == f"array_contains_any(tokens, {sorted([rows.ANY, *wanted])})"

    def test_the_tokens_of_several_collections_share_a_list(self):
        found = rows.expression(search({"a" * 64: "one", "b" * 64: "two"}, {"k": 1}))
        wanted = [AttributeTokens(name)({"k": 1})[0] & rows.MASK for name in ("one", "two")]
        assert found.endswith(f"array_contains_any(tokens, {sorted([rows.ANY, *wanted])})")

    def test_an_empty_list_of_values_is_no_error_of_the_server(self):
        assert rows.expression(search({"a" * 64: "one"}, {"k": []})).endswith("(tokens, [0])")

    def test_no_number_has_a_sign_or_more_than_63_bits(self):
        for value in range(200):
            found = rows.expression(search({"a" * 64: "one"}, {"k": value}))
            assert "-" not in found
            assert 0 <= int(found.rpartition(", ")[2].rstrip("])")) < 2**63

    def test_ranges(self):
        assert rows.within(3, None) == "id >= 3"
        assert rows.within(3, 9) == "id >= 3 and id < 9"


def test_neither_constructing_nor_checking_imports_the_client():
    code = (
        "import sys, django; django.setup()\n"
        "from prism_memory.stores import MilvusStore\n"
        "MilvusStore().check('x'); MilvusStore().place\n"
        "print([name for name in ('pymilvus', 'grpc') if name in sys.modules])"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"
