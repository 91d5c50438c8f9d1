"""The application's own HTTP app: an ASGI app served over the link (reference 9 and 13)."""

from __future__ import annotations

import asyncio
import contextlib
import re
import traceback
from collections.abc import Mapping
from typing import Any

from .asgi import Forward, Scope, header_list, message_of, scope_of, send_message
from .exchange import Exchange, Exchanges, Gone
from .imports import LoadError, kind, named
from .log import Log


class App:
    """One ASGI app: its lifespan and its requests."""

    def __init__(self, spec: str, exchanges: Exchanges, log: Log) -> None:
        """Load what spec names. Raises LoadError if it is no ASGI app."""
        self._app = named(spec)
        if not callable(self._app):
            raise LoadError(f"{spec} is {kind(self._app)}; an ASGI app such as Starlette or FastAPI is needed")
        self._log = log
        self._state: dict[str, Any] = {}
        self._lifespan = _Lifespan(self._app, self._state)
        router = _router(self._app)
        self._wraps = router is not None and _wraps(self._app, router)
        self._routes = (
            None if router is None else _prepare(router, Forward(exchanges, inner=True) if self._wraps else _pass)
        )

    async def start(self) -> None:
        """Run the app's startup. Raises LoadError when it fails."""
        await self._lifespan.start()

    async def stop(self) -> None:
        """Run the app's shutdown."""
        await self._lifespan.stop()

    def described(self) -> dict[str, Any]:
        """Return what LOADED says about the part."""
        return {"routes": self._routes, "middleware": self._wraps}

    async def serve(self, exchange: Exchange) -> None:
        """Answer one request of the server; never raises but when it is cancelled."""
        scope = scope_of(exchange.request, self._state)
        scope["slipway.exchange"] = exchange.number
        session = _Socket(exchange) if exchange.websocket else _Request(exchange, opaque=self._routes is None)
        try:
            await self._app(scope, session.receive, session.send)
            await session.finish()
        except Gone:
            pass
        except Exception as error:
            if not session.passed:
                self._log.error(f"the HTTP app failed: {type(error).__name__}: {error}")
                traceback.print_exception(error)
            await session.fail()
        finally:
            session.close()


class _Request:
    """The ASGI side of one HTTP exchange."""

    def __init__(self, exchange: Exchange, *, opaque: bool) -> None:
        self.passed = False
        self._exchange = exchange
        self._opaque = opaque
        self._head: dict[str, Any] | None = None
        self._started = False
        self._body_read = False
        self._done = False

    async def receive(self) -> dict[str, Any]:
        try:
            if self._body_read or self._done:
                await self._exchange.hung_up()
                return {"type": "http.disconnect"}
            part = await self._exchange.receive()
        except Gone:
            return {"type": "http.disconnect"}
        self._body_read = part.end
        return {"type": "http.request", "body": part.data, "more_body": not part.end}

    async def send(self, message: Mapping[str, Any]) -> None:
        if self.passed or self._exchange.gone is not None:
            return
        if message["type"] == "slipway.pass" or (self._opaque and message.get("status") == 404):
            self.passed = True
            self._exchange.respond({"pass": True})
        elif message["type"] == "http.response.start":
            self._head = {"status": message["status"], "headers": header_list(message.get("headers") or ())}
        elif message["type"] == "http.response.body":
            await self._body(message.get("body") or b"", bool(message.get("more_body")))

    async def _body(self, data: bytes, more: bool) -> None:
        if self._head is not None and not self._started:
            self._started = True
            self._exchange.respond(self._head)
        if data or not more:
            await self._exchange.send(bytes(data), end=not more)
        self._done = self._done or not more

    async def finish(self) -> None:
        """Take the app's return: an answer that is not complete is a failure of the app."""
        if not self._done and not self.passed and self._exchange.gone is None:
            await self.fail()

    async def fail(self) -> None:
        """Say that the app has failed: with a status as long as there is none."""
        if self.passed or self._done:
            return
        if self._started:
            return self._exchange.hang_up(reason="the app failed")
        self._head = {"status": 500, "headers": [["content-type", "text/plain; charset=utf-8"]]}
        with contextlib.suppress(Gone):
            await self._body(b"Internal Server Error", more=False)

    def close(self) -> None:
        if self._done or self.passed:
            self._exchange.drop()
        else:
            self._exchange.hang_up()


