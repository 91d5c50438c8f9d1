"""Modules user code finds in an agent server: `langgraph_api.asgi_transport`, `.server` and `.cache` (reference 13)."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import importlib.util
import os
import sys
import time
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar

from .asgi import RUN, Forward, header_list, raw_headers
from .exchange import Exchange, Exchanges, Gone
from .link import Link

T = TypeVar("T")

_DAY = 86400


def install(link: Link, exchanges: Exchanges) -> None:
    """Make the modules importable and let clients without an address talk to this server."""
    os.environ.setdefault("__LANGGRAPH_DEFER_LOOPBACK_TRANSPORT", "true")
    server = Forward(exchanges)
    package = _package()
    _module(package, "server", app=server)
    values = Values(link)
    _module(package, "cache", cache_get=values.get, cache_set=values.set, swr=values.swr, SWRResult=SWRResult)
    with contextlib.suppress(ImportError):
        _module(package, "asgi_transport", ASGITransport=_transport(exchanges))


def connect(exchanges: Exchanges) -> None:
    """Connect clients that were made while the graphs were loaded, for libraries that made them in their own way."""
    with contextlib.suppress(ImportError):
        from langgraph_sdk._shared.utilities import configure_loopback_transports

        configure_loopback_transports(Forward(exchanges))


def _package() -> types.ModuleType:
    package = types.ModuleType("langgraph_api")
    package.__path__ = []
    with contextlib.suppress(ImportError, ValueError):
        found = importlib.util.find_spec("langgraph_api")
        package.__path__ = list(found.submodule_search_locations or ()) if found else []
    sys.modules["langgraph_api"] = package
    return package


def _module(package: types.ModuleType, name: str, **members: Any) -> None:
    module = types.ModuleType(f"langgraph_api.{name}")
    vars(module).update(members)
    sys.modules[module.__name__] = module
    setattr(package, name, module)


# Loopback


def _transport(exchanges: Exchanges) -> type:
    import httpx

    class ASGITransport(httpx.AsyncBaseTransport):
        """Requests of user code to its own server, each one exchange; answers are streamed."""

        def __init__(self, app: Any = None, *args: Any, **options: Any) -> None:
            self.app = app

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            """Send a request with the rights of the current run's user."""
            exchange = exchanges.begin(_request(request))
            upload = asyncio.ensure_future(_upload(exchange, request.stream))
            try:
                response = await exchange.response()
            except Gone as gone:
                raise httpx.RemoteProtocolError(str(gone), request=request) from gone
            except BaseException:
                exchange.hang_up(reason="the caller was cancelled")
                raise
            finally:
                if exchange.gone is not None:
                    upload.cancel()
            headers = raw_headers(response.get("headers"))
            return httpx.Response(response["status"], headers=headers, stream=_Body(exchange, upload, request))

    class _Body(httpx.AsyncByteStream):
        def __init__(self, exchange: Exchange, upload: asyncio.Future[None], request: httpx.Request) -> None:
            self._exchange = exchange
            self._upload = upload
            self._request = request

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for data in self._exchange.body():
                    yield data
            except Gone as gone:
                raise httpx.RemoteProtocolError(str(gone), request=self._request) from gone

        async def aclose(self) -> None:
            self._upload.cancel()
            self._exchange.hang_up(reason="the caller has gone")

    return ASGITransport


def _request(request: Any) -> dict[str, Any]:
    return {
        "method": request.method,
        "target": request.url.raw_path.decode("latin-1"),
        "headers": header_list(request.headers.raw),
        "scheme": request.url.scheme,
        "client": "",
        "websocket": False,
        "run": RUN.get(),
        "inner": False,
    }


async def _upload(exchange: Exchange, stream: Any) -> None:
    with contextlib.suppress(Gone):
        async for data in stream:
            await exchange.send(data)
        await exchange.send(b"", end=True)


# The key-value cache


