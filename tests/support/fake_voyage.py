"""A small Voyage server on loopback: the real protocol, with a switch for each way a reply can be wrong."""

from __future__ import annotations

import hashlib
import json
import math
import random
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

GOOD_KEY = "pa-test-key"


@dataclass
class FakeVoyage:
    """What the server does next and has seen. `faults` are used up one a call, then replies are good."""

    dimension: int = 8
    faults: list[str] = field(default_factory=list)
    max_texts: int = 1_000
    poison: str = "\0never"
    requests: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""
    patience: threading.Event = field(default_factory=threading.Event)  # set, a slow reply goes on

    def reply(self, body: dict[str, Any], key: str | None) -> tuple[int, dict[str, str], Any]:
        self.requests.append(body)
        fault = self.faults.pop(0) if self.faults else ""
        if key != f"Bearer {GOOD_KEY}":
            return 401, {}, {"detail": "Provided API key is invalid."}
        if fault.isdigit():
            return int(fault), {"Retry-After": "7"} if fault == "429" else {}, {"detail": f"fault {fault}"}
        if fault == "garbage":
            return 200, {}, "<html>a proxy's page</html>"
        if "documents" in body:
            return 200, {}, self._ranking(body, fault)
        if "inputs" in body:
            return self._contextualized(body, fault)
        if len(body["input"]) > self.max_texts or any(self.poison in text for text in body["input"]):
            return 400, {}, {"detail": "The batch is too large."}
        return 200, {}, self._embeddings(body, fault)

    def _ranking(self, body: dict[str, Any], fault: str) -> dict[str, Any]:
        """Score documents by how many words of the query they hold, best first as the provider does."""
        words = set(body["query"].casefold().split())
        data: list[dict[str, Any]] = [
            {"index": at, "relevance_score": len(words & set(text.casefold().split())) / (len(words) or 1)}
            for at, text in enumerate(body["documents"])
        ]
        data.sort(key=lambda entry: -entry["relevance_score"])
        if fault == "short":
            data.pop()
        elif fault == "twice":
            data[0]["index"] = data[-1]["index"]
        elif fault == "nan":
            data[0]["relevance_score"] = math.nan
        elif fault == "nothing":
            return {"object": "list"}
        return {"object": "list", "data": data, "model": body["model"], "usage": {"total_tokens": 1}}

    def _contextualized(self, body: dict[str, Any], fault: str) -> tuple[int, dict[str, str], Any]:
        """Give each text a vector of its own and of its group; faults hit the last group."""
        texts = [text for group in body["inputs"] for text in group]
        if not texts or len(texts) > self.max_texts or any(self.poison in text for text in texts):
            return 400, {}, {"detail": "The inputs are too large."}
        data: list[dict[str, Any]] = []
        for number, group in enumerate(body["inputs"]):
            seen = [in_context(group, at) for at in range(len(group))]
            faulty = fault if number == len(body["inputs"]) - 1 else ""
            reply = self._embeddings({"input": seen, "model": body["model"]}, faulty)
            data.append({"object": "list", "index": number, "data": reply.get("data")})
        if fault == "shuffled":
            random.Random(2).shuffle(data)
        elif fault == "group":
            data.pop()
        elif fault == "nothing":
            return 200, {}, {"object": "list"}
        usage = {"total_tokens": len(texts)}
        return 200, {}, {"object": "list", "data": data, "model": body["model"], "usage": usage}

    def _embeddings(self, body: dict[str, Any], fault: str) -> dict[str, Any]:
        length = self.dimension + (fault == "dimension")
        data: list[dict[str, Any]] = [
            {"object": "embedding", "index": number, "embedding": unit_vector(text, length)}
            for number, text in enumerate(body["input"])
        ]
        if fault == "shuffled":
            random.Random(1).shuffle(data)
        elif fault == "short":
            data.pop()
        elif fault == "twice":
            data[0]["index"] = data[-1]["index"]
        elif fault == "nan":
            data[0]["embedding"][0] = math.nan
        elif fault == "long":
            data[0]["embedding"] = [2 * value for value in data[0]["embedding"]]
        elif fault == "nothing":
            return {"object": "list"}
        return {"object": "list", "data": data, "model": body["model"], "usage": {"total_tokens": 1}}


def in_context(group: Sequence[str], at: int) -> str:
    """Return what decides the vector of one text of a group: the group and where in it the text stands."""
    return f"{at}\0" + "\0".join(group)


def unit_vector(text: str, length: int) -> list[float]:
    """Return the vector this server gives to `text`: of unit length, different for every text."""
    raw = [byte - 127.5 for byte in hashlib.shake_128(text.encode()).digest(length)]
    norm = math.sqrt(sum(value * value for value in raw))
    return [value / norm for value in raw]


@contextmanager
def serving(fake: FakeVoyage) -> Iterator[FakeVoyage]:
    """Serve `fake` on a free loopback port, named in its `url`, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if fake.faults[:1] == ["dropped"]:
                fake.requests.append(body)
                fake.faults.pop(0)
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            if fake.faults[:1] == ["slow"]:
                fake.faults.pop(0)
                fake.patience.wait(20)
            status, headers, content = fake.reply(body, self.headers.get("Authorization"))
            raw = content.encode() if isinstance(content, str) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def texts_of(requests: Sequence[dict[str, Any]]) -> list[int]:
    """Return how many texts each request carried."""
    return [len(request["input"]) for request in requests]
