"""Entry point: `python -m slipway_worker`, with one end of a socket pair on SLIPWAY_WORKER_FD (3)."""

from __future__ import annotations

import asyncio
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
    runner = _uvloop_run() or asyncio.run
    runner(_serve(_socket()))


async def _serve(sock: socket.socket) -> None:
    worker = Worker()
    loop = asyncio.get_running_loop()
    link = Link(sock, lambda received: loop.call_soon_threadsafe(worker.take, received))
    worker.attach(link)
    link.start(loop)
    link.send(frames.HELLO, 0, _hello())
    await asyncio.Event().wait()


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


def _uvloop_run() -> object:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.run


if __name__ == "__main__":
    main()