class Values:
    """langgraph_api.cache: JSON values by key, for a day at most."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._loading: dict[str, asyncio.Task[Any]] = {}

    async def get(self, key: str) -> Any:
        """Return the value of a key, or None."""
        return (await self._link.ask("value.get", {"run": RUN.get(), "key": key})).envelope.get("value")

    async def set(self, key: str, value: Any, ttl: Any = None) -> None:
        """Keep a JSON value for so long; a day without a ttl."""
        await self._link.ask("value.set", {"run": RUN.get(), "key": key, "value": value, "ttl": _ttl(ttl)})

    async def swr(
        self,
        key: str,
        loader: Callable[[], Awaitable[T]],
        *,
        fresh_for: datetime.timedelta | None = None,
        max_age: datetime.timedelta | None = None,
        model: Any = None,
    ) -> SWRResult[T]:
        """Return a cached value; a stale one at once, while the loader fetches a new one behind it."""
        entry = Entry(self, key, loader, _ttl(max_age) or _DAY, model)
        found = await self.get(_stamped(key))
        age = _age(found)
        if age is None:
            return SWRResult(await self.load(entry), "miss", entry)
        if age >= entry.max_age:
            return SWRResult(await self.load(entry), "expired", entry)
        value = _revived(found["value"], model)
        if age < _seconds(fresh_for):
            return SWRResult(value, "fresh", entry)
        self.refresh(entry)
        return SWRResult(value, "stale", entry)

    async def load(self, entry: Entry) -> Any:
        """Load and keep the value; callers of one key at the same time share one load."""
        return await asyncio.shield(self._task(entry))

    def refresh(self, entry: Entry) -> None:
        """Load behind the caller; what fails is tried again by the next one."""
        self._task(entry).add_done_callback(lambda task: task.cancelled() or task.exception())

    def _task(self, entry: Entry) -> asyncio.Task[Any]:
        loop = asyncio.get_running_loop()
        task = self._loading.get(entry.key)
        if task is None or task.done() or task.get_loop() is not loop:
            task = self._loading[entry.key] = loop.create_task(self._load(entry))
            task.add_done_callback(lambda done: self._loaded(entry.key, done))
        return task

    def _loaded(self, key: str, done: asyncio.Task[Any]) -> None:
        if self._loading.get(key) is done:
            del self._loading[key]

    async def _load(self, entry: Entry) -> Any:
        value = await entry.loader()
        await self.keep(entry, value)
        return value

    async def keep(self, entry: Entry, value: Any) -> None:
        """Keep a value as just loaded."""
        plain = value.model_dump(mode="json") if hasattr(value, "model_dump") else value
        await self.set(_stamped(entry.key), {"value": plain, "at": time.time()}, entry.max_age)


class Entry:
    """One use of swr: what is cached under which key, and how it is loaded."""

    def __init__(
        self, values: Values, key: str, loader: Callable[[], Awaitable[Any]], max_age: float, model: Any
    ) -> None:
        self.values, self.key, self.loader, self.max_age, self.model = values, key, loader, max_age, model


class SWRResult(Generic[T]):
    """What swr returns: the value, how fresh it is, and a way to change it."""

    def __init__(self, value: T, status: str, entry: Entry) -> None:
        self.value = value
        self.status = status
        self._entry = entry

    async def mutate(self, value: Any = ...) -> T:
        """Put a value in place of the cached one, or load it anew without one."""
        if value is ...:
            self.value = await self._entry.values.load(self._entry)
        else:
            await self._entry.values.keep(self._entry, value)
            self.value = value
        self.status = "fresh"
        return self.value


def _stamped(key: str) -> str:
    return f"swr:{key}"


def _age(found: Any) -> float | None:
    if not isinstance(found, Mapping) or not isinstance(found.get("at"), int | float):
        return None
    return max(0.0, time.time() - found["at"])


def _revived(value: Any, model: Any) -> Any:
    return model.model_validate(value) if model is not None else value


def _seconds(span: Any) -> float:
    return span.total_seconds() if isinstance(span, datetime.timedelta) else float(span or 0)


def _ttl(ttl: Any) -> float | None:
    seconds = _seconds(ttl)
    return min(seconds, _DAY) if seconds > 0 else None
