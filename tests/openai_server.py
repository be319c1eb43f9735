"""A small server that speaks OpenAI's embeddings, and misbehaves when told to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-SECRET-KEY"
Items = list[dict[str, Any]]


def item(index: int | None, *numbers: Any) -> dict[str, Any]:
    return {"object": "embedding", "index": index, "embedding": list(numbers)}


def numbered(texts: list[str]) -> Items:
    return [item(index, float(index), 1.0) for index in range(len(texts))]


class Server:
    """Notes what is asked. ``answer`` makes the items of the answer of the texts.

    ``faults`` are used up first, one a request: a status, or a function that gets the handler and
    the body and answers by itself.
    """

    def __init__(self) -> None:
        self.reset()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append(body)
                outer.headers.append({k.lower(): v for k, v in self.headers.items()})
                fault = outer.faults.pop(0) if outer.faults else outer.status
                if callable(fault):
                    fault(self, body)
                elif fault == 200:
                    usage = {"prompt_tokens": 1, "total_tokens": 1}
                    data = outer.answer(body["input"])
                    model = outer.model or body["model"]
                    answer = {"object": "list", "model": model, "data": data, "usage": usage}
                    respond(self, 200, json.dumps(answer))
                else:
                    respond(self, fault, outer.refusal(body))

            def log_message(self, *arguments: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"

    def reset(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answer: Callable[[list[str]], Items] = numbered
        self.faults: list[Any] = []
        self.status = 200
        self.model = ""
        self.message = "refused"

    def refusal(self, body: dict[str, Any]) -> str:
        """What providers do: they quote texts and keys."""
        message = f"{self.message} {body['input']} with {KEY}"
        return json.dumps({"error": {"message": message, "type": "x"}})

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


def respond(handler: BaseHTTPRequestHandler, status: int, body: str, **headers: str) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body.encode())


def slow_down(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    respond(handler, 429, '{"error": {"message": "slow down"}}', Retry_After="1")


def malformed(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    respond(handler, 200, '{"object": "list", "data": [')


def never(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    time.sleep(0.3)  # longer than the client's time-out; then the connection just ends
