"""How user code refuses a request: exceptions with a status (reference 12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import jsonable


class Refused(Exception):
    """A call cannot be answered; code is one of the protocol's."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class HTTPRefusal(Exception):
    """The client gets exactly this status, detail and headers."""

    def __init__(self, error: str, status: int, detail: Any, headers: list[list[str]]) -> None:
        super().__init__(str(detail))
        self.error = error
        self.status = status
        self.detail = detail
        self.headers = headers


def refusal(error: BaseException, assertion: int) -> HTTPRefusal | None:
    """Return what an exception of a handler says to the client, or None if it is a mistake of the handler.

    assertion is the status of a failed assert.
    """
    name = type(error).__name__
    if isinstance(error, AssertionError):
        return HTTPRefusal(name, assertion, jsonable.text(error) or _PHRASES[assertion], [])
    status = _first(error, "status_code", "status")
    detail = _first(error, "detail", "message")
    if status is None and detail is None:
        return None
    number = int(status) if isinstance(status, int) and 100 <= status <= 599 else 401
    return HTTPRefusal(name, number, jsonable.text(error) if detail is None else detail, _headers(error))


def _first(error: BaseException, *names: str) -> Any:
    return next((v for name in names if (v := getattr(error, name, None)) is not None), None)


def _headers(error: BaseException) -> list[list[str]]:
    headers = getattr(error, "headers", None) or {}
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [[str(name), str(value)] for name, value in pairs]


_PHRASES = {401: "Unauthorized", 403: "Forbidden"}
