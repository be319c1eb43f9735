"""Running management commands as an operator does: by their arguments, seeing what they write."""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from dataclasses import dataclass

import pytest
from django.core.management import call_command, load_command_class
from django.core.management.base import CommandError


@dataclass(frozen=True)
class Ran:
    out: str
    err: str
    code: int = 0


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def run(command: str, *arguments: str, terminal: bool = False) -> Ran:
    """Run a command; what it raises for the operator ends up in ``err`` and ``code``."""
    out, err = io.StringIO(), Terminal() if terminal else io.StringIO()
    try:
        call_command(command, *arguments, stdout=out, stderr=err, no_color=True)
    except CommandError as error:
        return Ran(out.getvalue(), f"{err.getvalue()}{error}", error.returncode)
    return Ran(out.getvalue(), err.getvalue())


def misused(command: str, *arguments: str) -> str:
    """Run a command line that is refused; assert that it exits with 2, and return the message."""
    line = ["manage.py", command, *arguments]
    with redirect_stderr(io.StringIO()) as err, pytest.raises(SystemExit) as exit:
        load_command_class("prism_memory", command).run_from_argv(line)
    assert exit.value.code == 2
    return err.getvalue()
