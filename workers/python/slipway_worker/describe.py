"""Schemas and drawings of graphs (reference 16): each part as far as it can be derived."""

from __future__ import annotations

import asyncio
import contextlib
import typing
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
    nodes = [{**_plain_node(node["id"]), **node} for node in drawn["nodes"]]
    return {**drawn, "nodes": nodes, "edges": [{"conditional": False, **edge} for edge in drawn["edges"]]}


def _plain_node(name: Any) -> dict[str, Any]:
    """Return what the library leaves out of nodes that run nothing."""
    return {"type": "schema", "data": name}


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
        "input_schema": _first(lambda: graph.get_input_jsonschema(config), lambda: _of_channels(graph, "input")),
        "output_schema": _first(lambda: graph.get_output_jsonschema(config), lambda: _of_channels(graph, "output")),
        "config_schema": _first(lambda: _config(graph), lambda: {"type": "object", "properties": {}}),
        "context_schema": _first(lambda: graph.get_context_jsonschema(), lambda: _of_hints(graph.context_schema)),
    }
    out: dict[str, Any] = {}
    for name, derive in derived.items():
        with contextlib.suppress(Exception):  # types that have no JSON schema, libraries without the method
            out[name] = derive()
    return {"state_schema": {}, **{name: schema for name, schema in out.items() if schema is not None}}


def _first(library: Callable[[], Any], fallback: Callable[[], Any]) -> Callable[[], Any]:
    """Return what the library derives, or the fallback: before Python 3.12 it refuses every typing.TypedDict."""

    def derive() -> Any:
        try:
            return library()
        except Exception:
            return fallback()

    return derive


def _of_channels(graph: Any, side: str) -> dict[str, Any]:
    names = graph.builder.schemas[getattr(graph.builder, f"{side}_schema")]
    return _object(graph.get_name(side.title()), {name: _type(graph.channels[name]) for name in names})


def _of_hints(schema: Any) -> dict[str, Any]:
    return _object(schema.__name__, typing.get_type_hints(schema))


def _object(name: str, types: Mapping[str, Any]) -> dict[str, Any]:
    from langchain_core.utils.pydantic import create_model_v2

    return create_model_v2(name, field_definitions={n: (t, None) for n, t in types.items()}).model_json_schema()


def _state(graph: Pregel) -> dict[str, Any]:
    from langchain_core.utils.pydantic import create_model_v2

    title = graph.get_name("State")
    if isinstance(graph.stream_channels_asis, str):
        return create_model_v2(title, root=_type(graph.channels[graph.stream_channels_asis])).model_json_schema()
    return _object(title, {name: _type(graph.channels[name]) for name in graph.stream_channels_asis})


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
