"""Shows in a terminal what Prism Memory does, with a conversation of half a year or with yours."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.management.color import no_style

from example_project.demo import forgetting, recalling, remembering
from example_project.demo.narration import Narrator
from example_project.demo.remembering import Subject
from example_project.demo.transcripts import TranscriptError, read
from prism_memory.exceptions import PrismMemoryError
from prism_memory.models import Memory

CONVERSATION = Path(remembering.__file__).with_name("conversation.json")
SCOPE = "demo"
CODE = """\
memory = Memory.objects.for_owner(request.user)
memory.remember(messages)
relevant = memory.recall(question, budget=1500)
messages = [instructions, *relevant.as_messages(), question]
"""


def tokens(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text):
        raise ArgumentTypeError("a budget is a whole number of tokens, at least 1")
    return int(text)


class Command(BaseCommand):
    help = (
        "Remembers a conversation, recalls from it within a budget of tokens, shows what a model "
        "would get, and forgets. Nothing leaves this machine."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--file",
            type=Path,
            default=CONVERSATION,
            help="Your own transcript: a JSON list of OpenAI-style messages, or JSON lines with "
            "one conversation each.",
        )
        parser.add_argument(
            "--ask", action="append", default=[], help="A question of yours; may be repeated."
        )
        parser.add_argument(
            "--budget",
            type=tokens,
            default=250,
            help="Tokens that recalled memories may take (%(default)s).",
        )
        parser.add_argument(
            "--keep", action="store_true", help="Don't forget, so that the admin shows them."
        )

    def handle(
        self, *, file: Path, ask: list[str], budget: int, keep: bool, **options: Any
    ) -> None:
        try:
            transcripts = read(file)
        except TranscriptError as error:
            raise CommandError(str(error)) from None
        call_command("migrate", verbosity=0, interactive=False)
        subjects = [
            Subject(each, Memory.objects.for_owner(each.name, scope=SCOPE)) for each in transcripts
        ]
        # What an earlier run kept, or left behind when it was interrupted.
        for subject in subjects:
            subject.memory.forget()
        try:
            self.play(subjects, self.narrator(**options), ask=ask, budget=budget, keep=keep)
        except PrismMemoryError as error:
            raise CommandError(str(error)) from error

    def narrator(self, *, force_color: bool, **options: Any) -> Narrator:
        """Return one that writes in colour on a terminal. Django itself does not know NO_COLOR."""
        coloured = force_color or (self.stdout.isatty() and not os.environ.get("NO_COLOR"))
        return Narrator(self.stdout, self.style if coloured else no_style())

    def play(
        self, subjects: list[Subject], tell: Narrator, *, ask: list[str], budget: int, keep: bool
    ) -> None:
        """Go through the parts in order."""
        tell.title("Prism Memory: remember, recall within a budget, hand over, forget")
        remembering.introduce(tell, subjects)
        remembering.remember(tell, subjects)
        subject, questions, remark = recalling.choose(subjects, ask)
        question, relevant = recalling.recall(tell, subject, questions, remark, budget)
        recalling.hand_over(tell, question, relevant)
        if keep:
            forgetting.keep(tell, subjects)
        elif not forgetting.forget(tell, subjects):
            raise CommandError("The memories were not forgotten entirely.")
        tell.heading("Your turn")
        tell.code(CODE)
        tell.say("Whole in example_project/demo/assistant.py; all the rest in README.md.")
        tell.say('Your own transcript: python manage.py demo --file chat.json --ask "…"')
