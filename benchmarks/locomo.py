"""Retrieval on real conversations: is the message that answers a question recalled?

    python -m benchmarks.locomo PATH [--embedder DOTTED.PATH] [--only NAMES] [--json FILE]

PATH is a file of conversations, one a line, in this form (LoCoMo's, converted):

    {"conversation": "26",
     "messages":  [{"id": "D1:1", "role": "user", "content": "Ann: Hey!", "occurred_at": "…"}, …],
     "questions": [{"question": "…", "category": "temporal", "evidence": ["D1:3", …]}, …]}

``CONVERSATION`` was chosen on LoCoMo's conversations 26, 30 and 41, and on no other.

Each conversation is one owner's memory. A question's evidence counts as found by its share that is
recalled: among the best 8 and 32, or within a budget of tokens. MRR takes the best rank of any
evidence. Intervals are 95 %, by bootstrap over the questions. Dates are moved so that every
conversation ended just now, for recency counts from now.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.curves import curves

if TYPE_CHECKING:
    from prism_memory.memory import OwnerMemory
    from prism_memory.weighting import Weighting

__all__ = [
    "Conversation",
    "Estimate",
    "Question",
    "Remembered",
    "Report",
    "difference",
    "evaluate",
    "load",
    "remember",
]

BUDGETS = (700, 2_000, 7_000)
LIMIT = 32
SEED = 0
RESAMPLES = 2_000


@dataclass(frozen=True)
class Question:
    text: str
    category: str
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Conversation:
    name: str
    messages: list[dict[str, Any]]
    questions: list[Question]


@dataclass(frozen=True)
class Remembered:
    """A conversation in memory. ``records``: of each message's id, the id that it got there."""

    conversation: Conversation
    handle: OwnerMemory
    records: dict[str, str]


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval, and the value of every question."""

    mean: float
    low: float
    high: float
    values: Any = field(repr=False, compare=False)

    @classmethod
    def of(cls, values: Iterable[float]) -> Estimate:
        values = np.asarray(list(values), np.float64)
        picked = np.random.default_rng(SEED).integers(0, len(values), (RESAMPLES, len(values)))
        low, high = np.percentile(values[picked].mean(axis=1), [2.5, 97.5])
        return cls(float(values.mean()), float(low), float(high), values)

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class Report:
    """Metrics by name (``recall@8``, ``recall@32``, ``MRR``, ``recall in 700 tokens``, …)."""

    metrics: dict[str, Estimate]
    #: The category of every question, in the order of the estimates' values.
    categories: list[str]

    def by_category(self, metric: str) -> dict[str, Estimate]:
        values = self.metrics[metric].values
        labels = np.array(self.categories)
        return {name: Estimate.of(values[labels == name]) for name in sorted(set(self.categories))}


def load(path: str | Path) -> list[Conversation]:
    """Read conversations. Questions without evidence among the messages are left out."""
    found = []
    for line in Path(path).read_text("utf-8").splitlines():
        given = json.loads(line)
        known = {message["id"] for message in given["messages"]}
        questions = [
            Question(asked["question"], asked["category"], tuple(evidence))
            for asked in given["questions"]
            if (evidence := [id for id in asked["evidence"] if id in known])
        ]
        found.append(Conversation(given["conversation"], given["messages"], questions))
    return found


def remember(conversations: Sequence[Conversation], *, scope: str = "locomo") -> list[Remembered]:
    """Store and embed conversations, each for an owner of its own; the speaker is the name."""
    from prism_memory.models import Memory

    stored = []
    for conversation in conversations:
        handle = Memory.objects.for_owner(f"locomo-{conversation.name}", scope=scope)
        times = [datetime.fromisoformat(each["occurred_at"]) for each in conversation.messages]
        moved = datetime.now(UTC) - max(times)
        ids = handle.synchronously().remember(
            [_message(each) for each in conversation.messages],
            occurred_at=[time + moved for time in times],
        )
        named = zip(conversation.messages, ids, strict=True)
        records = {message["id"]: id for message, id in named}
        stored.append(Remembered(conversation, handle, records))
    return stored


def _message(given: dict[str, Any]) -> dict[str, Any]:
    name, _, content = given["content"].partition(": ")
    return {"role": given["role"], "name": name, "content": content}


def evaluate(
    remembered: Sequence[Remembered],
    *,
    weighting: Weighting | None = None,
    budgets: Sequence[int] = BUDGETS,
    recall: Callable[..., Any] | None = None,
    **options: Any,
) -> Report:
    """Ask all questions and return the metrics.

    ``recall(handle, text, **options)`` returns a Recollection; by default it is the handle's own.
    ``options`` are passed to it with ``weighting`` and either ``limit`` or ``budget``.
    """
    recall = recall or (lambda handle, text, **options: handle.recall(text, **options))
    columns: dict[str, list[float]] = {"recall@8": [], f"recall@{LIMIT}": [], "MRR": []}
    columns |= {f"recall in {budget} tokens": [] for budget in budgets}
    categories = []
    for each in remembered:
        for question in each.conversation.questions:
            evidence = {each.records[id] for id in question.evidence}
            found = recall(each.handle, question.text, limit=LIMIT, weighting=weighting, **options)
            ranked = [memory.id for memory in found.ranked()]
            columns["recall@8"].append(_share(evidence, ranked[:8]))
            columns[f"recall@{LIMIT}"].append(_share(evidence, ranked))
            ranks = [rank for rank, id in enumerate(ranked, 1) if id in evidence]
            columns["MRR"].append(1 / ranks[0] if ranks else 0.0)
            for budget in budgets:
                found = recall(
                    each.handle, question.text, budget=budget, weighting=weighting, **options
                )
                share = _share(evidence, [memory.id for memory in found])
                columns[f"recall in {budget} tokens"].append(share)
            categories.append(question.category)
    return Report({name: Estimate.of(values) for name, values in columns.items()}, categories)


def difference(one: Report, other: Report) -> dict[str, Estimate]:
    """How much better ``one`` is, question by question: an interval without 0 means something."""
    return {
        name: Estimate.of(one.metrics[name].values - other.metrics[name].values)
        for name in one.metrics
    }


def _share(evidence: set[str], found: Sequence[str]) -> float:
    return len(evidence.intersection(found)) / len(evidence)


def main() -> None:
    from benchmarks.project import LOCAL, configure

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--embedder", default=LOCAL, help="dotted path of an Embedder")
    parser.add_argument("--only", help="names of conversations, with commas: 42,43")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--plot", type=Path, help="draw recall over budgets there, as SVG")
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        configure(Path(folder) / "memories.sqlite3", arguments.embedder)
        from prism_memory import CONVERSATION, Weighting

        names = arguments.only.split(",") if arguments.only else []
        given = [each for each in load(arguments.path) if not names or each.name in names]
        remembered = remember(given)
        reports = {
            "relevance alone": evaluate(remembered),
            "relevance and wording, 1 : 2": evaluate(remembered, weighting=Weighting(1, 0, 2)),
            "CONVERSATION": evaluate(remembered, weighting=CONVERSATION),
            "0.9 relevance, 0.1 recency (30 days)": evaluate(
                remembered, weighting=Weighting(0.9, 0.1, half_life=30 * 86_400)
            ),
            "0.7 relevance, 0.3 recency (7 days)": evaluate(
                remembered, weighting=Weighting(0.7, 0.3)
            ),
        }
    show(reports)
    if arguments.plot:
        lines = {
            name: [
                (budget, report.metrics[f"recall in {budget} tokens"].mean) for budget in BUDGETS
            ]
            for name, report in reports.items()
        }
        drawn = curves(lines, across="budget, in tokens", up="evidence recalled", floor=0.5)
        arguments.plot.write_text(drawn, "utf-8")
    if arguments.json:
        figures = {
            name: {
                metric: [round(number, 4) for number in (each.mean, each.low, each.high)]
                for metric, each in report.metrics.items()
            }
            for name, report in reports.items()
        }
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")


def show(reports: dict[str, Report]) -> None:
    first = next(iter(reports.values()))
    print(f"{len(first.categories)} questions; means with 95 % intervals\n")
    print("| | " + " | ".join(first.metrics) + " |")
    print("|---|" + "---|" * len(first.metrics))
    for name, report in reports.items():
        print(f"| {name} | " + " | ".join(map(str, report.metrics.values())) + " |")
    print("\nrecall@8 by category, " + next(iter(reports)))
    for category, estimate in first.by_category("recall@8").items():
        print(f"  {category}: {estimate} ({len(estimate.values)})")


if __name__ == "__main__":
    main()
