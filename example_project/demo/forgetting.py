"""The end of the demo: everything is forgotten, and the tables are counted to prove it."""

from __future__ import annotations

from dataclasses import dataclass

from prism_memory.models import Embedding, Memory, SignaturePage

from .narration import Narrator, counted
from .remembering import Subject

#: Databases take a limited number of parameters in a query.
BATCH = 500


@dataclass(frozen=True)
class Traces:
    """What to look for: noted while the memories exist, so that their absence can be shown."""

    ids: list[int]
    keys: list[str]

    @classmethod
    def of(cls, subjects: list[Subject]) -> Traces:
        """Note the rows of these memories."""
        columns = ("pk", "collection_key")
        rows = [row for each in subjects for row in each.memory.records().values_list(*columns)]
        return cls([pk for pk, _ in rows], sorted({key for _, key in rows}))

    def counts(self) -> dict[str, int]:
        """Count the rows that are there now, by table."""
        batches = [self.ids[at : at + BATCH] for at in range(0, len(self.ids), BATCH)]
        return {
            "Memory": sum(Memory.objects.filter(pk__in=ids).count() for ids in batches),
            "Embedding": sum(Embedding.objects.filter(memory__in=ids).count() for ids in batches),
            "SignaturePage": SignaturePage.objects.filter(collection_key__in=self.keys).count(),
        }


def forget(tell: Narrator, subjects: list[Subject]) -> bool:
    """Forget everything and show what is left; return whether that is nothing."""
    tell.heading("forget(): gone, not marked as gone")
    traces = Traces.of(subjects)
    before = traces.counts()
    went = sum(subject.memory.forget() for subject in subjects)
    after = traces.counts()
    left = sum(subject.memory.count() for subject in subjects)
    tell.say(f"forget() returned {went:,}; count() is now {left}. The tables themselves:")
    tell.header(f"{'rows of':14} {'before':>7} {'after':>7}")
    for table, rows in before.items():
        tell.row(f"{table:14} {rows:7,} {after[table]:7,}")
    if left or any(after.values()):
        tell.bad("Something is left.")
        return False
    tell.good("0 left.")
    return True


def keep(tell: Narrator, subjects: list[Subject]) -> None:
    """Say where the memories can be looked at."""
    count = sum(subject.memory.count() for subject in subjects)
    tell.heading("Kept, because of --keep")
    tell.say(f"{counted(count, 'memory', 'memories')} can be looked at in the admin:")
    tell.code("python manage.py createsuperuser\npython manage.py runserver")
    tell.say("http://127.0.0.1:8000/admin/prism_memory/memory/")
    tell.say("The same command without --keep forgets them.")
