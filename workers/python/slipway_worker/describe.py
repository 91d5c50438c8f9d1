"""Schemas and drawings of graphs (reference 16): each part as far as it can be derived."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from langgraph.pregel import Pregel

from .loader import Graph


async def schemas(graph: Pregel, config: dict[str, Any], call: Mapping[str, Any]) -> Any:
    """Return the five schemas of a graph; on a thread, because large models take their time."""
    return await asyncio.to_thread(_schemas, graph, config)


async def drawing(graph: Pregel, config: dict[str, Any], call: Mapping[str, Any]) -> Any:
    """Return nodes and edges; xray opens subgraphs, to a depth if it is a number."""
    drawn = (await graph.aget_graph(config, xray=call.get("xray") or False)).to_json()
    return {**drawn, "edges": [{"conditional": False, **edge} for edge in drawn["edges"]]}


async def subgraphs(graph: Pregel, config: dict[str, Any], call: Mapping[str, Any]) -> Any:
    """Return the schemas of the subgraphs by namespace; an unknown namespace is empty."""
    namespace = call.get("namespace") or None
    recurse = bool(call.get("recurse")) or "|" in (namespace or "")
    found = {ns: sub async for ns, sub in graph.aget_subgraphs(namespace=namespace, recurse=recurse)}
    return {ns: await asyncio.to_thread(_schemas, sub, config) for ns, sub in found.items()}


VERBS = {"graph.schemas": schemas, "graph.draw": drawing, "graph.subgraphs": subgraphs}


async def of(source: Graph, graph: Pregel, config: dict[str, Any], call: Mapping[str, Any]) -> Any:
    """Answer a graph.* call; for a compiled graph once in the life of the process."""
    key = tuple(repr(call.get(member)) for member in ("verb", "xray", "namespace", "recurse"))
    if source.compiled is None:
        return await VERBS[call["verb"]](graph, config, call)
    if key not in source.described:
        if len(source.described) >= _KEPT:
            source.described.clear()
        source.described[key] = await VERBS[call["verb"]](graph, config, call)
    return source.described[key]


def _schemas(graph: Any, config: dict[str, Any]) -> dict[str, Any]:
    derived: dict[str, Callable[[], Any]] = {
        "state_schema": lambda: _state(graph),
        "input_schema": lambda: graph.get_input_jsonschema(config),
        "output_schema": lambda: graph.get_output_jsonschema(config),
        "config_schema": lambda: _config(graph),
        "context_schema": lambda: graph.get_context_jsonschema(),
    }
    out: dict[str, Any] = {}
    for name, derive in derived.items():
        with contextlib.suppress(Exception):  # types that have no JSON schema, libraries without the method
            out[name] = derive()
    return {"state_schema": {}, **{name: schema for name, schema in out.items() if schema is not None}}


def _state(graph: Pregel) -> dict[str, Any]:
    from langchain_core.utils.pydantic import create_model_v2

    if isinstance(graph.stream_channels_asis, str):
        channel: Any = graph.channels[graph.stream_channels_asis]
        return create_model_v2(graph.get_name("State"), root=_type(channel)).model_json_schema()
    fields = {name: (_type(graph.channels[name]), None) for name in graph.stream_channels_asis}
    return create_model_v2(graph.get_name("State"), field_definitions=fields).model_json_schema()


def _type(channel: Any) -> Any:
    with contextlib.suppress(Exception):
        return channel.ValueType
    return Any


def _config(graph: Pregel) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return graph.config_schema().model_json_schema()


_KEPT = 256
"""How many answers are kept for one graph: namespaces and depths are the caller's choice."""
