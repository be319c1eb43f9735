"""The local embedder: what it returns, what it needs, and what it must not do."""

from __future__ import annotations

import hashlib
import math
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from prism_memory.embedders import local
from prism_memory.embedders.base import TEXT_FORMAT, Embedder
from prism_memory.embedders.local import LocalEmbedder
from prism_memory.exceptions import ConfigurationError

ROOT = Path(__file__).resolve().parent.parent
ODD_TEXTS = ["", "   ", "\n\t", "😀🚀🫠", "\u200b", "[MASK] [PAD] [CLS]", "x" * 300]

needs_model2vec = pytest.mark.skipif(
    local.find_spec("model2vec") is None, reason="model2vec is an optional dependency"
)


@pytest.fixture
def embedder() -> LocalEmbedder:
    return LocalEmbedder()


def cosine(left: list[float], right: list[float]) -> float:
    dot = math.fsum(x * y for x, y in zip(left, right, strict=True))
    return dot / (math.hypot(*left) * math.hypot(*right))


def run(script: str) -> str:
    """Run ``script`` in a fresh process and return what it prints."""
    result = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_the_space_names_model_width_and_text_format():
    assert issubclass(LocalEmbedder, Embedder)
    assert LocalEmbedder.space == f"prism-local-1@256/{TEXT_FORMAT}"


def test_the_table_is_the_one_its_space_names():
    """Vectors are stored under the name: another table needs another name and another hash here."""
    table = (local.MODEL / "model.safetensors").read_bytes()
    assert hashlib.sha256(table).hexdigest() == (
        "ee48c817eaf7094b0fc7b4bbc81efd2594d318738c37584b3c22262c49eebb83"
    )


def test_the_table_comes_with_its_licence():
    assert "sentence-transformers/all-MiniLM-L6-v2" in (local.MODEL / "NOTICE").read_text()
    assert "Apache License" in (local.MODEL / "LICENSE").read_text()
    assert sum(path.stat().st_size for path in local.MODEL.iterdir()) < 9_000_000


@pytest.mark.parametrize("batch_size", [0, -1])
def test_a_batch_holds_at_least_one_text(batch_size):
    with pytest.raises(ValueError, match="batch_size"):
        LocalEmbedder(batch_size=batch_size)


@pytest.mark.parametrize("batch_size", [True, "64", 1.5, None])
def test_a_batch_size_is_a_whole_number(batch_size):
    with pytest.raises(TypeError, match="batch_size"):
        LocalEmbedder(batch_size=batch_size)


@needs_model2vec
@pytest.mark.parametrize(
    ("text", "digest"),
    [
        (
            "Anna: My sister moved to Lisbon in March.",
            "797fbb40e2031ab654be9a3edfaa9b3deb68309e457891144ed8bc3890ac7cc3",
        ),
        (
            "where does her sister live?",
            "8dfa66ac23421a44c1f13b6645058b1201c977832baf57f49c53194022b9127f",
        ),
        (
            "Zürich — naïve café, 東京, 3.14 😀",
            "ff013c939fc22005dbf9c8cbb487f3db8918e96b5c92cc215d667c41ab5331d5",
        ),
    ],
)
def test_vectors_are_the_same_bits_everywhere(embedder, text, digest):
    import numpy as np

    vector = np.array(embedder.embed_query(text), dtype="<f8")
    assert hashlib.sha256(vector.tobytes()).hexdigest() == digest


@needs_model2vec
def test_a_vector_does_not_depend_on_its_batch(embedder):
    words = ["tea", "Anna's", "birthday", "Lisbon,", "2023!", "unbelievably", "😀", "ünïcödé"]
    generator = random.Random(7)
    texts = [" ".join(generator.choices(words, k=generator.randint(0, 40))) for _ in range(500)]
    texts += [*ODD_TEXTS, "word " * 5_000]

    together = embedder.embed(texts)

    assert together == [embedder.embed_query(text) for text in texts]
    assert together == embedder.embed(texts[::-1])[::-1]


@needs_model2vec
def test_no_texts_give_no_vectors(embedder):
    assert embedder.embed([]) == []


@needs_model2vec
def test_related_texts_are_closer_than_unrelated_ones(embedder):
    question, answer, other = embedder.embed(
        [
            "Where does Anna go on holiday?",
            "Anna: We fly to Portugal next week, two weeks at the beach!",
            "Ben: My printer is out of toner again.",
        ]
    )
    assert cosine(question, answer) > cosine(question, other) + 0.1


