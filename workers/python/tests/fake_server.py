"""The server's end of a link: starts a real worker process, or serves a Link in this process."""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from fake_storage import Refused, Storage

from slipway_worker import frames
from slipway_worker.frames import Frame

ROOT = Path(__file__).resolve().parent.parent
GRAPHS = ROOT / "tests" / "graphs"
PATIENCE = 30


class FakeServer:
    """Reads frames on a thread, applies storage operations at once and sorts the rest by what it belongs to."""

    def __init__(self, sock: socket.socket, storage: Storage | None = None):
        self.storage = storage or Storage()
        self.sock = sock
        self.operations: list[tuple[int, str]] = []
        self.refuse: dict[str, str] = {}
        self.general: queue.Queue[Frame | None] = queue.Queue()
        self.logs: list[dict[str, Any]] = []
        self._streams: dict[tuple[str, int], queue.Queue[Frame]] = {}
        self._next = 0
        self._next_exchange = 0
        self._conversations: dict[int, Conversation] = {}
        self.requests: queue.Queue[Conversation] = queue.Queue()
        self._lock = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, kind: int, stream: int, envelope: dict[str, Any], payload: bytes = b"") -> None:
        with self._lock:
            self.sock.sendall(frames.encode(kind, stream, envelope, payload))

    def expect(self, kind: int) -> Frame:
        frame = self.general.get(timeout=PATIENCE)
        assert frame is not None, "the worker has gone"
        assert frame.kind == kind, f"got {frame}, want kind {kind}"
        return frame

    def load(self, parts: dict[str, Any] | None = None, **graphs: str) -> dict[str, Any]:
        envelope = {"graphs": graphs, "slots": 10, "delta_max_supersteps": 5000, "parts": parts or {}}
        self.send(frames.LOAD, 0, envelope)
        return self.expect(frames.LOADED).envelope

    def run(self, graph_id: str, **members: Any) -> RunningRun:
        stream, inbox = self._open("run")
        envelope = {
            "run_id": str(uuid.uuid4()),
            "thread_id": str(uuid.uuid4()),
            "assistant_id": str(uuid.uuid4()),
            "graph_id": graph_id,
            "attempt": 1,
            "epoch": 1,
            "temporary": False,
            "resume": False,
            "input": None,
            "command": None,
            "config": {"configurable": {}, "metadata": {}},
            "context": None,
            "stream_mode": [],
            "subgraphs": False,
            "interrupt_before": None,
            "interrupt_after": None,
            "durability": None,
            "strict_resume": False,
            "credit": 1000,
        }
        envelope.update(members)
        self.send(frames.RUN, stream, envelope)
        return RunningRun(self, stream, inbox, envelope)

    def call(self, verb: str, graph_id: str, thread_id: str, **members: Any) -> Any:
        stream, inbox = self._open("call")
        config = members.pop("config", {"configurable": {"thread_id": thread_id}})
        self.send(frames.CALL, stream, {"verb": verb, "graph_id": graph_id, "config": config, **members})
        frame = inbox.get(timeout=PATIENCE)
        assert frame.kind == frames.RETURN
        return json.loads(frame.payload) if frame.envelope["ok"] else frame.envelope

    def verb(self, verb: str, payload: bytes = b"", **members: Any) -> Any:
        stream, inbox = self._open("call")
        self.send(frames.CALL, stream, {"verb": verb, **members}, payload)
        frame = inbox.get(timeout=PATIENCE)
        return json.loads(frame.payload) if frame.envelope["ok"] else frame.envelope

    def request(self, target: str, method: str = "GET", body: bytes | None = b"", **members: Any) -> Conversation:
        """Begin an HTTP exchange; body None leaves the request's body to the test."""
        with self._lock:
            self._next_exchange += 2
            number = self._next_exchange
            conversation = self._conversations[number] = Conversation(self, number, {})
        envelope = {"method": method, "target": target, "headers": [["Host", "api:8123"]], "scheme": "http"}
        envelope |= {"client": "1.2.3.4:5", "websocket": False, "run": 0, "inner": False, "user": None}
        self.send(frames.REQUEST, number, {**envelope, **members})
        if body is not None and not members.get("websocket"):
            conversation.send(body, end=True)
        return conversation

    def asked(self) -> Conversation:
        """Await the next REQUEST of the worker."""
        return self.requests.get(timeout=PATIENCE)

    def _open(self, space: str) -> tuple[int, queue.Queue[Frame]]:
        with self._lock:
            self._next += 1
            inbox = self._streams[(space, self._next)] = queue.Queue()
            return self._next, inbox

    def _read(self) -> None:
        decoder = frames.Decoder()
        while True:
            try:
                data = self.sock.recv(1 << 16)
            except OSError:
                data = b""
            if not data:
                self.general.put(None)
                return
            for frame in decoder.feed(data):
                self._take(frame)

    def _take(self, frame: Frame) -> None:
        if frame.kind in (frames.ASK, frames.TELL):
            self._apply(frame)
        elif frame.kind in (frames.CHUNK, frames.DONE):
            self._streams[("run", frame.stream)].put(frame)
        elif frame.kind == frames.RETURN:
            self._streams[("call", frame.stream)].put(frame)
        elif frame.kind == frames.REQUEST:
            conversation = self._conversations[frame.stream] = Conversation(self, frame.stream, frame.envelope)
            self.requests.put(conversation)
        elif frame.kind in (frames.RESPONSE, frames.BODY, frames.ROOM, frames.HANGUP):
            self._conversations[frame.stream].take(frame)
        elif frame.kind == frames.LOG:
            self.logs.append(frame.envelope)
        else:
            self.general.put(frame)

    def _apply(self, frame: Frame) -> None:
        op = frame.envelope["op"]
        self.operations.append((frame.kind, op))
        try:
            if op in self.refuse:
                raise Refused(f"{op} is refused", self.refuse[op])
            answer, payload = self.storage.apply(op, frame.envelope, frame.payload)
            answer = {"ok": True, **answer}
        except Refused as error:
            said = {"error": "Refused", "message": str(error), "code": error.code}
            answer, payload = {"ok": False, "error": said}, b""
        if frame.kind == frames.ASK:
            self.send(frames.ANSWER, frame.stream, answer, payload)


