"""An HTTP server that answers as OpenAI's chat completions do: scripted, faults included."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[dict[str, Any]], str]
# (status, headers, body); a number: seconds before the answer; a dict: the answer as it is.
Fault = tuple[int, dict[str, str], bytes] | float | dict[str, Any]


def tagged(scenario: str, question: str, answer: str = "yes") -> str:
    """The three parts."""
    return (
        f"<scenario>{scenario}</scenario>\n<question>{question}</question>\n"
        f"<answer>{answer}</answer>"
    )


class GenerationServer(ThreadingHTTPServer):
    """Answers with `answer(body)`; `faults` are used up first, one a request."""

    daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.faults: list[Fault] = []
        self.always: Fault | None = None
        self.finish = "stop"
        self.bodies: list[dict[str, Any]] = []
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.times: list[float] = []
        self.now = self.most_at_once = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def asked(self) -> list[str]:
        """The user's last message of every request."""
        return [body["messages"][-1]["content"] for body in self.bodies]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: GenerationServer

    def do_POST(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.now += 1
            server.most_at_once = max(server.most_at_once, server.now)
            server.times.append(time.monotonic())
            server.bodies.append(body)
            server.requests.append((self.path, dict(self.headers)))
            fault = server.faults.pop(0) if server.faults else server.always
        try:
            self._answer(body, fault)
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            with server.lock:
                server.now -= 1

    def log_message(self, *_: Any) -> None:
        pass

    def _answer(self, body: dict[str, Any], fault: Fault | None) -> None:
        if isinstance(fault, tuple):
            self._send(*fault)
        elif isinstance(fault, dict):
            self._send(200, {}, json.dumps(fault).encode())
        else:
            time.sleep(fault or 0)
            self._send(200, {}, json.dumps(self._completion(body)).encode())

    def _completion(self, body: dict[str, Any]) -> dict[str, Any]:
        """https://platform.openai.com/docs/api-reference/chat/object"""
        if self.path != "/v1/chat/completions":
            return {"error": {"message": f"no such path: {self.path}"}}
        message = {"role": "assistant", "content": self.server.answer(body)}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": self.server.finish}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
        }

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def generating(answer: Answer) -> Iterator[GenerationServer]:
    """The server in a thread, on a free port of this machine."""
    server = GenerationServer(answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
