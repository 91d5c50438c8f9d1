"""Frames: how one message of the worker protocol looks as bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from . import jsonable

PROTOCOL = 1
MAX_FRAME = 64 << 20
"""The largest length a frame may announce; a larger one ends the connection."""

HELLO, LOAD, LOADED = 1, 2, 3
RUN, CANCEL, CREDIT, CHUNK, DONE = 10, 11, 12, 13, 14
CALL, RETURN, ABORT = 20, 21, 22
ASK, ANSWER, TELL = 30, 31, 32
LOG = 40
REQUEST, RESPONSE, BODY, ROOM, HANGUP = 50, 51, 52, 53, 54

_HEAD = struct.Struct(">IBII")
_REST = 9  # kind, stream and envelope size: what every length covers at least


class FrameError(Exception):
    """The bytes on the link are no frame. The connection cannot be used any further."""


class Frame(NamedTuple):
    """One message: what it is, what it belongs to, its envelope and its raw payload."""

    kind: int
    stream: int
    envelope: dict[str, Any]
    payload: bytes = b""


def encode(kind: int, stream: int, envelope: Mapping[str, Any], payload: bytes = b"") -> bytes:
    """Return the frame as bytes. Raises FrameError when it would be larger than MAX_FRAME."""
    head = jsonable.dumps(envelope)
    size = _REST + len(head) + len(payload)
    if size > MAX_FRAME:
        raise FrameError(f"a frame of {size} bytes is larger than the limit of {MAX_FRAME}")
    return b"".join((_HEAD.pack(size, kind, stream, len(head)), head, payload))


class Decoder:
    """Cuts a byte stream into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take the next bytes of the stream and yield every frame that is now complete."""
        self._buffer += data
        start = 0
        try:
            while (end := self._end(start)) is not None:
                yield self._decode(start, end)
                start = end
        finally:
            del self._buffer[:start]

    def _end(self, start: int) -> int | None:
        if len(self._buffer) - start < 4:
            return None
        size = int.from_bytes(self._buffer[start : start + 4], "big")
        if not _REST <= size <= MAX_FRAME:
            raise FrameError(f"a frame announces {size} bytes; {_REST} to {MAX_FRAME} are allowed")
        end = start + 4 + size
        return end if len(self._buffer) >= end else None

    def _decode(self, start: int, end: int) -> Frame:
        _, kind, stream, size = _HEAD.unpack_from(self._buffer, start)
        head = start + _HEAD.size
        if head + size > end:
            raise FrameError(f"an envelope of {size} bytes does not fit into its frame")
        envelope = jsonable.loads(bytes(self._buffer[head : head + size]))
        if not isinstance(envelope, dict):
            raise FrameError("an envelope is not a JSON object")
        return Frame(kind, stream, envelope, bytes(self._buffer[head + size : end]))
