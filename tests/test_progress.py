"""The progress bar: for people at a terminal, and invisible to everything else."""

from __future__ import annotations

import io

import pytest
from django.core.management.base import OutputWrapper
from django.core.management.color import color_style

from prism_memory.management import progress
from prism_memory.management.progress import Progress

from .commands import Terminal


@pytest.fixture
def every_drawing(monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_DRAWINGS", 0)


def lines(terminal: Terminal) -> list[str]:
    return [line.rstrip() for line in terminal.getvalue().split("\r") if line.strip()]


def test_a_terminal_sees_the_work_advance(every_drawing):
    terminal = Terminal()
    with Progress(OutputWrapper(terminal), "Embedding", 2000) as bar:
        bar.advance(500)
        bar.advance(1500)
    assert lines(terminal) == [
        "Embedding [........................]   0%  0 of 2,000",
        "Embedding [######..................]  25%  500 of 2,000",
        "Embedding [########################] 100%  2,000 of 2,000",
    ]
    assert "\n" not in terminal.getvalue()


def test_the_line_is_gone_when_the_work_is_done():
    terminal = Terminal()
    with Progress(OutputWrapper(terminal), "Erasing", 1) as bar:
        bar.advance(1)
        width = len(lines(terminal)[-1])
    assert terminal.getvalue().endswith(f"\r{' ' * width}\r")


def test_the_line_is_gone_when_the_work_fails():
    terminal = Terminal()
    with pytest.raises(RuntimeError), Progress(OutputWrapper(terminal), "Erasing", 1):
        raise RuntimeError
    assert terminal.getvalue().endswith(" \r")


def test_nothing_is_written_to_a_pipe_but_the_count_is_kept():
    pipe = io.StringIO()
    with Progress(OutputWrapper(pipe), "Erasing", 3) as bar:
        bar.advance(2)
        bar.hide()
    assert pipe.getvalue() == ""
    assert bar.done == 2


def test_nothing_is_written_where_it_is_not_wanted():
    terminal = Terminal()
    with Progress(OutputWrapper(terminal), "Erasing", 3, shown=False) as bar:
        bar.advance(3)
    assert terminal.getvalue() == ""


def test_it_is_not_drawn_more_often_than_eyes_can_follow():
    terminal = Terminal()
    with Progress(OutputWrapper(terminal), "Erasing", 100_000) as bar:
        for _ in range(10_000):
            bar.advance(1)
    assert len(lines(terminal)) < 100


def test_more_than_was_there_at_the_start_is_no_more_than_all(every_drawing):
    terminal = Terminal()
    with Progress(OutputWrapper(terminal), "Erasing", 1) as bar:
        bar.advance(3)
    assert lines(terminal)[-1] == "Erasing [########################] 100%  3 of 1"


def test_a_narrow_terminal_is_not_wrapped(monkeypatch, every_drawing):
    monkeypatch.setenv("COLUMNS", "20")
    terminal = Terminal()
    with Progress(OutputWrapper(terminal), "Erasing", 10) as bar:
        bar.advance(5)
    assert max(map(len, terminal.getvalue().split("\r"))) < 20


def test_it_is_not_in_the_colour_of_errors():
    terminal = Terminal()
    stderr = OutputWrapper(terminal)
    stderr.style_func = color_style(force_color=True).ERROR
    with Progress(stderr, "Erasing", 1):
        pass
    assert "\x1b" not in terminal.getvalue()
