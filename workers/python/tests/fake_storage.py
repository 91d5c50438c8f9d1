"""The storage operations of the protocol, in memory: what the agent server does with ASK and TELL."""

from __future__ import annotations

import datetime
import json
from typing import Any


class Refused(Exception):
    def __init__(self, message: str, code: str = "internal"):
        super().__init__(message)
        self.code = code


class Storage:
    """Applies operations one after another. Bytes are kept as they came."""

    def __init__(self):
        self.checkpoints: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.blobs: dict[tuple[str, str, str, str], tuple[str, bytes]] = {}
        self.writes: dict[tuple[str, str, str], dict[tuple[str, int], dict[str, Any]]] = {}
        self.cached: dict[tuple[tuple[str, ...], str], tuple[str, bytes]] = {}
        self.values: dict[str, tuple[Any, float | None]] = {}
        self.items: dict[tuple[tuple[str, ...], str], dict[str, Any]] = {}

    def apply(self, op: str, e: dict[str, Any], payload: bytes) -> tuple[dict[str, Any], bytes]:
        handler = getattr(self, "_" + op.replace(".", "_"), None)
        if handler is None:
            raise Refused(f"unknown operation {op}", "invalid")
        return handler(e, payload) or ({}, b"")

    def _cache_get(self, e, _):
        hits, data = [], b""
        for index, (namespace, key) in enumerate(e["keys"]):
            if found := self.cached.get((tuple(namespace), key)):
                hits.append({"index": index, "type": found[0], "size": len(found[1])})
                data += found[1]
        return {"hits": hits}, data

    def _cache_set(self, e, payload):
        at = 0
        for entry in e["entries"]:
            data = payload[at : at + entry["size"]]
            at += entry["size"]
            self.cached[(tuple(entry["namespace"]), entry["key"])] = (entry["type"], data)
        assert at == len(payload), "sizes and payload differ"

    def _cache_clear(self, e, _):
        for key in [k for k in self.cached if e["namespaces"] is None or list(k[0]) in e["namespaces"]]:
            del self.cached[key]

    def _value_get(self, e, _):
        return {"value": self.values.get(e["key"], (None, None))[0]}, b""

    def _value_set(self, e, _):
        self.values[e["key"]] = (e["value"], e["ttl"])

    def _checkpoint_put(self, e, payload):
        thread, ns, at = e["thread_id"], e["checkpoint_ns"], 0
        for b in e["blobs"]:
            data = payload[at : at + b["size"]]
            at += b["size"]
            self.blobs.setdefault((thread, ns, b["channel"], b["version"]), (b["type"], data))
        assert at == len(payload), "sizes and payload differ"
        assert "channel_values" not in e["header"]
        self.checkpoints[(thread, ns, e["checkpoint_id"])] = {
            k: e[k]
            for k in ("thread_id", "checkpoint_ns", "checkpoint_id", "parent_id", "header", "metadata", "run_id")
        }

    def _checkpoint_put_writes(self, e, payload):
        rows = self.writes.setdefault((e["thread_id"], e["checkpoint_ns"], e["checkpoint_id"]), {})
        at, special = 0, all(w["index"] < 0 for w in e["writes"])
        for w in e["writes"]:
            data = payload[at : at + w["size"]]
            at += w["size"]
            key = (e["task_id"], w["index"])
            if special or key not in rows:
                rows[key] = {"task_id": e["task_id"], "task_path": e["task_path"], **w, "data": data}
        assert at == len(payload), "sizes and payload differ"

    def _checkpoint_get(self, e, _):
        ids = [k[2] for k in self.checkpoints if k[:2] == (e["thread_id"], e["checkpoint_ns"])]
        wanted = e["checkpoint_id"] or max(ids, default=None)
        if wanted not in ids:
            return {"tuple": None}, b""
        described, data = self._tuple((e["thread_id"], e["checkpoint_ns"], wanted))
        return {"tuple": described}, data

    def _checkpoint_list(self, e, _):
        keys = sorted(self.checkpoints, key=lambda k: k[2], reverse=True)
        out, data = [], b""
        for key in keys:
            if e["limit"] is not None and len(out) >= e["limit"]:
                break
            if self._matches(key, e):
                described, piece = self._tuple(key)
                out.append(described)
                data += piece
        return {"tuples": out}, data

    def _matches(self, key, e):
        thread, ns, number = key
        metadata = self.checkpoints[key]["metadata"]
        return (
            (e["thread_id"] is None or thread == e["thread_id"])
            and (e["checkpoint_ns"] is None or ns == e["checkpoint_ns"])
            and (e["checkpoint_id"] is None or number == e["checkpoint_id"])
            and (e["before"] is None or number < e["before"])
            and all(metadata.get(k) == v for k, v in (e["filter"] or {}).items())
        )

    def _rows(self, key):
        rows = self.writes.get(key, {}).values()
        return sorted(rows, key=lambda w: (w["task_path"], w["task_id"], w["index"]))

    def _tuple(self, key):
        thread, ns, _ = key
        row, values, pieces = self.checkpoints[key], [], []
        for channel, version in row["header"]["channel_versions"].items():
            text = json.dumps(version)
            if blob := self.blobs.get((thread, ns, channel, text)):
                values.append({"channel": channel, "version": text, "type": blob[0], "size": len(blob[1])})
                pieces.append(blob[1])
        writes = []
        for w in self._rows(key):
            writes.append({k: w[k] for k in ("task_id", "task_path", "index", "channel", "type", "size")})
            pieces.append(w["data"])
        described = {k: v for k, v in row.items() if k != "run_id"}
        return {**described, "values": values, "writes": writes}, b"".join(pieces)

    def _checkpoint_delete_thread(self, e, _):
        for table in (self.checkpoints, self.blobs, self.writes):
            for key in [k for k in table if k[0] == e["thread_id"]]:
                del table[key]

    def _checkpoint_delete_for_runs(self, e, _):
        for key in [k for k, row in self.checkpoints.items() if row["run_id"] in e["run_ids"]]:
            del self.checkpoints[key]
            self.writes.pop(key, None)

    def _checkpoint_copy_thread(self, e, _):
        source, target = e["source"], e["target"]
        for table in (self.checkpoints, self.blobs, self.writes):
            for key in [k for k in table if k[0] == source]:
                table[(target, *key[1:])] = table[key]
        for key in [k for k in self.checkpoints if k[0] == target]:
            self.checkpoints[key] = {**self.checkpoints[key], "thread_id": target}

    def _checkpoint_prune(self, e, _):
        for thread in e["thread_ids"]:
            if e["strategy"] == "delete":
                self._checkpoint_delete_thread({"thread_id": thread}, b"")
                continue
            keys = [k for k in self.checkpoints if k[0] == thread]
            newest = {ns: max(k[2] for k in keys if k[1] == ns) for ns in {k[1] for k in keys}}
            for key in [k for k in keys if k[2] != newest[k[1]]]:
                del self.checkpoints[key]
                self.writes.pop(key, None)

    def _checkpoint_delta_history(self, e, _):
        thread, ns = e["thread_id"], e["checkpoint_ns"]
        out, data = [], b""
        for channel in e["channels"]:
            seed, writes = self._walk(thread, ns, e["checkpoint_id"], channel)
            entry = {"channel": channel, "seed": None, "writes": []}
            if seed:
                entry["seed"] = {"type": seed[0], "size": len(seed[1])}
                data += seed[1]
            for w in writes:
                entry["writes"].append({k: w[k] for k in ("task_id", "index", "channel", "type", "size")})
                data += w["data"]
            out.append(entry)
        return {"channels": out}, data

    def _walk(self, thread, ns, number, channel):
        ids = [k[2] for k in self.checkpoints if k[:2] == (thread, ns)]
        row = self.checkpoints.get((thread, ns, number or max(ids, default="")))
        writes: list[dict[str, Any]] = []
        while row and (parent := row["parent_id"]) and (row := self.checkpoints.get((thread, ns, parent))):
            writes = [w for w in self._rows((thread, ns, parent)) if w["channel"] == channel] + writes
            version = json.dumps(row["header"]["channel_versions"].get(channel))
            if seed := self.blobs.get((thread, ns, channel, version)):
                return seed, writes
        return None, writes

    def _store_batch(self, e, _):
        return {"results": [self._store(op) for op in e["ops"]]}, b""

    def _store(self, op):
        ((verb, a),) = op.items()
        if verb == "get":
            return {"item": self.items.get((tuple(a["namespace"]), a["key"]))}
        if verb == "put":
            self._store_put(tuple(a["namespace"]), a)
            return {}
        if verb == "search":
            prefix = tuple(a["namespace_prefix"])
            found = [i for (ns, _), i in self.items.items() if ns[: len(prefix)] == prefix]
            found = [i for i in found if all(i["value"].get(k) == v for k, v in (a.get("filter") or {}).items())]
            return {"items": found[a["offset"] : a["offset"] + a["limit"]]}
        prefix = tuple(a.get("prefix") or ())
        spaces = {ns[: a.get("max_depth") or len(ns)] for ns, _ in self.items if ns[: len(prefix)] == prefix}
        return {"namespaces": sorted(spaces)[a["offset"] : a["offset"] + a["limit"]]}

    def _store_put(self, ns, a):
        if a["value"] is None:
            self.items.pop((ns, a["key"]), None)
            return
        now = datetime.datetime.now(datetime.UTC).isoformat()
        created = self.items.get((ns, a["key"]), {}).get("created_at", now)
        item = {"namespace": list(ns), "key": a["key"], "value": a["value"], "created_at": created, "updated_at": now}
        self.items[(ns, a["key"])] = item
