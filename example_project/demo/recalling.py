"""The second half of the demo: what matters to a question, and what a model gets of it."""

from __future__ import annotations

from collections.abc import Iterator

from prism_memory import CONVERSATION, Weighting, backends
from prism_memory.messages import utterances
from prism_memory.recollection import Recollection

from .assistant import messages_for
from .narration import Narrator, counted
from .remembering import Subject
from .transcripts import Question

#: How many questions are asked, and how many memories of each are shown with their scores.
ASKED = SHOWN = 3
YEAR = 365 * 24 * 60 * 60
#: The last question counts recency as well, which the weighting for conversations leaves out.
MIXED = Weighting(relevance=2, recency=1, wording=4, surroundings=3, half_life=YEAR)


def choose(subjects: list[Subject], asked: list[str]) -> tuple[Subject, list[Question], str]:
    """Return whom to ask what, and a remark on where the questions come from.

    Questions of the caller go first, then those of the file, if possible with a known answer.
    """
    if asked:
        return subjects[0], [Question(text) for text in asked], ""
    for subject in subjects:
        given = subject.transcript.questions
        answered = [question for question in given if question.evidence]
        if given:
            name = subject.transcript.name
            remark = f"The questions are about the conversation “{name}”."
            return subject, (answered or given)[:ASKED], remark if len(subjects) > 1 else ""
    subject = next(each for each in subjects if each.transcript.size)
    said = [utterance for _, utterance in utterances(subject.transcript.messages)]
    last = next((each for each in reversed(said) if each.role == "user"), said[-1])
    remark = 'The file has no questions, so its last message serves as one. Ask your own: --ask "…"'
    return subject, [Question(last.content)], remark


def recall(
    tell: Narrator, subject: Subject, questions: list[Question], remark: str, budget: int
) -> tuple[Question, Recollection]:
    """Recall for each question and show what was found; return the last question's."""
    tell.heading(f'recall("…", budget={budget}): what matters, and fits')
    if remark:
        tell.say(remark)
    whole = _tokens(subject)
    for question in questions:
        weighting = MIXED if question is questions[-1] else CONVERSATION
        relevant = subject.memory.recall(question.text, budget=budget, weighting=weighting)
        _show(tell, question, relevant, weighting)
        tell.say(
            f"{counted(len(relevant), 'memory', 'memories')} recalled, "
            f"{relevant.estimated_tokens:,} tokens; the whole conversation has {whole:,}. "
            f"{relevant.rows_ranked:,} rows ranked, {relevant.vectors_scored:,} vectors scored. "
            f"{_evidence(question, relevant)}"
        )
    return questions[-1], relevant


def hand_over(tell: Narrator, question: Question, relevant: Recollection) -> None:
    """Print the messages that a model would get, to the last character."""
    tell.heading("as_messages(): exactly what a model would get")
    tell.exactly(messages_for(question.text, relevant))
    if not relevant:
        tell.say("Nothing was recalled, so the model gets no message about it.")
        return
    tell.say("Oldest first, with dates: the model can tell which statement is later.")
    tell.say("digest() of the recalled text, the same whenever the same is recalled:")
    tell.say(relevant.digest())


def _show(tell: Narrator, question: Question, relevant: Recollection, weighting: Weighting) -> None:
    tell.question(question.text)
    if not relevant:
        return
    weights = [weighting.relevance, weighting.wording, weighting.surroundings, weighting.recency]
    tell.header(f"{'score':>5} {'simil.':>6} {'words':>6} {'beside':>6} {'recent':>6}  when")
    tell.row(f"{'':5} " + " ".join(f"{f'× {weight:.2f}':>6}" for weight in weights))
    for memory in relevant.ranked()[:SHOWN]:
        mark = "*" if (memory.role, memory.content) in question.evidence else " "
        parts = (
            f"{memory.score:5.2f} {memory.similarity:6.2f} {memory.wording:6.2f} "
            f"{memory.surroundings:6.2f} {memory.recency:6.2f}"
        )
        said = f"{memory.role or 'note'}: {memory.content}"
        tell.row(f"{parts}  {memory.occurred_at:%Y-%m-%d} {mark}", said)


def _evidence(question: Question, relevant: Recollection) -> str:
    if not question.evidence:
        return ""
    found = sum((each.role, each.content) in question.evidence for each in relevant)
    return f"Of {len(question.evidence)} known to answer it (*), {found} recalled."


def _tokens(subject: Subject) -> int:
    """How many tokens the whole conversation would cost, at every turn, without a memory."""
    return backends.token_counter().count("\n".join(_lines(subject)))


def _lines(subject: Subject) -> Iterator[str]:
    for _, utterance in utterances(subject.transcript.messages):
        yield f"{utterance.role}: {utterance.content}"
