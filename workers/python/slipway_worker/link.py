"""The link to the agent server, on threads of its own.

User code may block the event loop for minutes; the link must not notice. One thread reads: it answers asks and hands
every other frame to the event loop. Another writes whatever the loop could not write itself at once. When the server
closes its end the process ends immediately, whatever the user's code is doing.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from . import frames
from .frames import Frame

_CHUNK = 1 << 18
_GATHER_SECONDS = 0.002


class LinkError(Exception):
    """The agent server refused or could not do a storage operation."""

    def __init__(self, message: str, code: str = "internal", error: str = "LinkError") -> None:
        super().__init__(message)
        self.code = code
        self.error = error


class Link:
    """One connection to the agent server. Its methods may be called from any thread."""

    def __init__(
        self,
        sock: socket.socket,
        receive: Callable[[list[Frame]], None],
        lost: Callable[[], None] = lambda: os._exit(0),
    ) -> None:
        """receive is called on the reading thread with frames that are no answers, lost when the server is gone."""
        sock.setblocking(True)
        self._sock = sock
        self._receive = receive
        self._lost = lost
        self.lock = threading.Lock()
        self._sending = threading.Lock()
        self._queue: list[bytes] = []
        self._wake = threading.Event()
        self._asks: dict[int, concurrent.futures.Future[Frame] | asyncio.Future[Frame]] = {}
        self._last_ask = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        self._flushing = False

    def start(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Start both threads. loop is the event loop that runs in the calling thread."""
        self._loop, self._loop_thread = loop, threading.get_ident()
        for target in (self._read, self._write):
            threading.Thread(target=target, name=f"slipway-link{target.__name__}", daemon=True).start()

    def send(self, kind: int, stream: int, envelope: Mapping[str, Any], payload: bytes = b"") -> None:
        """Send a frame. Frames sent within one moment of the event loop leave together."""
        data = frames.encode(kind, stream, envelope, payload)
        with self.lock:
            self._queue.append(data)
        self._flush_soon()

    def tell(self, op: str, envelope: Mapping[str, Any], payload: bytes = b"") -> None:
        """Send a storage operation without an answer."""
        self.send(frames.TELL, 0, {"op": op, **envelope}, payload)

    async def ask(self, op: str, envelope: Mapping[str, Any], payload: bytes = b"") -> Frame:
        """Send a storage operation and await its answer. Raises LinkError when the server refuses it."""
        future = asyncio.get_running_loop().create_future()
        number = self._ask(future, op, envelope, payload)
        try:
            return _accepted(await future)
        finally:
            self._asks.pop(number, None)

    def ask_sync(self, op: str, envelope: Mapping[str, Any], payload: bytes = b"") -> Frame:
        """Like ask, for a thread that may block."""
        future: concurrent.futures.Future[Frame] = concurrent.futures.Future()
        number = self._ask(future, op, envelope, payload)
        self.flush()
        try:
            return _accepted(future.result())
        finally:
            self._asks.pop(number, None)

    def flush(self) -> None:
        """Write everything that is queued, in this thread, blocking if the server reads slowly."""
        with self._sending:
            self._send_all(self._take())

    def _ask(self, future: Any, op: str, envelope: Mapping[str, Any], payload: bytes) -> int:
        with self.lock:
            self._last_ask += 1
            number = self._last_ask
            self._asks[number] = future
        try:
            self.send(frames.ASK, number, {"op": op, **envelope}, payload)
        except frames.FrameError:
            self._asks.pop(number, None)
            raise
        return number

    def _take(self) -> bytes:
        with self.lock:
            queue, self._queue = self._queue, []
        return queue[0] if len(queue) == 1 else b"".join(queue)

    def _flush_soon(self) -> None:
        if self._loop is not None and threading.get_ident() == self._loop_thread and not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush_now)
        if not self._wake.is_set():
            self._wake.set()

    def _flush_now(self) -> None:
        """Write from the event loop without ever blocking it: what the socket does not take is left to the thread."""
        self._flushing = False
        if not self._sending.acquire(blocking=False):
            return
        try:
            data = self._take()
            if not data:
                return
            try:
                sent = self._sock.send(data, socket.MSG_DONTWAIT)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError:
                return self._lost()
            if sent < len(data):
                with self.lock:
                    self._queue.insert(0, data[sent:])
                self._wake.set()
        finally:
            self._sending.release()

    def _write(self) -> None:
        while True:
            self._wake.wait()
            time.sleep(_GATHER_SECONDS)  # the loop usually writes by itself meanwhile, in one piece
            self._wake.clear()
            self.flush()

    def _send_all(self, data: bytes) -> None:
        try:
            if data:
                self._sock.sendall(data)
        except OSError:
            self._lost()

    def _read(self) -> None:
        decoder = frames.Decoder()
        while True:
            try:
                data = self._sock.recv(_CHUNK)
                if not data:
                    return self._lost()
                self._sort(list(decoder.feed(data)))
            except Exception:  # whatever it is: without this thread nobody would hear the server any more
                return self._lost()

    def _sort(self, received: list[Frame]) -> None:
        others: list[Frame] = []
        answers: list[tuple[asyncio.Future[Frame], Frame]] = []
        for frame in received:
            if frame.kind != frames.ANSWER:
                others.append(frame)
                continue
            future = self._asks.get(frame.stream)
            if isinstance(future, concurrent.futures.Future):
                future.set_result(frame)
            elif future is not None:
                answers.append((future, frame))
        if answers:
            self._answer(answers)
        if others:
            self._receive(others)

    def _answer(self, answers: list[tuple[asyncio.Future[Frame], Frame]]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Frame], Frame]]] = {}
        for future, frame in answers:
            by_loop.setdefault(future.get_loop(), []).append((future, frame))
        for loop, batch in by_loop.items():
            try:
                loop.call_soon_threadsafe(_resolve, batch)
            except RuntimeError:  # a loop of the user's that is closed by now
                continue


def _resolve(answers: list[tuple[asyncio.Future[Frame], Frame]]) -> None:
    for future, frame in answers:
        if not future.done():
            future.set_result(frame)


def _accepted(frame: Frame) -> Frame:
    if frame.envelope.get("ok"):
        return frame
    error = frame.envelope.get("error") or {}
    raise LinkError(
        error.get("message") or "the agent server refused a storage operation",
        error.get("code") or frame.envelope.get("code") or "internal",
        error.get("error") or "LinkError",
    )
