"""The first half of the demo: what is said becomes memories that can be recalled."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from django.db import transaction

from prism_memory.management.progress import Progress
from prism_memory.memory import OwnerMemory

from .narration import Narrator, bar, counted
from .transcripts import Session, Transcript

#: More sessions than this are shown as one moving bar, not as a line each.
FEW = 12


@dataclass(frozen=True)
class Subject:
    """A conversation, and the memory that it goes into."""

    transcript: Transcript
    memory: OwnerMemory


def introduce(tell: Narrator, subjects: list[Subject]) -> None:
    """Say what there is to be remembered."""
    tell.heading("What there is to remember")
    for subject in subjects:
        transcript = subject.transcript
        size = counted(len(transcript.messages), "message")
        sessions = counted(len(transcript.sessions), "session")
        when = "."
        if transcript.span:
            first, last = transcript.span
            days = counted((last - first).days + 1, "day")
            when = f" over {days}, {first:%Y-%m-%d} to {last:%Y-%m-%d}."
        tell.say(f"{transcript.name}: {size} in {sessions}{when}")


def remember(tell: Narrator, subjects: list[Subject]) -> None:
    """Remember every session in a transaction of its own, as the requests of a site would.

    What a transaction wrote is pending in it, and embedded when it has been committed.
    """
    tell.heading("remember(): pending in the transaction, embedded after its commit")
    tell.say("remember() stores at once. What is no longer pending can be recalled.")
    work = [(subject.memory, each) for subject in subjects for each in subject.transcript.sessions]
    total = sum(subject.transcript.size for subject in subjects)
    few = len(work) <= FEW
    if few:
        tell.header(f"{'session':12}  {'pending()':14}  embedded")
    done = most = 0
    started = perf_counter()
    with Progress(tell.stdout, "   embedded", total, shown=not few) as progress:
        for number, (memory, session) in enumerate(work, 1):
            before = memory.count() - memory.pending()
            inside = _store(memory, session)
            after = memory.pending()
            progress.advance(memory.count() - after - before)
            done, most = progress.done, max(most, inside)
            if few:
                name = f"{session.began:%Y-%m-%d}" if session.began else f"number {number}"
                tell.row(f"{name:12}  {inside:4,}, then {after:<3,}  {bar(done, total)}")
    _embed_the_rest(subjects)
    if not few:
        tell.row(f"at most {most:,} pending at a time  ", bar(done, total))
    _conclude(tell, subjects, perf_counter() - started)


def _store(memory: OwnerMemory, session: Session) -> int:
    """Remember a session; return how many of its messages were pending before the commit."""
    with transaction.atomic():
        memory.remember(session.messages, occurred_at=session.moments)
        return memory.pending()


def _embed_the_rest(subjects: list[Subject]) -> None:
    """Embed what a slow embedder had no time for after the commits; with the local one, nothing."""
    for subject in subjects:
        if subject.memory.pending():
            subject.memory.embed_pending()


def _conclude(tell: Narrator, subjects: list[Subject], seconds: float) -> None:
    count = sum(subject.memory.count() for subject in subjects)
    pending = sum(subject.memory.pending() for subject in subjects)
    verdict = tell.bad if pending else tell.good
    verdict(f"{counted(count, 'memory', 'memories')}, {pending} pending, after {seconds:.1f} s.")
    repeats = sum(len(subject.transcript.messages) for subject in subjects) - count
    if repeats > 0:
        tell.say(
            f"{counted(repeats, 'message')} fewer than were given: a repeat is no second memory, "
            "and only what users and assistants say is remembered."
        )
