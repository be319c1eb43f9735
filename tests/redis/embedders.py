"""An embedder that a test steers while it works in another process."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from prism_memory.testing import FakeEmbedder

__all__ = ["RemoteEmbedder"]


class RemoteEmbedder(FakeEmbedder):
    """Takes its time, and writes down how many texts it was sent.

    ``folder`` is where it meets the test. While the file ``hold-before`` or ``hold-after`` is
    there, it stops before it takes the texts or before it answers, and creates ``held``.
    """

    def __init__(self, *, folder: str, seconds: float = 0, batch_size: int = 20) -> None:
        super().__init__(batch_size=batch_size)
        self.folder = Path(folder)
        self.seconds = seconds

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.stop_at("before")
        with (self.folder / "sent").open("a") as sent:
            sent.write(f"{os.getpid()} {len(texts)}\n")
        time.sleep(self.seconds)
        vectors = [self.vector(text) for text in texts]
        self.stop_at("after")
        return vectors

    def stop_at(self, point: str) -> None:
        hold = self.folder / f"hold-{point}"
        while hold.exists():
            (self.folder / "held").touch()
            time.sleep(0.02)
