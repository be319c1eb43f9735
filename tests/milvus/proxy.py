"""A line to a server that can be cut, or fall silent."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self


class Proxy:
    """Forwards connections to a server, byte for byte, as long as it is told to."""

    def __init__(self, host: str, port: int) -> None:
        self.target = (host, port)
        self.port = 0
        self.sockets: list[socket.socket] = []
        self.speaking = threading.Event()
        self.speaking.set()

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.mend()
        return self

    def __exit__(self, *exception: object) -> None:
        self.cut()
        self.speaking.set()

    def cut(self) -> None:
        """Drop all connections, and refuse new ones."""
        for each in [self.listener, *self.sockets]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self.sockets.clear()

    def silence(self) -> None:
        """Take connections and what is sent, and pass nothing on."""
        self.speaking.clear()

    def mend(self) -> None:
        """Forward again, on the same port."""
        self.speaking.set()
        if not self.port or self.listener.fileno() == -1:
            self.listener = socket.create_server(("127.0.0.1", self.port), backlog=50)
            self.port = self.listener.getsockname()[1]
            threading.Thread(target=self._accept, args=[self.listener], daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(self.target)
                self.sockets += [near, far]
                for source, sink in ((near, far), (far, near)):
                    thread = threading.Thread(target=self._pass, args=[source, sink], daemon=True)
                    thread.start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while received := source.recv(65_536):
                self.speaking.wait()
                sink.sendall(received)
            sink.shutdown(socket.SHUT_WR)
