"""Entry point: `python -m slipway_worker`, with one end of a socket pair on SLIPWAY_WORKER_FD (3)."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import os
import platform
import signal
import socket
import sys
from importlib import metadata as packages

from . import frames
from .link import Link
from .worker import Worker


def main() -> None:
    """Serve until the agent server closes the link."""
    faulthandler.enable()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # the server decides when a worker ends: by closing the link
    loop = _new_loop()
    asyncio.set_event_loop(loop)
    serving = loop.create_task(_serve(_socket()))
    while not serving.done():
        # SystemExit and KeyboardInterrupt of a node leave the loop, but must end only their own run.
        with contextlib.suppress(SystemExit, KeyboardInterrupt):
            loop.run_until_complete(serving)


async def _serve(sock: socket.socket) -> None:
    worker = Worker()
    loop = asyncio.get_running_loop()
    link = Link(sock, lambda received: worker.hear(loop, received), lambda: _end(worker, loop))
    worker.attach(link)
    link.start(loop)
    link.send(frames.HELLO, 0, _hello())
    await asyncio.Event().wait()


def _end(worker: Worker, loop: asyncio.AbstractEventLoop) -> None:
    """End the process, for the server is gone. What the application has open gets a moment to be closed."""
    if worker.closable:
        closing = asyncio.run_coroutine_threadsafe(worker.close(), loop)
        with contextlib.suppress(Exception):
            closing.result(_CLOSING_SECONDS)
    os._exit(0)


_CLOSING_SECONDS = 2


def _socket() -> socket.socket:
    number = int(os.environ.pop("SLIPWAY_WORKER_FD", "3"))
    os.set_inheritable(number, False)
    return socket.socket(fileno=number)


def _hello() -> dict[str, object]:
    versions = {"python": platform.python_version()}
    for name, package in (
        ("langgraph", "langgraph"),
        ("checkpoint", "langgraph-checkpoint"),
        ("core", "langchain-core"),
    ):
        versions[name] = _version(package)  # type: ignore[assignment]
    return {"protocol": frames.PROTOCOL, "language": "python", "pid": os.getpid(), "versions": versions}


def _version(package: str) -> str | None:
    try:
        return packages.version(package)
    except packages.PackageNotFoundError:
        return None


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


if __name__ == "__main__":
    main()
