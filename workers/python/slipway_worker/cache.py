"""The cache of nodes over the link: shared by all workers of one language (reference 15).

Each graph has entries of its own: the library names them by function and node, and two graphs of a deployment may have
nodes of one name made by functions of one name.

A cache may fail: what cannot be read is computed again, what cannot be kept is not kept, and the run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langgraph.cache.base import BaseCache

from .frames import Frame, FrameError
from .link import Link, LinkError

Key = tuple[tuple[str, ...], str]


class Cache(BaseCache[Any]):
    """The cache of one graph over the link, for the life of the worker."""

    def __init__(self, link: Link, serde: Any, warn: Callable[[str], None], graph_id: str = "") -> None:
        super().__init__(serde=serde)
        self._link = link
        self._warn = warn
        self._graph_id = graph_id

    def of(self, graph_id: str) -> Cache:
        """Return the cache of a graph."""
        return Cache(self._link, self.serde, self._warn, graph_id)

    def get(self, keys: Sequence[Key]) -> dict[Key, Any]:
        """Return the values that are there, by their keys."""
        try:
            return self._hits(keys, self._link.ask_sync("cache.get", self._keys(keys))) if keys else {}
        except LinkError as error:
            return self._missed("read", error)

    async def aget(self, keys: Sequence[Key]) -> dict[Key, Any]:
        """Return the values that are there, by their keys."""
        try:
            return self._hits(keys, await self._link.ask("cache.get", self._keys(keys))) if keys else {}
        except LinkError as error:
            return self._missed("read", error)

    def set(self, pairs: Mapping[Key, tuple[Any, int | None]]) -> None:
        """Keep values, each for so many seconds, or until it is cleared."""
        try:
            self._link.ask_sync("cache.set", *self._entries(pairs))
        except (LinkError, FrameError) as error:
            self._missed("written", error)

    async def aset(self, pairs: Mapping[Key, tuple[Any, int | None]]) -> None:
        """Keep values, each for so many seconds, or until it is cleared."""
        try:
            await self._link.ask("cache.set", *self._entries(pairs))
        except (LinkError, FrameError) as error:
            self._missed("written", error)

    def clear(self, namespaces: Sequence[tuple[str, ...]] | None = None) -> None:
        """Forget these namespaces, or everything."""
        self._link.ask_sync("cache.clear", self._namespaces(namespaces))

    async def aclear(self, namespaces: Sequence[tuple[str, ...]] | None = None) -> None:
        """Forget these namespaces, or everything."""
        await self._link.ask("cache.clear", self._namespaces(namespaces))

    def _entries(self, pairs: Mapping[Key, tuple[Any, int | None]]) -> tuple[dict[str, Any], bytes]:
        entries, data = [], []
        for (namespace, key), (value, ttl) in pairs.items():
            kind, raw = self.serde.dumps_typed(value)
            entries.append(
                {"namespace": self._place(namespace), "key": key, "ttl": ttl, "type": kind, "size": len(raw)}
            )
            data.append(raw)
        return {"run": 0, "entries": entries}, b"".join(data)

    def _hits(self, keys: Sequence[Key], answer: Frame) -> dict[Key, Any]:
        found, at = {}, 0
        for hit in answer.envelope.get("hits") or ():
            raw = answer.payload[at : at + hit["size"]]
            at += hit["size"]
            namespace, key = keys[hit["index"]]
            found[(tuple(namespace), key)] = self.serde.loads_typed((hit["type"], raw))
        return found

    def _missed(self, what: str, error: Exception) -> dict[Key, Any]:
        self._warn(f"the cache of nodes could not be {what}: {error}")
        return {}

    def _place(self, namespace: Sequence[str]) -> list[str]:
        return [self._graph_id, *namespace]

    def _keys(self, keys: Sequence[Key]) -> dict[str, Any]:
        return {"run": 0, "keys": [[self._place(namespace), key] for namespace, key in keys]}

    def _namespaces(self, namespaces: Sequence[tuple[str, ...]] | None) -> dict[str, Any]:
        return {"run": 0, "namespaces": None if namespaces is None else [self._place(ns) for ns in namespaces]}
