"""Factories of graphs, in every form."""

import asyncio
import contextlib

from graphs import add, one, uncompiled
from langchain_core.runnables import RunnableConfig
from langgraph_sdk.runtime import ServerRuntime


def plain():
    return uncompiled


def with_config(config: RunnableConfig):
    name = config["configurable"].get("suffix", "none")
    return one(lambda state: {"note": name})


def unannotated(anything):
    return with_config(anything)


async def with_runtime(runtime: ServerRuntime):
    seen = f"{runtime.access_context} {runtime.execution_runtime is not None} {runtime.user}"
    return one(lambda state: {"note": seen})


async def with_both(config: RunnableConfig, *, rt: "ServerRuntime[dict]"):
    return one(lambda state: {"note": f"{config['configurable']['graph_id']} {rt.execution_runtime.context}"})


@contextlib.asynccontextmanager
async def managed(config: RunnableConfig):
    print("opened", flush=True)
    yield one(add)
    print("closed", flush=True)


@contextlib.contextmanager
def managed_sync():
    yield one(add)


def wrong():
    return 42


def needs(a, b):
    return None


async def hanging():
    await asyncio.sleep(600)
