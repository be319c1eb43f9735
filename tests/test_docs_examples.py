"""Runs every Python example of the docs and the README.

The blocks of one page run in order, in one namespace, with commits as in production. A block is
left out only by a comment right before it, which says why: ``<!-- not run: … -->``. It is compiled
all the same. A ``PRISM_MEMORY`` that a block assigns is validated, run or not.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import unittest
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from asgiref.sync import async_to_sync
from django.core.checks import ERROR
from django.core.management import call_command

from prism_memory.checks import check_settings
from prism_memory.exceptions import SpaceMismatch
from prism_memory.stores import stores

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(page for page in [*ROOT.glob("docs/*.md"), ROOT / "README.md"] if page.exists())
FENCE = re.compile(
    r"^(?:<!-- not run: (?P<why>[^\n]+?) -->\n+)?```python\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
# Errors of a backend that is the reader's own, or whose package or database is not here.
NOT_OURS = (
    *("prism_memory.E005", "prism_memory.E009", "prism_memory.E011"),
    *("prism_memory_pgvector.E001", "prism_memory_pgvector.E002", "prism_memory_pgvector.E003"),
)


@dataclass
class Block:
    where: str
    compiled: CodeType
    runs: bool
    source: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found = []
    for match in FENCE.finditer(text):
        line = text[: match.start("code")].count("\n")
        # Line breaks before it, so that a traceback shows the page's own lines.
        code = compile("\n" * line + match["code"], page, "exec")
        found.append(Block(f"{page.name}:{line}", code, match["why"] is None, match["code"]))
    return found


@pytest.fixture
def litellm(monkeypatch):
    """A litellm that answers, and that nothing imports for seconds."""
    spec = importlib.util.find_spec("litellm")
    fake: Any = importlib.util.module_from_spec(spec)
    fake.sent = []

    def completion(*, model: str, messages: list[dict[str, Any]]) -> Any:
        assert messages[0]["role"] == "system", "instructions come first"
        assert messages[-1]["role"] == "user", "the question comes last"
        assert all(set(message) == {"role", "content"} for message in messages)
        fake.sent.append(messages)
        answer = SimpleNamespace(role="assistant", content="To Hauptplatz 1 in Graz.")
        usage = SimpleNamespace(prompt_tokens_details=None)
        return SimpleNamespace(choices=[SimpleNamespace(message=answer)], usage=usage)

    fake.completion = completion
    monkeypatch.setitem(sys.modules, "litellm", fake)
    return fake


@pytest.fixture
def namespace(user, embedder, litellm):
    """What the pages take for given: a user, the thread so far, and a provider that answers."""
    yield {
        "user": user,
        "instructions": "You answer questions about ACME.",
        "question": "Where do you send my bill?",
        "messages": [
            {"role": "system", "content": "You answer questions about ACME."},
            {"role": "user", "content": "My billing address is Hauptplatz 1, Graz."},
            {"role": "assistant", "content": "Thank you, I'll send your bill there."},
        ],
    }
    stores.unregister("every")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.django_db(transaction=True)  # embedding comes after the commit, so there has to be one
def test_examples(page: Path, namespace, settings) -> None:
    of_the_tests = settings.PRISM_MEMORY
    for block in blocks(page):
        names = namespace if block.runs else {}
        if block.runs or "PRISM_MEMORY = " in block.source:
            exec(block.compiled, names)
        if (given := names.pop("PRISM_MEMORY", None)) is not None:
            settings.PRISM_MEMORY = given
            said = check_settings(None)
            wrong = [each for each in said if each.level >= ERROR and each.id not in NOT_OURS]
            assert wrong == [], block.where
            settings.PRISM_MEMORY = of_the_tests


def test_an_excluded_block_says_why() -> None:
    """And only settings blocks, which are validated instead, are excluded."""
    for page in PAGES:
        text = page.read_text()
        fences = text.count("```python")
        assert len(blocks(page)) == fences, f"{page.name} has a fence that this does not read"
        assert text.count("<!-- not run") == sum(not block.runs for block in blocks(page))


def test_the_examples_hand_over(namespace, litellm, settings, transactional_db) -> None:
    """The twelve lines of the quickstart really send what was remembered."""
    for block in blocks(ROOT / "docs/quickstart.md"):
        if block.runs and ("litellm" in block.source or "async" in block.source):
            exec(block.compiled, namespace)
    [sent] = litellm.sent
    assert "Hauptplatz 1, Graz" in sent[1]["content"]
    assert namespace["memory"].count() == 3

    request = SimpleNamespace(auser=AsyncMock(return_value=namespace["user"]))
    [context] = async_to_sync(namespace["support"])(request, namespace["question"])
    assert "Hauptplatz 1, Graz" in context["content"]


def test_the_model_changes_as_described(namespace, settings, transactional_db) -> None:
    """operating.md: embed with the new setting, deploy it, remove the old space."""
    for block in blocks(ROOT / "docs/operating.md"):
        exec(block.compiled, namespace)
    memory, old = namespace["memory"], settings.PRISM_MEMORY
    new = {"EMBEDDER": {**old["EMBEDDER"], "OPTIONS": {"dimensions": 32}}}
    [id] = memory.remember("My bank is in Graz.")
    settings.PRISM_MEMORY = new
    with pytest.raises(SpaceMismatch):
        memory.recall("bank")
    call_command("memory_pending", "--embed", "--fail-over", "0", verbosity=0)
    for setting in (old, new):  # both serve, until the old space is removed
        settings.PRISM_MEMORY = setting
        assert [found.id for found in memory.recall("bank")] == [id]
    assert namespace["remove_space"]("fake@64/named-1") == 1
    assert [found.id for found in memory.recall("bank")] == [id]
    assert memory.forget() == 1


def test_the_drivers_conform(namespace, transactional_db) -> None:
    """stores.md: the drivers that it shows pass the suite that it shows."""
    for block in blocks(ROOT / "docs/stores.md"):
        if block.runs:
            exec(block.compiled, namespace)
    result = unittest.TestResult()
    for name in ("TestEveryRow", "TestInProcess"):
        tests = unittest.TestLoader().loadTestsFromTestCase(namespace[name])
        # The longest ones are run by test_conformance.py, on four stores.
        quick = [test for test in tests if "thousand" not in test.id()]
        unittest.TestSuite(quick).run(result)
    assert result.testsRun > 140
    assert result.failures + result.errors + result.skipped == []
