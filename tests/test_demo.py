"""The example project's demo, run as a newcomer runs it: another process, no network."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NO_NETWORK = """
import socket

def refuse(*args, **kwargs):
    raise OSError("the demo must not use the network")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
"""

pytest.importorskip("model2vec")


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return tmp_path_factory.mktemp("database") / "demo.sqlite3"


@pytest.fixture(scope="module")
def demo(database, tmp_path_factory):
    """Run ``manage.py demo`` on a database of these tests' own, with every socket refused."""
    folder = tmp_path_factory.mktemp("demo")
    (folder / "sitecustomize.py").write_text(NO_NETWORK)
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "example_project.settings",
        "EXAMPLE_DATABASE": str(database),
        "PYTHONPATH": str(folder),
        "PYTHONIOENCODING": "utf-8",
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", "demo", *arguments],
            cwd=ROOT,
            check=False,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        )

    return run


@pytest.fixture(scope="module")
def shown(demo):
    """What the demo shows when nothing is asked of it."""
    result = demo()
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout


def messages(output: str) -> list[dict[str, str]]:
    """The messages that the demo printed, read back."""
    [source] = re.findall(r"^4\..*?\n( \[.*?\}\])$", output, re.DOTALL | re.MULTILINE)
    return ast.literal_eval(source.strip())


def write(path: Path, *values: object) -> str:
    path.write_text("\n".join(json.dumps(value) for value in values), encoding="utf-8")
    return str(path)


def test_it_remembers_recalls_and_forgets(shown):
    assert "76 messages in 9 sessions" in shown
    assert "10, then 0" in shown
    assert "[########################] 76 of 76" in shown
    assert "76 memories, 0 pending" in shown
    assert re.search(r"Memory +76 +0\n +Embedding +76 +0\n +SignaturePage +\d+ +0\n", shown)
    assert "forget() returned 76; count() is now 0." in shown
    assert "0 left." in shown


def test_the_file_holds_no_word_of_what_was_forgotten(shown, database):
    assert b"Quay Lane" not in database.read_bytes()


def test_it_runs_again(shown, demo):
    """With the same words: only the seconds and the recency go on."""
    again = demo().stdout
    assert messages(again) == messages(shown)
    assert [line for line in again.splitlines() if "forget" in line or "left" in line] == [
        line for line in shown.splitlines() if "forget" in line or "left" in line
    ]


def test_the_readme_shows_what_it_prints(shown):
    """But for the seconds, and the scores that the recency is part of: numbers with a point."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [excerpt] = re.findall(r"<!-- output: demo -->\n```text\n(.*?)```", readme, re.DOTALL)
    parts = [part.strip("\n") for part in excerpt.split("   […]\n")]
    assert len(parts) == 3
    printed = without_fractions(shown)
    for part in parts:
        assert without_fractions(part) in printed


def without_fractions(text: str) -> str:
    return re.sub(r"\d+\.\d+", "#", text)


def test_it_fits_a_terminal(shown):
    lines = shown.splitlines()
    assert "\x1b" not in shown
    assert len(lines) <= 120
    assert max(map(len, lines)) < 80


def test_every_question_finds_what_answers_it(shown):
    found = re.findall(r"Of\s+(\d)\s+known\s+to\s+answer\s+it\s+\(\*\),\s+(\d)", shown)
    assert found == [("1", "1"), ("2", "2"), ("2", "2")]


def test_it_prints_exactly_what_a_model_would_get(shown):
    """The printed text is the recalled one to the byte: its digest is the printed digest."""
    instructions, relevant, question = messages(shown)
    assert [instructions["role"], relevant["role"], question["role"]] == ["system"] * 2 + ["user"]
    assert hashlib.sha256(relevant["content"].encode()).hexdigest() in shown
    old, new = (relevant["content"].find(f"address is {it}") for it in ("Hill", "Quay"))
    assert 0 < old < new
    assert question["content"] == "What is my billing address?"


def test_an_interrupted_or_kept_run_does_not_disturb_the_next(demo, database):
    kept = demo("--keep")
    assert "76 memories can be looked at in the admin" in kept.stdout
    assert b"Quay Lane" in database.read_bytes()
    assert "forget()" not in kept.stdout
    again = demo()
    assert "76 memories, 0 pending" in again.stdout
    assert "0 left." in again.stdout


def test_a_list_of_messages(demo, tmp_path):
    chat = write(
        tmp_path / "chat.json",
        [
            {"role": "system", "content": "Be nice."},
            {"role": "user", "content": "My tea is \x1b[31mred, please."},
            {"role": "assistant", "content": [{"type": "text", "text": "Noted."}]},
            {"role": "assistant", "content": None, "tool_calls": []},
        ],
    )
    result = demo(
        "--file", chat, "--ask", "Which tea?", "--ask", "What was noted?", "--budget", "90"
    )
    assert result.returncode == 0, result.stderr
    assert "2 memories, 0 pending" in result.stdout
    assert "“Which tea?”" in result.stdout
    assert messages(result.stdout)[-1]["content"] == "What was noted?"
    assert "\x1b" not in result.stdout

    assert messages(demo("--file", chat).stdout)[-1]["content"].endswith("red, please.")
    assert "0 memories recalled" in demo("--file", chat, "--budget", "3").stdout


def test_json_lines_with_several_conversations(demo, tmp_path):
    lines = [
        {
            "conversation": name,
            "messages": [
                {
                    "id": f"{day}",
                    "role": "user",
                    "content": f"On day {day} the {name} barked.",
                    "occurred_at": f"2024-03-{day:02}T12:00:00+00:00",
                }
                for day in range(1, 11)
            ],
            "questions": [{"question": "Who barked on day 7?", "evidence": ["7"]}],
        }
        for name in ("poodle", "terrier")
    ]
    result = demo("--file", write(tmp_path / "dogs.jsonl", *lines))
    assert result.returncode == 0, result.stderr
    assert "terrier: 10 messages in 10 sessions over 10 days" in result.stdout
    assert "20 memories, 0 pending" in result.stdout
    assert "about the conversation “poodle”" in result.stdout
    assert "1 recalled" in result.stdout
    assert "- 2024-03-07 user: On day 7" in messages(result.stdout)[1]["content"]
    assert "forget() returned 20" in result.stdout


def test_a_bad_file_is_one_clear_line(demo, tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text('[{"role": "user", "content": "a secret"}')
    for path in (bad, tmp_path / "missing.json"):
        result = demo("--file", str(path))
        assert result.returncode == 1
        assert result.stdout == ""
        assert result.stderr.startswith(f"CommandError: {path} ")
        assert result.stderr.count("\n") == 1
        assert "secret" not in result.stderr


def test_a_budget_is_a_whole_number(demo):
    result = demo("--budget", "0")
    assert result.returncode == 2
    assert "at least 1" in result.stderr
