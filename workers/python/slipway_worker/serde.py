"""Serialisers: the library's own, with the settings of `checkpointer.serde` and the encryption of the application."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer


def configured(settings: Mapping[str, Any] | None, warn: Callable[[str], None]) -> Any:
    """Return the serialiser that checkpoints and caches use."""
    given: dict[str, Any] = {}
    for name in ("allowed_json_modules", "allowed_msgpack_modules"):
        if (value := (settings or {}).get(name)) is not None:
            form = _words if name == "allowed_json_modules" else _module_and_name
            given[name] = value if isinstance(value, bool) else [form(item) for item in value]
    if (settings or {}).get("pickle_fallback") is not None:
        given["pickle_fallback"] = bool((settings or {})["pickle_fallback"])
    known = inspect.signature(JsonPlusSerializer.__init__).parameters
    for name in [name for name in given if name not in known]:
        warn(f"checkpointer.serde.{name} is not known to this langgraph-checkpoint: update the package to use it")
        del given[name]
    return JsonPlusSerializer(**given)


def _words(item: Any) -> tuple[str, ...]:
    """Return "package.module.Class", also given as a list of its parts, as JSON records name it."""
    return tuple((item if isinstance(item, str) else ".".join(item)).split("."))


def _module_and_name(item: Any) -> tuple[str, ...]:
    """Return the same as msgpack records name it."""
    *module, name = _words(item)
    return ".".join(module), name
