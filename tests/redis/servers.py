"""A Redis of one's own, that can be stopped."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from pathlib import Path

import redis

from tests.queues import closed_port


class RedisServer:
    """A redis-server on a free port, with nothing kept on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = closed_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.socket = str(folder / "redis.sock")
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [
                *("redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""),
                *("--unixsocket", self.socket),
            ],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
        )
        until = time.monotonic() + 20
        with redis.Redis.from_url(self.url) as connection:
            while True:
                with contextlib.suppress(redis.ConnectionError):
                    connection.ping()
                    return
                assert time.monotonic() < until, "redis-server does not start"
                time.sleep(0.02)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(20)

    def freeze(self) -> None:
        """Have it accept connections and never answer."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)