class _Socket:
    """The ASGI side of one WebSocket."""

    def __init__(self, exchange: Exchange) -> None:
        self.passed = False
        self._exchange = exchange
        self._connected = False
        self._accepted = False
        self._refusal: dict[str, Any] | None = None

    async def receive(self) -> dict[str, Any]:
        if not self._connected:
            self._connected = True
            return {"type": "websocket.connect"}
        try:
            return message_of(await self._exchange.receive(), "websocket.receive")
        except Gone as gone:
            return {"type": "websocket.disconnect", "code": gone.code, "reason": gone.reason}

    async def send(self, message: Mapping[str, Any]) -> None:
        kind = message["type"]
        if kind == "slipway.pass":
            self.passed = True
            self._exchange.respond({"pass": True})
        elif kind == "websocket.accept":
            self._accept(message)
        elif kind == "websocket.send":
            await send_message(self._exchange, message)
        elif kind == "websocket.close":
            await self._close(message)
        elif kind == "websocket.http.response.start":
            self._refuse(message["status"], header_list(message.get("headers") or ()))
        elif kind == "websocket.http.response.body":
            await self._exchange.send(message.get("body") or b"", end=not message.get("more_body"))

    def _accept(self, message: Mapping[str, Any]) -> None:
        headers = header_list(message.get("headers") or ())
        if message.get("subprotocol"):
            headers.append(["sec-websocket-protocol", message["subprotocol"]])
        self._accepted = True
        self._exchange.respond({"status": 101, "headers": headers})

    async def _close(self, message: Mapping[str, Any]) -> None:
        if self._accepted:
            self._exchange.hang_up(int(message.get("code") or 1000), message.get("reason") or "")
        elif self._refusal is None:
            self._refuse(403, [])
            await self._exchange.send(b"", end=True)

    def _refuse(self, status: int, headers: list[list[str]]) -> None:
        self._refusal = {"status": status, "headers": headers}
        self._exchange.respond(self._refusal)

    async def finish(self) -> None:
        """Take the app's return."""
        if self._accepted:
            self._exchange.hang_up(1000)

    async def fail(self) -> None:
        """Say that the app has failed."""
        if self._accepted:
            self._exchange.hang_up(1011, "the app failed")
        elif self._refusal is None and not self.passed:
            self._refuse(500, [])
            with contextlib.suppress(Gone):
                await self._exchange.send(b"", end=True)

    def close(self) -> None:
        self._exchange.drop()


async def _pass(scope: Scope, receive: Any, send: Any) -> None:
    """Leave a request to the built-in routes."""
    await send({"type": "slipway.pass"})


class _Lifespan:
    """The lifespan of an ASGI app; an app without one is served all the same."""

    def __init__(self, app: Any, state: dict[str, Any]) -> None:
        self._app = app
        self._state = state
        self._inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._outbox: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._inbox.put_nowait({"type": "lifespan.startup"})
        self._task = asyncio.get_running_loop().create_task(self._run())
        said = await self._outbox.get()
        if said is not None and said["type"] == "lifespan.startup.failed":
            raise LoadError(f"the HTTP app failed to start: {_last_line(said.get('message') or '')}")
        if said is None:
            self._task = None

    async def stop(self) -> None:
        if self._task is None:
            return
        self._inbox.put_nowait({"type": "lifespan.shutdown"})
        await self._outbox.get()

    async def _run(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self._state}
        with contextlib.suppress(Exception):  # an app that does not know lifespans raises
            await self._app(scope, self._inbox.get, self._put)
        self._outbox.put_nowait(None)

    async def _put(self, message: Mapping[str, Any]) -> None:
        self._outbox.put_nowait(message)


def _last_line(trace: str) -> str:
    lines = [line for line in trace.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it gave no reason"


# Apps of Starlette's kind


def _router(app: Any) -> Any:
    """Return the router of a Starlette or FastAPI app, also of one that middleware was wrapped around by hand."""
    for _ in range(10):
        router = getattr(app, "router", None)
        if router is not None and isinstance(getattr(router, "routes", None), list) and hasattr(router, "default"):
            return router
        app = getattr(app, "app", None)
    return None


def _wraps(app: Any, router: Any) -> bool:
    return getattr(app, "router", None) is not router or bool(getattr(app, "user_middleware", None))


def _prepare(router: Any, rest: Any) -> list[dict[str, Any]] | None:
    """Send what no route knows to rest, and return the routes as LOADED tells them."""
    router.routes[:] = [route for route in router.routes if not _documentation(route)]
    routes = [_described(route) for route in router.routes]
    router.routes.append(_OtherMethod(router.routes[:], rest))
    router.default = rest
    return None if None in routes else routes  # type: ignore[return-value]


def _described(route: Any) -> dict[str, Any] | None:
    path = getattr(route, "path", None)
    if not isinstance(path, str):
        return None
    name = type(route).__name__
    plain = re.sub(r"{(\w+):(?!path})\w+}", r"{\1}", path)
    if hasattr(route, "routes") and not hasattr(route, "endpoint"):
        return {"path": plain, "methods": None, "kind": "mount"}
    methods = getattr(route, "methods", None)
    if "WebSocket" in name:
        return {"path": plain, "methods": None, "kind": "websocket"}
    return {"path": plain, "methods": sorted(methods) if methods else None, "kind": "http"}


def _documentation(route: Any) -> bool:
    """Say whether FastAPI made the route by itself where the server has its own documentation."""
    made = getattr(getattr(route, "endpoint", None), "__qualname__", "").startswith("FastAPI.setup.")
    return made and getattr(route, "path", "") in ("/openapi.json", "/docs", "/docs/oauth2-redirect", "/redoc")


class _OtherMethod:
    """A last route: paths the app has for other methods only are left to the built-in routes."""

    def __init__(self, others: list[Any], rest: Any) -> None:
        self._others = others
        self.handle = self.app = rest
        self.path = None

    def matches(self, scope: Scope) -> tuple[Any, Scope]:
        """Match fully what other routes match in part."""
        from starlette.routing import Match

        partial = any(route.matches(scope)[0] is Match.PARTIAL for route in self._others)
        return (Match.FULL if partial else Match.NONE), {}

    def url_path_for(self, name: str, /, **path_params: Any) -> Any:
        """Name no path."""
        from starlette.routing import NoMatchFound

        raise NoMatchFound(name, path_params)
