"""The checkpointer the worker gives to graphs: it keeps nothing itself, the agent server stores (reference 14).

Values are serialised with the library's own serde, once, and travel as opaque bytes. Within a run writes are sent
without waiting, unless durability is "sync": the server applies them in order and makes them durable before it acts on
the run's end.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)

from . import jsonable
from .frames import Frame
from .link import Link

_DROPPED_METADATA = ("langgraph_auth_", "langgraph_request_id")


class Put(NamedTuple):
    """What a snapshot needs to know of the last checkpoint a run stored."""

    thread_id: str
    checkpoint_id: str
    parent_id: str | None
    created_at: str | None
    metadata: dict[str, Any]


class Saver(BaseCheckpointSaver[str]):
    """A checkpointer over the link, for one run or for one call."""

    def __init__(
        self,
        link: Link,
        *,
        run: int = 0,
        wait: bool = True,
        fresh: str | None = None,
        serde: Any = None,
        sealing: Any = None,
    ) -> None:
        """run is the run's stream, 0 outside a run; with wait every write is answered before it returns.

        fresh is the run's thread if it has no checkpoint yet: reads of it find nothing until something was written.
        sealing is what encrypts values after serde: handlers, a bridge for code that cannot await, and their context.
        """
        super().__init__(serde=serde)
        self._link = link
        self._run = run
        self._wait = wait or not run
        self._fresh = {fresh} - {None}  # one set, also for the copies that with_allowlist makes
        self._sealing = sealing
        self.last: dict[str, Put] = {}

    def get_next_version(self, current: str | int | float | None, channel: None = None) -> str:
        """Return a version above current that no other branch of the thread ever makes (reference 14.4)."""
        number = int(current.split(".")[0]) if isinstance(current, str) else int(current or 0)
        return f"{number + 1:032}.{random.getrandbits(53):016}"

    # Reads

    def get_tuple(self, config: Mapping[str, Any]) -> CheckpointTuple | None:
        """Return the addressed checkpoint, or the newest of its thread and namespace, or None."""
        address = self._address(config)
        if address["thread_id"] in self._fresh:
            return None
        return self._tuple(self._opened_sync(self._link.ask_sync("checkpoint.get", address)))

    async def aget_tuple(self, config: Mapping[str, Any]) -> CheckpointTuple | None:
        """Return the addressed checkpoint, or the newest of its thread and namespace, or None."""
        address = self._address(config)
        if address["thread_id"] in self._fresh:
            return None
        return self._tuple(await self._opened(await self._link.ask("checkpoint.get", address)))

    def list(
        self,
        config: Mapping[str, Any] | None,
        *,
        filter: dict[str, Any] | None = None,
        before: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints newest first; config None spans all threads."""
        frame = self._link.ask_sync("checkpoint.list", self._query(config, filter, before, limit))
        yield from self._tuples(self._opened_sync(frame))

    async def alist(
        self,
        config: Mapping[str, Any] | None,
        *,
        filter: dict[str, Any] | None = None,
        before: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints newest first; config None spans all threads."""
        frame = await self._link.ask("checkpoint.list", self._query(config, filter, before, limit))
        for item in self._tuples(await self._opened(frame)):
            yield item

    def get_delta_channel_history(self, *, config: Mapping[str, Any], channels: Sequence[str]) -> Mapping[str, Any]:
        """Return the writes and the seed of each delta channel along the checkpoint's ancestors (reference 14.5)."""
        if not channels:
            return {}
        asked = {**self._address(config), "channels": list(channels)}
        return self._history(self._opened_sync(self._link.ask_sync("checkpoint.delta_history", asked)), channels)

    async def aget_delta_channel_history(
        self, *, config: Mapping[str, Any], channels: Sequence[str]
    ) -> Mapping[str, Any]:
        """Return the writes and the seed of each delta channel along the checkpoint's ancestors (reference 14.5)."""
        if not channels:
            return {}
        asked = {**self._address(config), "channels": list(channels)}
        return self._history(await self._opened(await self._link.ask("checkpoint.delta_history", asked)), channels)

    # Writes

    def put(
        self,
        config: Mapping[str, Any],
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> dict[str, Any]:
        """Store a checkpoint with the values its new versions stand for; return the config that addresses it."""
        envelope, payload = self._put(config, checkpoint, metadata, new_versions)
        self._write_sync("checkpoint.put", envelope, payload)
        return self._stored(envelope, checkpoint)

    async def aput(
        self,
        config: Mapping[str, Any],
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> dict[str, Any]:
        """Store a checkpoint with the values its new versions stand for; return the config that addresses it."""
        envelope, payload = self._put(config, checkpoint, metadata, new_versions)
        await self._write("checkpoint.put", envelope, payload)
        return self._stored(envelope, checkpoint)

    def put_writes(
        self, config: Mapping[str, Any], writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote, beside the checkpoint it started from."""
        self._write_sync("checkpoint.put_writes", *self._put_writes(config, writes, task_id, task_path))

    async def aput_writes(
        self, config: Mapping[str, Any], writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote, beside the checkpoint it started from."""
        await self._write("checkpoint.put_writes", *self._put_writes(config, writes, task_id, task_path))

    # Whole threads

    def delete_thread(self, thread_id: str) -> None:
        """Delete all checkpoints and writes of a thread."""
        self._do_sync("checkpoint.delete_thread", thread_id=thread_id)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete all checkpoints and writes of a thread."""
        await self._do("checkpoint.delete_thread", thread_id=thread_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints these runs made, with their writes."""
        self._do_sync("checkpoint.delete_for_runs", run_ids=[str(r) for r in run_ids])

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints these runs made, with their writes."""
        await self._do("checkpoint.delete_for_runs", run_ids=[str(r) for r in run_ids])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy everything of one thread to another, ids included."""
        self._do_sync("checkpoint.copy_thread", source=source_thread_id, target=target_thread_id)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy everything of one thread to another, ids included."""
        await self._do("checkpoint.copy_thread", source=source_thread_id, target=target_thread_id)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep only the newest checkpoint of each namespace ("keep_latest"), or none ("delete")."""
        self._do_sync("checkpoint.prune", thread_ids=list(thread_ids), strategy=strategy)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep only the newest checkpoint of each namespace ("keep_latest"), or none ("delete")."""
        await self._do("checkpoint.prune", thread_ids=list(thread_ids), strategy=strategy)

    # Sending

    async def _write(self, op: str, envelope: dict[str, Any], payload: bytes) -> None:
        self._fresh.clear()
        if self._sealing is not None:
            handlers, _, context = self._sealing
            payload = await handlers.seal(_pieces(envelope), payload, context)
        if self._wait:
            await self._link.ask(op, envelope, payload)
        else:
            self._link.tell(op, envelope, payload)

    def _write_sync(self, op: str, envelope: dict[str, Any], payload: bytes) -> None:
        self._fresh.clear()
        if self._sealing is not None:
            handlers, bridge, context = self._sealing
            payload = bridge.run(handlers.seal(_pieces(envelope), payload, context))
        if self._wait:
            self._link.ask_sync(op, envelope, payload)
        else:
            self._link.tell(op, envelope, payload)

    def _do_sync(self, op: str, **members: Any) -> None:
        self._fresh.clear()
        self._link.ask_sync(op, {"run": self._run, **members})

    async def _do(self, op: str, **members: Any) -> None:
        self._fresh.clear()
        await self._link.ask(op, {"run": self._run, **members})

    async def _opened(self, frame: Frame) -> Frame:
        if self._sealing is None:
            return frame
        handlers, _, _ = self._sealing
        return frame._replace(payload=await handlers.unseal(_pieces(frame.envelope), frame.payload))

    def _opened_sync(self, frame: Frame) -> Frame:
        return frame if self._sealing is None else self._sealing[1].run(self._opened(frame))

    # Envelopes

    def _address(self, config: Mapping[str, Any]) -> dict[str, Any]:
        conf = _configurable(config)
        return {
            "run": self._run,
            "thread_id": str(conf["thread_id"]),
            "checkpoint_ns": conf.get("checkpoint_ns") or "",
            "checkpoint_id": conf.get("checkpoint_id") or None,
        }

    def _query(
        self,
        config: Mapping[str, Any] | None,
        filter: dict[str, Any] | None,
        before: Mapping[str, Any] | None,
        limit: int | None,
    ) -> dict[str, Any]:
        conf = (config or {}).get("configurable") or {}
        return {
            "run": self._run,
            "thread_id": conf.get("thread_id"),
            "checkpoint_ns": conf.get("checkpoint_ns"),
            "checkpoint_id": conf.get("checkpoint_id") or None,
            "before": ((before or {}).get("configurable") or {}).get("checkpoint_id"),
            "filter": filter or None,
            "limit": limit,
        }

    def _put(
        self,
        config: Mapping[str, Any],
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> tuple[dict[str, Any], bytes]:
        blobs, parts = [], []
        values = checkpoint["channel_values"]
        for channel, version in new_versions.items():
            if channel in values:
                kind, data = self.serde.dumps_typed(values[channel])
                text = jsonable.dumps(version).decode()
                blobs.append({"channel": channel, "version": text, "type": kind, "size": len(data)})
                parts.append(data)
        kept = _metadata(config, metadata)
        address = self._address(config)
        address["parent_id"], address["checkpoint_id"] = address["checkpoint_id"], checkpoint["id"]
        address["header"] = {k: v for k, v in checkpoint.items() if k != "channel_values"}
        run_id = kept.get("run_id")
        address["metadata"], address["run_id"] = kept, None if run_id is None else str(run_id)
        address["blobs"] = blobs
        return address, b"".join(parts)

    def _put_writes(
        self, config: Mapping[str, Any], writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> tuple[dict[str, Any], bytes]:
        listed, parts = [], []
        for position, (channel, value) in enumerate(writes):
            kind, data = self.serde.dumps_typed(value)
            index = WRITES_IDX_MAP.get(channel, position)
            listed.append({"index": index, "channel": channel, "type": kind, "size": len(data)})
            parts.append(data)
        named = {"task_id": task_id, "task_path": task_path, "writes": listed}
        return {**self._address(config), **named}, b"".join(parts)

    def _stored(self, envelope: dict[str, Any], checkpoint: Checkpoint) -> dict[str, Any]:
        self.last[envelope["checkpoint_ns"]] = Put(
            envelope["thread_id"],
            checkpoint["id"],
            envelope["parent_id"],
            checkpoint.get("ts"),
            envelope["metadata"],
        )
        return _config(envelope["thread_id"], envelope["checkpoint_ns"], checkpoint["id"])

    # Answers

    def _tuple(self, frame: Frame) -> CheckpointTuple | None:
        described = frame.envelope.get("tuple")
        return None if described is None else self._checkpoint(described, _Pieces(frame.payload))

    def _tuples(self, frame: Frame) -> Iterator[CheckpointTuple]:
        pieces = _Pieces(frame.payload)
        for described in frame.envelope.get("tuples") or ():
            yield self._checkpoint(described, pieces)

    def _checkpoint(self, t: dict[str, Any], pieces: _Pieces) -> CheckpointTuple:
        values = {v["channel"]: self._load(v, pieces) for v in t.get("values") or ()}
        writes = [(w, self._load(w, pieces)) for w in t.get("writes") or ()]
        writes.sort(key=lambda w: (w[0].get("task_path") or "", w[0].get("task_id") or "", w[0]["index"]))
        thread, ns, parent = t["thread_id"], t["checkpoint_ns"], t.get("parent_id")
        return CheckpointTuple(
            config=_config(thread, ns, t["checkpoint_id"]),
            checkpoint={**t["header"], "channel_values": values},
            metadata=t.get("metadata") or {},
            parent_config=_config(thread, ns, parent) if parent else None,
            pending_writes=[(w.get("task_id") or "", w["channel"], value) for w, value in writes],
        )

    def _history(self, frame: Frame, channels: Sequence[str]) -> dict[str, Any]:
        pieces = _Pieces(frame.payload)
        found: dict[str, Any] = {channel: {"writes": []} for channel in channels}
        for entry in frame.envelope.get("channels") or ():
            history: dict[str, Any] = {}
            if entry.get("seed") is not None:
                history["seed"] = self._load(entry["seed"], pieces)
            history["writes"] = [
                (w.get("task_id") or "", w.get("channel") or entry["channel"], self._load(w, pieces))
                for w in entry.get("writes") or ()
            ]
            found[entry["channel"]] = history
        return found

    def _load(self, described: Mapping[str, Any], pieces: _Pieces) -> Any:
        return self.serde.loads_typed((described["type"], pieces.next(described["size"])))


def _pieces(envelope: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the descriptions of all byte strings of a payload, in its order."""
    found = [*(envelope.get("blobs") or ()), *(envelope.get("writes") or ())]
    for one in [envelope["tuple"]] if envelope.get("tuple") else envelope.get("tuples") or ():
        found += [*(one.get("values") or ()), *(one.get("writes") or ())]
    for channel in envelope.get("channels") or ():
        if isinstance(channel, dict):
            found += [*([channel["seed"]] if channel.get("seed") else ()), *(channel.get("writes") or ())]
    return found


class _Pieces:
    """Cuts a payload into the byte strings its envelope describes, in order."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._at = 0

    def next(self, size: int) -> bytes:
        start, self._at = self._at, self._at + size
        return self._payload[start : self._at]


def _configurable(config: Mapping[str, Any]) -> Mapping[str, Any]:
    conf = config.get("configurable") or {}
    if not conf.get("thread_id"):
        raise ValueError('the checkpointer needs a "thread_id" in config["configurable"]')
    return conf


def _config(thread_id: str, ns: str, checkpoint_id: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}}


def _metadata(config: Mapping[str, Any], metadata: CheckpointMetadata) -> dict[str, Any]:
    kept = get_checkpoint_metadata(config, metadata)  # type: ignore[arg-type]
    return {k: v for k, v in kept.items() if not k.startswith(_DROPPED_METADATA)}
