"""What the worker itself has to say. The user's prints and logging stay on standard output and error."""

from __future__ import annotations

from typing import Any

from . import frames
from .link import Link


class Log:
    """Structured log lines over the link."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._said: set[str] = set()

    def warning(self, message: str, **fields: Any) -> None:
        """Say something the deployment's operator should look at."""
        self._send("warning", message, fields)

    def error(self, message: str, **fields: Any) -> None:
        """Say what failed."""
        self._send("error", message, fields)

    def once(self, message: str) -> None:
        """Like warning, but only the first time in the life of this process."""
        if message not in self._said:
            self._said.add(message)
            self.warning(message)

    def _send(self, level: str, message: str, fields: dict[str, Any]) -> None:
        line = " ".join(message.split())
        self._link.send(frames.LOG, 0, {"level": level, "message": line, "logger": "slipway_worker", **fields})
