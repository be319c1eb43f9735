"""A pgbouncer that hands out a connection for a transaction, and then gives it to another."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

__all__ = ["Bouncer"]

HOST = "127.0.0.1"


class Bouncer:
    """In front of a server; ``size``: how many connections it has to that, for all clients."""

    def __init__(self, folder: Path, server: dict[str, Any], size: int) -> None:
        with socket.create_server((HOST, 0)) as listener:
            self.port = listener.getsockname()[1]
        folder.chmod(0o755)
        (folder / "users").write_text(f'"{server["USER"]}" ""\n')
        (folder / "pgbouncer.ini").write_text(
            f"[databases]\n"
            f"* = host={server['HOST']} port={server['PORT']}\n"
            f"[pgbouncer]\n"
            f"listen_addr = {HOST}\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = {folder}/users\n"
            f"pool_mode = transaction\ndefault_pool_size = {size}\n"
        )
        command = ["pgbouncer", "-q", str(folder / "pgbouncer.ini")]
        if os.geteuid() == 0:  # which it refuses to run as
            command[1:1] = ["-u", "nobody"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE)
        self._wait()

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate()

    def _wait(self) -> None:
        for _ in range(100):
            try:
                socket.create_connection((HOST, self.port)).close()
                return
            except ConnectionRefusedError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        self.process.terminate()
        raise RuntimeError(f"pgbouncer did not start: {self.process.communicate()[1].decode()}")
