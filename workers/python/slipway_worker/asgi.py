"""Between ASGI and exchanges: scopes, requests that user code makes of its own server, and their answers."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from .exchange import Exchange, Exchanges, Gone
from .users import User

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

RUN: contextvars.ContextVar[int] = contextvars.ContextVar("slipway_run", default=0)
"""The stream of the run the current code belongs to, 0 outside of runs."""


def scope_of(request: Mapping[str, Any], state: Mapping[str, Any]) -> Scope:
    """Return the ASGI scope of a REQUEST."""
    path, _, query = request["target"].partition("?")
    headers = [(n.lower().encode("latin-1"), v.encode("latin-1", "replace")) for n, v in request.get("headers") or ()]
    websocket = bool(request.get("websocket"))
    scope: Scope = {
        "type": "websocket" if websocket else "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": _scheme(request.get("scheme") or "http", websocket),
        "path": unquote(path),
        "raw_path": path.encode("latin-1", "replace"),
        "query_string": query.encode("latin-1", "replace"),
        "root_path": "",
        "headers": headers,
        "client": _address(request.get("client"), None),
        "server": _address(dict(headers).get(b"host", b"").decode("latin-1"), 80),
        "state": dict(state),
        "extensions": {"websocket.http.response": {}} if websocket else {},
    }
    if websocket:
        offered = dict(headers).get(b"sec-websocket-protocol", b"").decode("latin-1")
        scope["subprotocols"] = [p.strip() for p in offered.split(",") if p.strip()]
    else:
        scope["method"] = request.get("method") or "GET"
    if request.get("user") is not None:
        scope.update(_authenticated(User(request["user"])))
    return scope


def request_of(scope: Scope, run: int, **more: Any) -> dict[str, Any]:
    """Return the REQUEST for an ASGI scope."""
    raw = scope.get("raw_path") or quote(scope["path"]).encode()
    query = scope.get("query_string") or b""
    client = scope.get("client")
    return {
        "method": scope.get("method") or "GET",
        "target": raw.partition(b"?")[0].decode("latin-1") + ("?" + query.decode("latin-1") if query else ""),
        "headers": header_list(scope.get("headers") or ()),
        "scheme": scope.get("scheme") or "http",
        "client": f"{client[0]}:{client[1]}" if client else "",
        "websocket": scope["type"] == "websocket",
        "run": run,
        "inner": False,
        **more,
    }


def header_list(headers: Any) -> list[list[str]]:
    """Return raw headers as the protocol has them."""
    return [[bytes(name).decode("latin-1"), bytes(value).decode("latin-1")] for name, value in headers]


def raw_headers(headers: Any) -> list[tuple[bytes, bytes]]:
    """Return headers of the protocol as ASGI has them."""
    return [(n.lower().encode("latin-1"), v.encode("latin-1", "replace")) for n, v in headers or ()]


class Forward:
    """An ASGI app that is the agent server itself: every request becomes an exchange."""

    def __init__(self, exchanges: Exchanges, *, inner: bool = False) -> None:
        """inner asks for the built-in routes only."""
        self._exchanges = exchanges
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            return await _no_lifespan(receive, send)
        outer = scope.get("slipway.exchange")
        more = {"inner": self._inner, **({"outer": outer} if outer is not None else {})}
        exchange = self._exchanges.begin(request_of(scope, RUN.get(), **more))
        serve = _relay_websocket if exchange.websocket else _relay
        try:
            await serve(exchange, receive, send)
        finally:
            exchange.hang_up()


async def _relay(exchange: Exchange, receive: Receive, send: Send) -> None:
    upload = asyncio.ensure_future(_upload(exchange, receive))
    try:
        response = await exchange.response()
        headers = raw_headers(response.get("headers"))
        await send({"type": "http.response.start", "status": response["status"], "headers": headers})
        async for data in exchange.body():
            await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    finally:
        upload.cancel()


async def _upload(exchange: Exchange, receive: Receive) -> None:
    with contextlib.suppress(Gone):
        while (message := await receive())["type"] == "http.request":
            more = bool(message.get("more_body"))
            await exchange.send(message.get("body") or b"", end=not more)
            if not more:
                break
        else:
            return exchange.hang_up(reason="the client has gone")
        while (await receive())["type"] != "http.disconnect":
            pass
        exchange.hang_up(reason="the client has gone")


async def _relay_websocket(exchange: Exchange, receive: Receive, send: Send) -> None:
    await receive()  # websocket.connect
    try:
        response = await exchange.response()
        if response["status"] != 101:
            return await send({"type": "websocket.close", "code": 1000})
        headers = raw_headers(response.get("headers"))
        chosen = dict(headers).get(b"sec-websocket-protocol")
        await send({"type": "websocket.accept", "subprotocol": chosen and chosen.decode("latin-1"), "headers": []})
        upload = asyncio.ensure_future(_upload_messages(exchange, receive))
        try:
            while True:
                await send(message_of(await exchange.receive(), "websocket.send"))
        finally:
            upload.cancel()
    except Gone as gone:
        with contextlib.suppress(RuntimeError):  # the client closed it first
            await send({"type": "websocket.close", "code": gone.code, "reason": gone.reason})


def message_of(part: Any, kind: str) -> dict[str, Any]:
    """Return a BODY of a WebSocket as an ASGI message."""
    return (
        {"type": kind, "text": part.data.decode("utf-8", "replace")}
        if part.text
        else {"type": kind, "bytes": part.data}
    )


async def _upload_messages(exchange: Exchange, receive: Receive) -> None:
    with contextlib.suppress(Gone):
        while (message := await receive())["type"] == "websocket.receive":
            await send_message(exchange, message)
        exchange.hang_up(int(message.get("code") or 1000), message.get("reason") or "")


async def send_message(exchange: Exchange, message: Mapping[str, Any]) -> None:
    """Send an ASGI WebSocket message over an exchange."""
    if (text := message.get("text")) is not None:
        await exchange.message(text.encode("utf-8", "surrogatepass"), text=True)
    else:
        await exchange.message(message.get("bytes") or b"", text=False)


async def _no_lifespan(receive: Receive, send: Send) -> None:
    for phase in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{phase}.complete"})


def _authenticated(user: User) -> dict[str, Any]:
    try:
        from starlette.authentication import AuthCredentials
    except ImportError:
        return {"user": user}
    return {"user": user, "auth": AuthCredentials(list(user.permissions))}


def _scheme(scheme: str, websocket: bool) -> str:
    return {"http": "ws", "https": "wss"}.get(scheme, scheme) if websocket else scheme


def _address(text: str | None, port: int | None) -> tuple[str, int | None] | None:
    if not text:
        return None
    try:
        url = urlsplit("//" + text)
        return (url.hostname or text, url.port or port or 0)
    except ValueError:
        return (text, port or 0)
