"""Start a real Milvus for a command, or until Ctrl-C, and stop it.

    python tools/milvus_server.py -- python -m pytest -q tests/milvus
    python tools/milvus_server.py --folder /var/tmp/milvus --port 19530

The command finds the server's address in PRISM_TEST_MILVUS. The server is Milvus 2.3.5 standalone
from the PyPI package ``milvus``, installed into an environment of its own under the folder (a
temporary one unless said), which also holds its data. It takes some 15 seconds to start and half a
gigabyte of memory, picks free ports for its parts, and listens on all interfaces: for tests only.
Its etcd wants port 2380 for itself, so there can be one at a time on a machine.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

REQUIREMENT = "milvus==2.3.5"
#: Of the etcd in it; the only port that it does not let choose.
ETCD_PORT = 2380
#: Runs in the environment that has the package. Stops when its standard input ends: so it does not
#: outlive this tool, however that ends.
SERVE = """
import sys
from milvus import MilvusServer

server = MilvusServer(proxy_port=sys.argv[2])
server.set_base_dir(sys.argv[1])
server.start()
print("ready", flush=True)
sys.stdin.read()
server.stop()
"""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, help="of the environment and the data")
    parser.add_argument("--port", type=int, help="where it listens; a free one unless said")
    parser.add_argument("command", nargs="*", help="what to run; without it, wait for Ctrl-C")
    return parser.parse_args()


@contextlib.contextmanager
def folder_of(given: Path | None) -> Iterator[Path]:
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="milvus-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def installed(folder: Path) -> Path:
    """Return the Python of an environment that has the package."""
    python = folder / "environment" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "environment"], check=True)
    subprocess.run([python, "-m", "pip", "install", "-q", REQUIREMENT], check=True)
    return python


@contextlib.contextmanager
def running(folder: Path, port: int) -> Iterator[str]:
    """A server; yields its address once it answers."""
    if taken(ETCD_PORT):
        sys.exit(f"Port {ETCD_PORT} is taken, by another Milvus or etcd. Stop that one first.")
    wait_for(port)
    python = installed(folder)
    server = subprocess.Popen(
        [python, "-c", SERVE, folder / "data", str(port)],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # Not interrupted together with this tool, which stops it in its turn.
        start_new_session=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        if server.stdout.readline().strip() != "ready":
            sys.exit(f"Milvus does not start. Its logs are in {folder / 'data' / 'logs'}.")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stdin.close()
        server.wait(30)


def taken(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def wait_for(port: int) -> None:
    """Wait until connections of a server that was there before have faded, for a minute or so."""
    for _ in range(90):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return
        time.sleep(1)
    sys.exit(f"Port {port} is taken.")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def main() -> int:
    given = arguments()
    with folder_of(given.folder) as folder, running(folder, given.port or free_port()) as uri:
        print(f"PRISM_TEST_MILVUS={uri}", flush=True)
        try:
            if given.command:
                environment = {**os.environ, "PRISM_TEST_MILVUS": uri}
                return subprocess.run(given.command, env=environment, check=False).returncode
            while True:
                input()
        except (KeyboardInterrupt, EOFError):
            return 0


if __name__ == "__main__":
    sys.exit(main())
