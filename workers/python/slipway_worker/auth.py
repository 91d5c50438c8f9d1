"""Custom authentication: a langgraph_sdk.Auth object of the application (reference 12)."""

from __future__ import annotations

import asyncio
import datetime
import inspect
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from . import jsonable
from .imports import LoadError, kind, named
from .refusals import Refused, refusal
from .users import User, handler_user

_INJECTED = (
    "request",
    "body",
    "path",
    "method",
    "path_params",
    "query_params",
    "headers",
    "authorization",
)


class Auth:
    """The handlers of one Auth object."""

    def __init__(self, spec: str) -> None:
        """Load what spec names. Raises LoadError if it is no Auth object."""
        self._auth = named(spec)
        missing = [m for m in ("_authenticate_handler", "_handlers", "_global_handlers") if not hasattr(self._auth, m)]
        if missing:
            raise LoadError(f"{spec} is {kind(self._auth)}; an Auth object of langgraph_sdk is needed")
        self._handler = self._auth._authenticate_handler
        self._arguments = _arguments(self._handler) if self._handler else ()
        if "request" in self._arguments:
            _need_starlette()

    def described(self) -> dict[str, Any]:
        """Return what LOADED says about the part."""
        body = "body" in self._arguments or "request" in self._arguments
        return {"handlers": self._events(), "authenticates": self._handler is not None, "body": body}

    def _events(self) -> list[str]:
        events = [r if a == "*" else f"{r}:{a}" for r, a in self._auth._handlers]
        return [*events, *(["*"] if self._auth._global_handlers else [])]

    async def authenticate(self, call: Mapping[str, Any], body: bytes) -> dict[str, Any]:
        """Return the user of a request. Raises HTTPRefusal when the handler refuses it."""
        if self._handler is None:
            raise Refused("the Auth object has no authenticate handler", "invalid")
        values = {name: _VALUES[name](call, body) for name in self._arguments}
        return _user(await _called(self._handler, values, 401))

    async def authorize(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the most specific handler says of an operation, with the value as the handler left it."""
        resource, action = call["resource"], call["action"]
        value = _typed_value(resource, call.get("value") or {})
        handler = self._most_specific(resource, action)
        if handler is None:
            return {"allow": True, "filter": None, "value": value}
        user = handler_user(call.get("user") or {})
        context = _context(user, resource, action)
        said = await _called(handler, {"ctx": context, "value": value}, 403)
        return {**_verdict(said), "value": value}

    def _most_specific(self, resource: str, action: str) -> Callable[..., Any] | None:
        for key in ((resource, action), (resource, "*"), ("*", action)):
            if found := self._auth._handlers.get(key):
                return found[-1]
        return self._auth._global_handlers[-1] if self._auth._global_handlers else None


def _arguments(handler: Callable[..., Any]) -> tuple[str, ...]:
    parameters = inspect.signature(handler).parameters.values()
    unknown = [p.name for p in parameters if p.name not in _INJECTED and _needed(p)]
    if unknown:
        raise LoadError(
            f'the authenticate handler needs "{unknown[0]}", which is not known: '
            f"its parameters may be {', '.join(_INJECTED)}"
        )
    return tuple(p.name for p in parameters if p.name in _INJECTED)


def _need_starlette() -> None:
    try:
        import starlette.requests  # noqa: F401
    except ImportError:
        raise LoadError(
            'the authenticate handler takes "request", which is a Request of starlette: add starlette to the '
            "application's dependencies, or take headers, body or authorization instead"
        ) from None


def _needed(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind not in (
        parameter.VAR_POSITIONAL,
        parameter.VAR_KEYWORD,
    )


async def _called(handler: Callable[..., Any], values: Mapping[str, Any], assertion: int) -> Any:
    try:
        if inspect.iscoroutinefunction(handler):
            return await handler(**values)
        said = await asyncio.to_thread(handler, **values)
        return await said if isinstance(said, Awaitable) else said
    except Exception as error:
        if (refused := refusal(error, assertion)) is not None:
            raise refused from error
        raise


def _user(said: Any) -> dict[str, Any]:
    members = _members(said)
    if not isinstance(members.get("identity"), str):
        raise TypeError(
            f'the authenticate handler returned {kind(said)} without an "identity": '
            "return a string, or an object with that member"
        )
    user = User(members)
    return {**user, "permissions": list(user.permissions or ())}


def _members(said: Any) -> dict[str, Any]:
    if isinstance(said, str):
        return {"identity": said}
    if isinstance(said, Mapping):
        return dict(said)
    dumped = jsonable.default(said) if said is not None else None
    members = dict(dumped) if isinstance(dumped, Mapping) else dict(getattr(said, "__dict__", {}))
    for name in ("identity", "display_name", "is_authenticated", "permissions"):  # may be properties
        if hasattr(said, name):
            members[name] = getattr(said, name)
    return {name: value for name, value in members.items() if not name.startswith("_")}


def _verdict(said: Any) -> dict[str, Any]:
    if said is None or said is True:
        return {"allow": True, "filter": None}
    if said is False:
        return {"allow": False, "filter": None}
    if isinstance(said, Mapping):
        return {"allow": True, "filter": dict(said)}
    raise TypeError(f"an authorisation handler returned {kind(said)}: return None, True, False or a filter")


def _context(user: Any, resource: str, action: str) -> Any:
    from langgraph_sdk.auth.types import AuthContext

    return AuthContext(permissions=user.permissions, user=user, resource=resource, action=action)  # type: ignore[arg-type]


# The value of an operation with the types langgraph_sdk.auth.types declares.

_IDS = ("assistant_id", "thread_id", "run_id", "cron_id")


def _typed_value(resource: str, value: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(value)
    for name in _IDS:
        if isinstance(out.get(name), str):
            out[name] = _uuid(out[name])
    if isinstance(out.get("ids"), list):
        out["ids"] = [_uuid(item) for item in out["ids"]]
    if resource == "store":
        for name in ("namespace", "suffix"):
            if isinstance(out.get(name), list):
                out[name] = tuple(out[name])
    if resource == "crons" and isinstance(out.get("end_time"), str):
        out["end_time"] = _time(out["end_time"])
    return out


def _uuid(text: Any) -> Any:
    try:
        return uuid.UUID(text)
    except (ValueError, TypeError, AttributeError):
        return text


def _time(text: str) -> Any:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return text


# What an authenticate handler may ask for.


def _headers(call: Mapping[str, Any]) -> list[tuple[bytes, bytes]]:
    return [(n.lower().encode("latin-1"), v.encode("latin-1", "replace")) for n, v in call.get("headers") or ()]


def _authorization(call: Mapping[str, Any], body: bytes) -> str | None:
    return next((v for n, v in call.get("headers") or () if n.lower() == "authorization"), None)


def _body(call: Mapping[str, Any], body: bytes) -> Any:
    try:
        return jsonable.loads(body) if body else None
    except ValueError:
        return body


def _query(call: Mapping[str, Any], body: bytes) -> Any:
    try:
        from starlette.datastructures import QueryParams
    except ImportError:
        return dict(parse_qsl(call.get("query") or "", keep_blank_values=True))
    return QueryParams(call.get("query") or "")


def _request(call: Mapping[str, Any], body: bytes) -> Any:
    from starlette.requests import Request

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request(_scope(call), receive)


def _scope(call: Mapping[str, Any]) -> dict[str, Any]:
    from urllib.parse import urlsplit

    url = urlsplit(call.get("url") or "")
    path = call.get("path") or url.path or "/"
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": call.get("method") or "GET",
        "scheme": url.scheme or "http",
        "server": (url.hostname or "localhost", url.port),
        "client": None,
        "root_path": "",
        "path": path,
        "raw_path": path.encode("utf-8", "replace"),
        "query_string": (call.get("query") or "").encode("latin-1", "replace"),
        "headers": _headers(call),
        "path_params": dict(call.get("path_params") or {}),
    }


_VALUES: Mapping[str, Callable[[Mapping[str, Any], bytes], Any]] = {
    "request": _request,
    "body": _body,
    "path": lambda call, body: call.get("path"),
    "method": lambda call, body: call.get("method"),
    "path_params": lambda call, body: dict(call.get("path_params") or {}),
    "query_params": _query,
    "headers": lambda call, body: dict(_headers(call)),
    "authorization": _authorization,
}
