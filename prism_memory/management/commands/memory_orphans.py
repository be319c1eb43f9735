"""Finds owners that no signal reported deleted: raw SQL, cascades of the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..base import MemoryCommand
from ..orphans import Holding, Verdict, holdings, verdicts
from ..words import counted, whose

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

    from ..progress import Progress

__all__ = ["Command"]


class Command(MemoryCommand):
    help = (
        "Lists owners that no longer exist but still have memories. Owners that are strings can't "
        "be checked; those of models that are not installed are reported and never forgotten."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--forget", action="store_true", help="Forget the memories of orphaned owners."
        )
        parser.add_argument(
            "--no-input", "--noinput", action="store_false", dest="interactive",
            help="Don't ask for confirmation.",
        )  # fmt: skip

    def handle(self, *, forget: bool, interactive: bool, **options: Any) -> None:
        self.warn_of_other_records()
        owners, memories = self.report()
        if not memories[Verdict.ORPHANED]:
            self.say("Every owner that can be checked exists.")
            return
        orphans = counted(owners[Verdict.ORPHANED], "orphaned owner", "orphaned owners")
        what = f"{counted(memories[Verdict.ORPHANED])} of {orphans}"
        if not forget:
            self.say(f"Found {what}. To forget them: memory_orphans --forget.")
            return
        if interactive:
            self.confirm(f"This forgets {what}, for good.")
        with self.progress("Forgetting", memories[Verdict.ORPHANED]) as bar:
            # Looked up again: an owner may have come back while somebody was asked.
            for holding, verdict in self.looked_up():
                if verdict is Verdict.ORPHANED:
                    self.erase(self.memories().filter(owner_key=holding.owner_key), bar)
        self.say(f"Forgot {counted(bar.done)}.")

    def report(self) -> tuple[Counter[Verdict], Counter[Verdict]]:
        """List what is not in order; return how many owners and memories each verdict got."""
        owners: Counter[Verdict] = Counter()
        memories: Counter[Verdict] = Counter()
        total = self.memories().exclude(owner_key="").count()
        with self.progress("Looking", total) as bar:
            for holding, verdict in self.looked_up(bar):
                owners[verdict] += 1
                memories[verdict] += holding.memories
                if verdict in {Verdict.ORPHANED, Verdict.UNKNOWN}:
                    bar.hide()
                    name = whose(holding.owner_model, holding.owner)
                    self.say(f"  {verdict.value:<8}  {holding.memories:>7,}  {name}")
        if owners[Verdict.STRING]:
            self.say(
                f"Owners that are strings, which can't be checked: {owners[Verdict.STRING]:,}."
            )
        if owners[Verdict.UNKNOWN]:
            self.say(
                "Owners whose model is not installed, or has keys of another type by now: "
                f"{owners[Verdict.UNKNOWN]:,}. "
                "To forget one: memory_forget_before DATE --owner app.Model:pk."
            )
        return owners, memories

    def looked_up(self, bar: Progress | None = None) -> Iterator[tuple[Holding, Verdict]]:
        """Yield every owner with its verdict."""
        for page in holdings(self.memories()):
            for holding, verdict in verdicts(page):
                yield holding, verdict
                if bar is not None:
                    bar.advance(holding.memories)
