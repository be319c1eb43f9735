"""The docs name everything that there is, and nothing that there is not."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest
from django.core.management import load_command_class
from django.utils.module_loading import import_string

import prism_memory
from prism_memory.conf import DEFAULTS

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(prism_memory.__file__).parent
DOCS = {page.name: page.read_text() for page in sorted((ROOT / "docs").glob("*.md"))}
README = ROOT / "README.md"
EVERYTHING = "\n".join(DOCS.values())
PROSE = [*DOCS.items(), *([("README.md", README.read_text())] if README.exists() else [])]

PUBLIC = (
    *("", ".embedders", ".exceptions", ".models", ".recollection", ".signals", ".stores"),
    *(".testing", ".tokens", ".contrib.pgvector"),
)
COMMANDS = sorted(
    path.stem for path in PACKAGE.glob("management/commands/*.py") if path.stem != "__init__"
)
BACKENDS = (
    *("prism_memory.embedders.LiteLLMEmbedder", "prism_memory.embedders.LocalEmbedder"),
    *("prism_memory.testing.FakeEmbedder", "prism_memory.stores.DatabaseStore"),
    *("prism_memory.tokens.TiktokenCounter", "prism_memory.tokens.HeuristicCounter"),
    *("prism_memory.queues.tasks.TasksQueue", "prism_memory.contrib.pgvector.PgVectorStore"),
    "prism_memory.stores.MilvusStore",
)
CHECK = re.compile(r"prism_memory\.[EW]\d+")
CHECKS = sorted({id for path in PACKAGE.rglob("*.py") for id in CHECK.findall(path.read_text())})


def settings_row(key: str) -> str:
    """The row of a table of settings.md that describes a key."""
    rows = re.findall(rf"^\| `{key}` \|.*$", DOCS["settings.md"], re.MULTILINE)
    assert len(rows) == 1, f"settings.md has {len(rows)} rows about {key}"
    return rows[0]


@pytest.mark.parametrize("key", DEFAULTS)
def test_every_setting_is_described_with_its_default(key: str) -> None:
    row, default = settings_row(key), DEFAULTS[key]
    if isinstance(default, dict):  # told in words
        for backend in [default, *default.values()] if key != "RECALL" else []:
            if isinstance(backend, dict) and "BACKEND" in backend:
                assert backend["BACKEND"].rpartition(".")[2] in row
    else:
        assert f"| `{default!r}` |" in row


@pytest.mark.parametrize("key", DEFAULTS["RECALL"])
def test_every_default_of_recall_is_described(key: str) -> None:
    assert f"| `{DEFAULTS['RECALL'][key]!r}` |" in settings_row(key)


def test_no_setting_is_described_that_does_not_exist() -> None:
    tables = re.split(r"^## ", DOCS["settings.md"], flags=re.MULTILINE)
    for title, known in (("`PRISM_MEMORY`", DEFAULTS), ("`RECALL`", DEFAULTS["RECALL"])):
        [table] = [part for part in tables if part.startswith(title)]
        assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(known)
    for name, text in PROSE:
        for whole, known in (("PRISM_MEMORY", DEFAULTS), ("RECALL", DEFAULTS["RECALL"])):
            named = set(re.findall(rf"""{whole}\[["'](\w+)["']\]""", text))
            assert named <= set(known), name


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_described_with_its_options(command: str) -> None:
    page = DOCS["operating.md"]
    assert f"### {command}\n" in page
    section = page.split(f"### {command}\n")[1].split("\n##")[0]
    parser = load_command_class("prism_memory", command).create_parser("manage.py", command)
    common = {"--help", "--version", "--verbosity", "--settings", "--pythonpath", "--traceback"}
    common |= {"--no-color", "--force-color", "--skip-checks", "--noinput"}
    own = {o for action in parser._actions for o in action.option_strings if o.startswith("--")}
    described = set(re.findall(r"^\| `(--[a-z-]+)", section, re.MULTILINE))
    assert described == own - common


def test_no_command_is_described_that_does_not_exist() -> None:
    tables = {"memory_id", "memory_memory", "memory_embedding", "memory_signaturepage"}
    for name, text in PROSE:
        named = set(re.findall(r"\bmemory_(?:[a-z]+)(?:_[a-z]+)*\b", text)) - tables
        assert named <= set(COMMANDS), name


def test_every_check_is_described() -> None:
    described = re.findall(r"^\| `(prism_memory\.[EW]\d+)` \|", DOCS["settings.md"], re.MULTILINE)
    assert described == CHECKS
    assert {id for _, text in PROSE for id in CHECK.findall(text)} <= set(CHECKS)


def test_every_check_of_pgvector_is_described() -> None:
    id = re.compile(r"prism_memory_pgvector\.[EW]\d+")
    sources = (PACKAGE / "contrib" / "pgvector").glob("*.py")
    known = {each for path in sources for each in id.findall(path.read_text())}
    described = re.findall(rf"^\| `({id.pattern})` \|", DOCS["pgvector.md"], re.MULTILINE)
    assert described == sorted(known)


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_in_the_reference(module: str) -> None:
    names = importlib.import_module(f"prism_memory{module}").__all__
    missing = [name for name in names if not re.search(rf"\b{name}\b", DOCS["reference.md"])]
    assert missing == []


@pytest.mark.parametrize("path", BACKENDS)
def test_every_option_of_a_backend_is_described(path: str) -> None:
    described = set(re.findall(r"`(\w+)`", DOCS["settings.md"]))
    assert f"| `{path}` |" in DOCS["settings.md"]
    options = inspect.signature(import_string(path)).parameters.values()
    assert {option.name for option in options if option.kind != option.VAR_KEYWORD} <= described


def test_every_logger_is_described() -> None:
    logger = re.compile(r"""getLogger\("([\w.]+)"\)""")
    used = {name for path in PACKAGE.rglob("*.py") for name in logger.findall(path.read_text())}
    described = re.findall(r"^\| `(prism_memory\.[a-z]+)` \|", DOCS["operating.md"], re.MULTILINE)
    assert set(described) == used


def test_every_page_is_in_one_toctree() -> None:
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```$", EVERYTHING, re.MULTILINE | re.DOTALL)
    lines = [line for tree in trees for line in tree.splitlines()]
    listed = [line for line in lines if line and not line.startswith(":")]
    assert sorted(listed) == sorted(name.removesuffix(".md") for name in DOCS if name != "index.md")


def test_no_relative_link_is_dead() -> None:
    for name, text in PROSE:
        targets = re.findall(r"\]\((?!https?:|mailto:)([^)#\s]+)[^)]*\)", text)
        if name == "README.md":  # what else it links to is not beside the tests of a wheel
            targets = [target for target in targets if target.startswith("docs/")]
        folder = ROOT if name == "README.md" else ROOT / "docs"
        assert [target for target in targets if not (folder / target).exists()] == [], name
