"""Break the app on purpose, one named way at a time, and show that the tests notice.

    python tools/mutants.py            every mutant; exit code 1 when one survives
    python tools/mutants.py soft       those whose names contain "soft"

Each mutant is applied to a copy of the checkout, in which the suite then runs: first the file that
is likely to notice, then, if that stays green, all of it. The likely files run on an unbroken copy
before, because red tests would catch everything.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPIED = (
    *("prism_memory", "tests", "example_project", "docs", "tools", "benchmarks"),
    *("manage.py", "pyproject.toml", "README.md"),
)
#: Failing tests after which a run ends: one shows that the suite is red, a few show where.
ENOUGH = 3


@dataclass(frozen=True)
class Mutant:
    """One way to break a file: the first text, which must occur once, becomes the second.

    ``likely``: the test file that runs first, to save time.
    """

    name: str
    likely: str
    file: str
    before: str
    after: str


MUTANTS = [
    Mutant(
        "float32 packing",
        "vectors",
        "vectors.py",
        "return self._values.tobytes()",
        'return self._values.astype("<f4").astype("<f8").tobytes()',
    ),
    Mutant(
        "a JSON list for empty metadata",
        "metadata",
        "metadata.py",
        "return json.dumps(dict(metadata), ",
        "return json.dumps(dict(metadata) or [], ",
    ),
    Mutant(
        "a null source_page dropped by the store",
        "store_search",
        "stores/writing.py",
        '"metadata": normalise_metadata(record.metadata) or {},',
        '"metadata": {k: v for k, v in (normalise_metadata(record.metadata) or {}).items()'
        ' if v is not None or k != "source_page"},',
    ),
    Mutant(
        "expiry not enforced on read",
        "store_search",
        "stores/table.py",
        "now = from_database(timezone.now())",
        "now = from_database(timezone.now()) - timedelta(days=36_500)",
    ),
    Mutant(
        "score order instead of chronological",
        "recollection",
        "recollection.py",
        "sorted(memories, key=lambda each: (each.occurred_at, each.id))",
        "sorted(memories, key=lambda each: each.rank)",
    ),
    Mutant(
        "reasoning remembered instead of content",
        "messages",
        "messages.py",
        'TEXT_PARTS: Final = ("text", "input_text", "output_text")',
        'TEXT_PARTS: Final = ("text", "input_text", "output_text", "thinking", "reasoning")',
    ),
    Mutant(
        "parts of content concatenated",
        "messages",
        "messages.py",
        '"\\n".join(',
        '"".join(',
    ),
    Mutant(
        "no embedding count guard",
        "embedding",
        "answers.py",
        'return "" if count == expected else "miscounted"',
        'return ""',
    ),
    Mutant(
        "an unbounded candidate slice",
        "recall",
        "stores/table.py",
        "max(self.candidates - query.reserve, limit, 1),",
        "10**9,",
    ),
    Mutant(
        "a missing space filter",
        "spaces",
        "stores/reading.py",
        'worded.replace("{of_space}", str(int(search.space.pk)))',
        'worded.replace("{of_space}", "e.space_id")',
    ),
    Mutant(
        "a missing owner filter",
        "owners",
        "owners.py",
        'digest("memory", self.owner.digest, self.scope)',
        'digest("memory", self.scope)',
    ),
    Mutant(
        "a missing scope filter",
        "owners",
        "owners.py",
        'digest("memory", self.owner.digest, self.scope)',
        'digest("memory", self.owner.digest)',
    ),
    Mutant(
        "soft delete",
        "forgetting",
        "managers.py",
        "_, others = everything.filter(pk__in=ids).delete()",
        "others = {self.model._meta.label: everything.filter(pk__in=ids)"
        ".update(expires_at=timezone.now())}",
    ),
    Mutant(
        "forget_before by created time",
        "forgetting",
        "stores/table.py",
        "filter(occurred_at__lt=moment)",
        "filter(created_at__lt=moment)",
    ),
    Mutant(
        "a budget that stops at the first misfit",
        "budget",
        "budget.py",
        "            total += cost\n",
        "            total += cost\n        else:\n            break\n",
    ),
    Mutant(
        "a repeat that moves occurred_at",
        "repeats",
        "stores/writing.py",
        "if record.occurred_at is not None and record.occurred_at > occurred_at:\n"
        '        wanted["occurred_at"] = to_database(record.occurred_at)\n',
        "if (moment := record.occurred_at or datetime.now(UTC)) > occurred_at:\n"
        '        wanted["occurred_at"] = to_database(moment)\n',
    ),
    Mutant(
        "a job on the commit of the default database",
        "hook",
        "jobs.py",
        "transaction.on_commit(note.embed, using=using, robust=True)",
        "transaction.on_commit(note.embed, robust=True)",
    ),
    Mutant(
        "a note of a rolled back transaction that is written on",
        "hook",
        "jobs.py",
        "if note is None or not any(",
        "if note is None or not all(",
    ),
    Mutant(
        "a vector of the text that was there before",
        "jobs",
        "stores/attaching.py",
        "if text is not None and text != row.embedded_text:",
        "if row is None:",
    ),
    Mutant(
        "a text that is tried again before it is due",
        "bad_texts",
        "stores/backlog.py",
        "space=space, after=place, due=now",
        "space=space, after=place, due=now + timedelta(days=36_500)",
    ),
    Mutant(
        "Redis waited for by every call",
        "queue_choice",
        "queues/rq.py",
        "self.silent_until = time.monotonic() + HOLDS",
        "self.silent_until = 0.0",
    ),
]


def copy_of_the_checkout(folder: Path) -> Path:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__", "*.sqlite3*")
            shutil.copytree(source, folder / name, ignore=ignore)
        else:
            shutil.copy(source, folder / name)
    return folder


def broken(folder: Path, mutant: Mutant) -> None:
    path = folder / "prism_memory" / mutant.file
    text = path.read_text()
    if text.count(mutant.before) != 1:
        raise SystemExit(
            f"{mutant.name}: {mutant.file} holds the text to break {text.count(mutant.before)} "
            "times instead of once. Adapt tools/mutants.py to the code."
        )
    path.write_text(text.replace(mutant.before, mutant.after))


def failing_tests(folder: Path, *tests: str) -> list[str]:
    """Run tests in a folder; return the names of those that failed, up to ENOUGH."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=no", "-p", "no:randomly"]
    command += [f"--maxfail={ENOUGH}", "-p", "no:cacheprovider", "--ignore=tests/test_demo.py"]
    command += tests
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    names = re.findall(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
    if run.returncode not in (0, 1, 2):
        raise SystemExit(f"pytest could not run (exit code {run.returncode}):\n{run.stdout}")
    return names or ([] if run.returncode == 0 else ["the suite does not even start"])


def red_already(mutants: list[Mutant]) -> list[str]:
    """The likely tests that fail without any mutant."""
    with tempfile.TemporaryDirectory() as name:
        files = {f"tests/test_{mutant.likely}.py" for mutant in mutants}
        return failing_tests(copy_of_the_checkout(Path(name)), *sorted(files))


def caught_by(mutant: Mutant) -> list[str]:
    with tempfile.TemporaryDirectory() as name:
        folder = copy_of_the_checkout(Path(name))
        broken(folder, mutant)
        likely = failing_tests(folder, f"tests/test_{mutant.likely}.py")
        return likely or failing_tests(folder, "tests")


def main(wanted: str = "") -> int:
    mutants = [mutant for mutant in MUTANTS if wanted in mutant.name]
    if red := red_already(mutants):
        print(f"The suite is red without any mutant: {', '.join(red)}")
        return 1
    survivors = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for mutant, tests in zip(mutants, pool.map(caught_by, mutants), strict=True):
            print(f"{'caught' if tests else 'SURVIVED':8}  {mutant.name}", flush=True)
            for test in tests:
                print(f"          {test}")
            if not tests:
                survivors.append(mutant.name)
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} mutants caught.")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