class Conversation:
    """The server's end of one HTTP exchange, begun by either side."""

    def __init__(self, server: FakeServer, number: int, request: dict[str, Any]):
        self.server, self.number, self.request = server, number, request
        self.room = 0
        self.grants = True
        self._inbox: queue.Queue[Frame] = queue.Queue()

    def take(self, frame: Frame) -> None:
        if frame.kind == frames.ROOM:
            self.room += frame.envelope["bytes"]
        else:
            self._inbox.put(frame)

    def send(self, data: bytes = b"", **envelope: Any) -> None:
        self.server.send(frames.BODY, self.number, envelope, data)

    def respond(self, status: int, headers: list[list[str]] | None = None) -> None:
        self.server.send(frames.RESPONSE, self.number, {"status": status, "headers": headers or []})

    def answer(self, status: int, body: bytes, headers: list[list[str]] | None = None) -> None:
        self.respond(status, headers)
        self.send(body, end=True)

    def grant(self, size: int) -> None:
        self.server.send(frames.ROOM, self.number, {"bytes": size})

    def hang_up(self, **envelope: Any) -> None:
        self.server.send(frames.HANGUP, self.number, envelope)

    def next(self) -> Frame:
        frame = self._inbox.get(timeout=PATIENCE)
        if frame.kind == frames.BODY and frame.payload and self.grants:
            self.grant(len(frame.payload))
        return frame

    def quiet(self) -> bool:
        return self._inbox.empty()

    def head(self) -> dict[str, Any]:
        frame = self.next()
        assert frame.kind == frames.RESPONSE, frame
        return frame.envelope

    def body(self) -> bytes:
        out = b""
        while True:
            frame = self.next()
            assert frame.kind == frames.BODY, frame
            out += frame.payload
            if frame.envelope.get("end"):
                return out


class RunningRun:
    """A run the server has started."""

    def __init__(self, server: FakeServer, stream: int, inbox: queue.Queue[Frame], envelope: dict[str, Any]):
        self.server, self.stream, self.envelope = server, stream, envelope
        self.chunks: list[tuple[str, Any]] = []
        self.thread_id = envelope["thread_id"]
        self.run_id = envelope["run_id"]
        self._inbox = inbox

    def next(self) -> Frame:
        frame = self._inbox.get(timeout=PATIENCE)
        if frame.kind == frames.CHUNK:
            self.chunks.append((frame.envelope["event"], json.loads(frame.payload)))
        return frame

    def until(self, event: str) -> Any:
        while (frame := self.next()).kind == frames.CHUNK:
            if frame.envelope["event"] == event:
                return self.chunks[-1][1]
        raise AssertionError(f"the run ended without {event}: {frame}")

    def done(self) -> Done:
        while (frame := self.next()).kind != frames.DONE:
            pass
        return Done(frame)

    def cancel(self, action: str = "interrupt") -> None:
        self.server.send(frames.CANCEL, self.stream, {"action": action, "reason": "test"})

    def of(self, event: str) -> list[Any]:
        return [data for name, data in self.chunks if name == event]


class Done:
    """What DONE said."""

    def __init__(self, frame: Frame):
        self.envelope = frame.envelope
        self.status = frame.envelope["status"]
        self.error = frame.envelope.get("error")
        self.snapshot = json.loads(frame.payload) if frame.payload else None


class Process(FakeServer):
    """A worker process with the test graphs as its working directory."""

    def __init__(self, cwd: Path = GRAPHS, env: dict[str, str] | None = None, stdout: Any = None):
        mine, theirs = socket.socketpair()
        env = {**os.environ, **(env or {}), "PYTHONPATH": str(ROOT), "SLIPWAY_WORKER_FD": str(theirs.fileno())}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "slipway_worker"], cwd=cwd, env=env, pass_fds=[theirs.fileno()], stdout=stdout
        )
        theirs.close()
        super().__init__(mine)
        self.hello = self.expect(frames.HELLO).envelope

    def close(self) -> int:
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        return self.process.wait(timeout=PATIENCE)


def said(server: Process, text: str) -> bool:
    """Whether the worker prints it before patience ends; its output goes to the file server.out."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with open(server.out.name) as out:
            if text in out.read():
                return True
        time.sleep(0.01)
    return False
