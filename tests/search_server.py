"""An HTTP server that answers as OpenSearch's `_search` and `_msearch` do, faults included."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from retrievers.base import Retriever

Fault = tuple[int, dict[str, str], bytes] | float | str


class SearchServer(ThreadingHTTPServer):
    """Searches with `engine`; `faults` are used up first, one a request.

    A fault is (status, headers, body), a number of seconds to wait before the answer, "drip" for
    an answer that comes a byte at a time, or "hang up".
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, engine: Retriever) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.engine = engine
        self.faults: list[Fault] = []
        self.always: Fault | None = None
        self.bad: set[str] = set()  # queries that end in a 500
        self.bodies: list[Any] = []  # as they came, parsed
        self.requests: list[tuple[str, str, dict[str, str]]] = []  # method, path, headers
        self.times: list[float] = []
        self.connections = 0
        self.most_at_once = self.now = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def get_request(self) -> Any:
        self.connections += 1
        return super().get_request()

    def next_fault(self) -> Fault | None:
        return self.faults.pop(0) if self.faults else self.always

    def found(self, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to one search: https://opensearch.org/docs/latest/api-reference/search/."""
        query = body["query"]["multi_match"]["query"]
        hits = self.engine.search([query], body.get("size", 10))[0]
        return {
            "took": 3,
            "timed_out": False,
            "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
            "hits": {
                "total": {"value": len(hits), "relation": "eq"},
                "max_score": hits[0].score if hits else None,
                "hits": [{"_index": "docs", "_id": id, "_score": score} for id, score in hits],
            },
        }


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: SearchServer

    def do_POST(self) -> None:
        server = self.server
        with server.lock:
            server.now += 1
            server.most_at_once = max(server.most_at_once, server.now)
            server.times.append(time.monotonic())
            server.requests.append((self.command, self.path, dict(self.headers)))
            fault = server.next_fault()
        try:
            self._answer(fault, self.rfile.read(int(self.headers.get("Content-Length", 0))))
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            with server.lock:
                server.now -= 1

    do_GET = do_POST

    def log_message(self, *_: Any) -> None:
        pass

    def _answer(self, fault: Fault | None, body: bytes) -> None:
        lines = [json.loads(line) for line in body.splitlines() if line]
        with self.server.lock:
            self.server.bodies.append(lines[0] if len(lines) == 1 else lines)
        if fault == "hang up":
            self.close_connection = True
            self.connection.close()
        elif fault == "drip":
            self._drip()
        elif isinstance(fault, tuple):
            self._send(*fault)
        else:
            time.sleep(fault if isinstance(fault, float) else 0)
            self._search(lines)

    def _search(self, lines: Sequence[Any]) -> None:
        address = urlsplit(self.path)
        if address.path.endswith("_msearch"):
            assert self.headers["Content-Type"] == "application/x-ndjson"
            answer: Any = {"took": 3, "responses": [self._one(body) for body in lines[1::2]]}
        elif self.command == "GET":
            given = parse_qs(address.query)
            hits = self.server.engine.search(given["q"], int(given["rows"][0]))
            answer = {"response": {"docs": [{"id": hit.id} for hit in hits[0]]}}
        else:
            answer = self._one(lines[0])
        status = answer.get("status", 200)
        self._send(status, {}, json.dumps(answer).encode())

    def _one(self, body: dict[str, Any]) -> dict[str, Any]:
        if body["query"]["multi_match"]["query"] in self.server.bad:
            return {"error": {"type": "search_phase_execution_exception"}, "status": 500}
        return {**self.server.found(body)}

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        for _ in range(100):
            self.wfile.write(b" ")
            time.sleep(0.05)
        self.close_connection = True


@contextmanager
def serving(engine: Retriever) -> Iterator[SearchServer]:
    """The server in a thread, on a free port of this machine."""
    server = SearchServer(engine)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