@needs_model2vec
def test_unrelated_texts_are_nearly_at_right_angles(embedder):
    """The mean of all text is removed; with it, any two texts point the same way."""
    texts = embedder.embed(
        [
            "I am going to the dentist on Monday and I do not like it.",
            "The invoice for the new roof was paid in March.",
            "They have a dog and two cats, and the dog is afraid of the cats.",
            "You should try this recipe with a little more garlic.",
        ]
    )
    pairs = [cosine(x, y) for i, x in enumerate(texts) for y in texts[:i]]
    assert max(pairs) < 0.4


@needs_model2vec
@pytest.mark.parametrize("text", ODD_TEXTS)
def test_a_text_without_known_pieces_has_the_direction_of_the_unknown(embedder, text):
    vector = embedder.embed_query(text)

    assert len(vector) == 256
    assert all(math.isfinite(x) for x in vector)
    assert vector == embedder.embed_query("")
    assert math.hypot(*vector) > 0
    assert abs(cosine(vector, embedder.embed_query("We went to the market on Saturday."))) < 0.3


@needs_model2vec
def test_the_end_of_a_long_text_counts(embedder):
    filler = "nothing of note happened " * 1_000
    without, with_end = embedder.embed([filler, filler + "volcano " * 1_000])
    volcano = embedder.embed_query("volcano")
    assert cosine(with_end, volcano) > cosine(without, volcano) + 0.2


@needs_model2vec
def test_a_large_batch_starts_no_processes(embedder, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a process was started")

    monkeypatch.setattr("joblib.Parallel.__call__", refuse)
    assert len(embedder.embed(["tea"] * 12_000)) == 12_000


@needs_model2vec
def test_threads_load_the_table_once_and_agree(monkeypatch):
    from model2vec import StaticModel

    loads = []
    original = StaticModel.from_pretrained

    def from_pretrained(path):
        loads.append(path)
        return original(path)

    monkeypatch.setattr(local, "_model", None)
    monkeypatch.setattr(StaticModel, "from_pretrained", from_pretrained)
    texts = [f"message {number} about tea" for number in range(50)]
    results: list[list[list[float]]] = []
    start = threading.Barrier(8)

    def work():
        start.wait()
        results.append(LocalEmbedder().embed(texts))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(loads) == 1
    assert len(results) == 8
    assert all(result == results[0] for result in results)


@needs_model2vec
def test_no_network_and_no_torch():
    printed = run(
        "import socket, sys\n"
        "def refuse(*args, **kwargs): raise AssertionError('the network was used')\n"
        "socket.socket.connect = socket.socket.connect_ex = refuse\n"
        "socket.getaddrinfo = socket.create_connection = refuse\n"
        "from prism_memory.embedders.local import LocalEmbedder\n"
        "vector = LocalEmbedder().embed_query('hello')\n"
        "print(len(vector), 'torch' in sys.modules, 'transformers' in sys.modules)\n"
    )
    assert printed == "256 False False"


def test_constructing_and_checking_import_nothing_heavy():
    printed = run(
        "import sys\n"
        "from prism_memory.embedders.local import LocalEmbedder\n"
        "LocalEmbedder(batch_size=8).check('EMBEDDER')\n"
        "print([m for m in ('numpy', 'model2vec', 'tokenizers') if m in sys.modules])\n"
    )
    assert printed == "[]"


def test_without_model2vec_embedding_says_what_to_install(embedder, monkeypatch):
    monkeypatch.setattr(local, "_model", None)
    monkeypatch.setitem(sys.modules, "model2vec", None)
    with pytest.raises(ConfigurationError, match=r'pip install "prism-memory-django\[local\]"'):
        embedder.embed(["hello"])


def test_without_model2vec_the_check_says_what_to_install(embedder, monkeypatch):
    monkeypatch.setattr(local, "find_spec", lambda name: None)
    (error,) = embedder.check('PRISM_MEMORY["EMBEDDER"]')
    assert error.is_serious()
    assert error.msg.startswith('PRISM_MEMORY["EMBEDDER"]: ')
    assert 'pip install "prism-memory-django[local]"' in error.hint


@needs_model2vec
def test_with_model2vec_the_check_is_silent(embedder):
    assert embedder.check("EMBEDDER") == []
