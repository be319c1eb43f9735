"""What keeps a prompt cache warm: thirty turns of each conversation, with writes between.

    python -m benchmarks.prompt_cache PATH [--json FILE] [--plot FILE]

PATH is a file of conversations, as ``benchmarks.locomo`` reads it. Half of a conversation is stored
at first, and the rest piece by piece between thirty questions about that half. They come either in
the order of what they are about, so that some turns in a row stay near one subject, or scattered.
Every way of recalling sees the same questions over the same memories:

* by score: the best first, as most retrieval hands them over;
* fresh: a new, chronological recollection every turn;
* continuing: one that begins with the text of the last, for some shares of the budget.

Counted for each turn but the first are the tokens of the recalled part (``o200k_base``), how many
of them repeat the text of the turn before from its beginning, and the share of the question's
evidence that is there. A repeated token is priced at a tenth. Providers also ask for a least length
and cache in steps (1,024 and 128 tokens, say), charge some for writing, and forget within minutes:
none of that is in the figures.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.curves import curves
from benchmarks.locomo import Conversation, Estimate, Question, load

if TYPE_CHECKING:
    from prism_memory.recollection import Recollection

TURNS = 30
BUDGETS = (350, 700, 1_000, 2_000, 3_500, 7_000)
CONTINUED = (700, 2_000, 7_000)
SHARES = (0.25, 0.5, 0.75)
REPEATED = 0.1  # of the price of a new token


@dataclass
class Way:
    """One way to recall over thirty turns, and what was seen of it."""

    kind: str
    budget: int
    share: float = 1.0
    last: Any = None
    tokens: list[int] = field(default_factory=list)
    seen: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def turn(
        self,
        handle: Any,
        question: str,
        evidence: set[str],
        encode: Any,
        fresh: dict[int, Recollection],
    ) -> None:
        """Recall, and note what was seen. ``fresh``: what was recalled anew this turn."""
        if self.kind == "continuing":
            found = self.recall(handle, question)
        else:
            found = fresh[self.budget] = fresh.get(self.budget) or self.recall(handle, question)
        text = found.as_context()
        if self.kind == "by score":
            text = by_score(found)
        elif self.last is not None and found.continued:
            assert text.startswith(self.last.as_context())
        tokens = encode(text)
        if self.last is not None:
            pairs = zip(self.tokens, tokens, strict=False)
            repeated = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            held = len(evidence & {memory.id for memory in found}) / len(evidence)
            for name, value in (
                ("tokens", len(tokens)),
                ("repeated", repeated),
                ("evidence", held),
                ("price", len(tokens) - repeated * (1 - REPEATED)),
                ("restarts", float(bool(found.restarted))),
            ):
                self.seen[name].append(value)
        self.last, self.tokens = found, tokens

    def recall(self, handle: Any, question: str) -> Recollection:
        from prism_memory import CONVERSATION
        from prism_memory.conf import settings

        given = {"budget": self.budget, "weighting": CONVERSATION}
        if self.kind != "continuing":
            return handle.recall(question, **given)
        settings().recall["first_share"] = self.share  # type: ignore[index]
        last = "" if self.last is None else self.last
        return handle.recall(question, continuing=last, **given)

    def figures(self) -> dict[str, Any]:
        seen = self.seen
        return {
            "kind": self.kind,
            "budget": self.budget,
            "share": self.share,
            "tokens": round(sum(seen["tokens"]) / len(seen["tokens"]), 1),
            "repeated": round(sum(seen["repeated"]) / max(1, sum(seen["tokens"])), 4),
            "evidence": [round(e, 4) for e in interval(seen["evidence"])],
            "price": round(sum(seen["price"]) / len(seen["price"]), 1),
            "restarts": round(sum(seen["restarts"]) / len(seen["restarts"]), 4),
        }


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    estimate = Estimate.of(values)
    return estimate.mean, estimate.low, estimate.high


def by_score(found: Recollection) -> str:
    from prism_memory.context import render_context

    return render_context(memory.entry.render() for memory in found.ranked())


def ways() -> list[Way]:
    made = [Way(kind, budget) for kind in ("by score", "fresh") for budget in BUDGETS]
    return made + [Way("continuing", budget, share) for share in SHARES for budget in CONTINUED]


def turns(
    conversation: Conversation, order: str
) -> Iterator[tuple[list[dict[str, Any]], Question]]:
    """For each turn: the messages to store before it, and the question."""
    messages = conversation.messages
    half = len(messages) // 2
    place = {message["id"]: at for at, message in enumerate(messages)}
    pool = [q for q in conversation.questions if all(place[id] < half for id in q.evidence)]
    pool.sort(key=lambda question: min(place[id] for id in question.evidence))
    chance = random.Random(conversation.name)
    if order == "scattered":
        asked = chance.sample(pool, min(TURNS, len(pool)))
    else:
        start = chance.randrange(max(1, len(pool) - TURNS))
        asked = pool[start : start + TURNS]
    rest, step = messages[half:], (len(messages) - half) / max(1, len(asked))
    for turn, question in enumerate(asked):
        new = rest[round((turn - 1) * step) : round(turn * step)] if turn else messages[:half]
        yield new, question


def replay(conversations: Sequence[Conversation], order: str) -> list[Way]:
    from prism_memory.backends import token_counter
    from prism_memory.models import Memory

    encode = _encoder(token_counter())
    done = ways()
    fresh: dict[int, Recollection] = {}
    for conversation in conversations:
        handle = Memory.objects.for_owner(f"{order}-{conversation.name}").synchronously()
        records: dict[str, str] = {}
        for way in done:
            way.last = None
        for new, question in turns(conversation, order):
            fresh.clear()
            said = [_message(each) for each in new]
            ids = handle.remember(said, occurred_at=[each["occurred_at"] for each in new])
            records |= {message["id"]: id for message, id in zip(new, ids, strict=True)}
            evidence = {records[id] for id in question.evidence}
            for way in done:
                way.turn(handle, question.text, evidence, encode, fresh)
        print(order, conversation.name, flush=True)
    return done


def _message(given: dict[str, Any]) -> dict[str, Any]:
    name, _, content = given["content"].partition(": ")
    return {"role": given["role"], "name": name, "content": content}


def _encoder(counter: Any) -> Any:
    from prism_memory import tokens

    counter.count("")
    return tokens._encodings[counter.encoding].encode_ordinary


def show(figures: list[dict[str, Any]]) -> None:
    print("| way | budget | share | tokens | repeated | evidence | price | restarts |")
    print("|---|---|---|---|---|---|---|---|")
    for each in figures:
        mean, low, high = each["evidence"]
        print(
            f"| {each['kind']} | {each['budget']} | {each['share']} | {each['tokens']:.0f} "
            f"| {each['repeated']:.0%} | {mean:.3f} [{low:.3f}, {high:.3f}] "
            f"| {each['price']:.0f} | {each['restarts']:.0%} |"
        )


def drawn(figures: list[dict[str, Any]]) -> str:
    """Evidence over price: a line for each way, through its budgets."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for each in figures:
        share = f", share {each['share']}" if each["kind"] == "continuing" else ""
        line = lines.setdefault(each["kind"] + share, [])
        line.append((each["price"], each["evidence"][0]))
    return curves(
        lines, across="price of a turn's recalled part, in new tokens", up="evidence", floor=0.6
    )


def main() -> None:
    from benchmarks.project import configure

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument(
        "--plot", type=Path, help="draw evidence over price there, as SVG; of the topical order"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        configure(Path(folder) / "memories.sqlite3")
        conversations = load(arguments.path)
        figures = {
            order: [way.figures() for way in replay(conversations, order)]
            for order in ("topical", "scattered")
        }
    for order, rows in figures.items():
        print(f"\n{order}\n")
        show(rows)
    if arguments.plot:
        arguments.plot.write_text(drawn(figures["topical"]), "utf-8")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
