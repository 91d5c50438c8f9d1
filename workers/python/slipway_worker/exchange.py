"""HTTP over the link: requests, responses, bodies and WebSocket messages of both sides (protocol, "HTTP: exchanges").

An exchange lives in the event loop it was begun in, which may be one of the user's; frames reach it from the worker's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

from . import frames
from .frames import Frame
from .link import Link

WINDOW = 256 << 10
"""How many bytes of BODY a side may send before it is given more room."""

_PIECE = 64 << 10


class Gone(Exception):
    """The other side has hung up."""

    def __init__(self, code: int = 1006, reason: str = "") -> None:
        super().__init__(reason or "the exchange was aborted")
        self.code = code
        self.reason = reason


class Part(NamedTuple):
    """One BODY: bytes, whether it is the last one, and whether it is text (WebSocket messages only)."""

    data: bytes
    end: bool
    text: bool


class Exchange:
    """One HTTP exchange or WebSocket."""

    def __init__(self, exchanges: Exchanges, number: int, request: Mapping[str, Any]) -> None:
        self.number = number
        self.request = request
        self.websocket = bool(request.get("websocket"))
        self.gone: Gone | None = None
        self._exchanges = exchanges
        self._loop = asyncio.get_running_loop()
        self._room = WINDOW
        self._parts: deque[Part] = deque()
        self._response: Mapping[str, Any] | None = None
        self._news = asyncio.Event()
        self._ended = {"sent": False, "received": False}

    # Receiving

    async def response(self) -> Mapping[str, Any]:
        """Await the other side's RESPONSE. Raises Gone when it hangs up instead."""
        await self._until(lambda: self._response is not None)
        return self._response or {}

    async def receive(self) -> Part:
        """Await the next BODY and give its sender room for more. Raises Gone after a HANGUP."""
        await self._until(lambda: bool(self._parts))
        part = self._parts.popleft()
        if part.data and self.gone is None:
            self._send(frames.ROOM, {"bytes": len(part.data)})
        if part.end:
            self._end("received")
        return part

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the bytes of the body up to its end."""
        while not self._ended["received"]:
            part = await self.receive()
            if part.data:
                yield part.data

    async def hung_up(self) -> Gone:
        """Await the HANGUP of the other side."""
        while self.gone is None:
            await self._turn()
        return self.gone

    # Sending

    def respond(self, envelope: Mapping[str, Any]) -> None:
        """Send RESPONSE."""
        self._send(frames.RESPONSE, envelope)
        if envelope.get("pass"):
            self._finish()

    async def send(self, data: bytes, *, end: bool = False) -> None:
        """Send bytes of the body as the other side has room for them; end with or without bytes."""
        for start in range(0, len(data), _PIECE):
            piece = data[start : start + _PIECE]
            await self._take_room(len(piece))
            last = end and start + len(piece) >= len(data)
            self._send(frames.BODY, {"end": True} if last else {}, piece)
        if end and not data:
            self._send(frames.BODY, {"end": True})
        if end:
            self._end("sent")

    async def message(self, data: bytes, *, text: bool) -> None:
        """Send one WebSocket message."""
        await self._take_room(len(data))
        self._send(frames.BODY, {"text": text}, data)

    def hang_up(self, code: int | None = None, reason: str = "") -> None:
        """Close a WebSocket, or abort; nothing happens when the exchange is over."""
        if self._over():
            return
        self._send(frames.HANGUP, {"reason": reason} if code is None else {"code": code, "reason": reason})
        self._finish()
        self.gone = Gone(1006 if code is None else code, reason)
        self._wake()

    def drop(self) -> None:
        """Be done with it: what still arrives is ignored."""
        self._finish()

    # Frames

    def take(self, frame: Frame) -> None:
        """Handle a frame of this exchange; may be called from the worker's loop."""
        if asyncio.get_running_loop() is self._loop:
            self._take(frame)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._take, frame)

    def _take(self, frame: Frame) -> None:
        envelope = frame.envelope
        if frame.kind == frames.RESPONSE:
            self._response = envelope
        elif frame.kind == frames.BODY:
            self._parts.append(Part(frame.payload, bool(envelope.get("end")), bool(envelope.get("text"))))
        elif frame.kind == frames.ROOM:
            self._room += int(envelope.get("bytes") or 0)
        elif frame.kind == frames.HANGUP:
            self.gone = Gone(int(envelope.get("code") or 1006), envelope.get("reason") or "")
            self._finish()
        self._news.set()

    def _wake(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._news.set)

    # Waiting

    async def _until(self, ready: Any) -> None:
        while not ready():
            if self.gone is not None:
                raise self.gone
            await self._turn()

    async def _turn(self) -> None:
        news = self._news
        await news.wait()
        if self._news is news:  # whoever wakes first arms it anew; the others have been woken already
            self._news = asyncio.Event()

    async def _take_room(self, size: int) -> None:
        while self._room < min(size, WINDOW):
            if self.gone is not None:
                raise self.gone
            await self._turn()
        if self.gone is not None:
            raise self.gone
        self._room -= size

    def _send(self, kind: int, envelope: Mapping[str, Any], payload: bytes = b"") -> None:
        if not self._over():
            self._exchanges.link.send(kind, self.number, envelope, payload)

    def _end(self, which: str) -> None:
        self._ended[which] = True
        if all(self._ended.values()):
            self._finish()

    def _over(self) -> bool:
        return self.number not in self._exchanges.open

    def _finish(self) -> None:
        self._exchanges.open.pop(self.number, None)


class Exchanges:
    """All exchanges of the link."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.open: dict[int, Exchange] = {}
        self._last = -1

    def begin(self, request: Mapping[str, Any]) -> Exchange:
        """Begin an exchange with the server."""
        with self.link.lock:
            self._last += 2
            number = self._last
        exchange = self.open[number] = Exchange(self, number, request)
        self.link.send(frames.REQUEST, number, request)
        return exchange

    def accept(self, frame: Frame) -> Exchange:
        """Return the exchange a REQUEST of the server begins."""
        exchange = self.open[frame.stream] = Exchange(self, frame.stream, frame.envelope)
        return exchange

    def take(self, frame: Frame) -> None:
        """Hand a frame to its exchange; frames of finished ones are ignored."""
        if (exchange := self.open.get(frame.stream)) is not None:
            exchange.take(frame)

    def end_run(self, run: int) -> None:
        """Abort what a run that has ended still asks of the server."""
        for exchange in [e for e in self.open.values() if e.number % 2 and e.request.get("run") == run]:
            exchange.hang_up(reason="the run has ended")
