"""Factories of graphs, in every form."""

import asyncio
import contextlib
from dataclasses import dataclass

from graphs import State, add, one, uncompiled
from graphs import functional as functional_graph
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph_sdk.auth.types import BaseUser
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


async def whoami(config: RunnableConfig, runtime: ServerRuntime):
    user = runtime.ensure_user()

    def node(state: State, config: RunnableConfig, runtime: Runtime):
        seen, server = config["configurable"]["langgraph_auth_user"], runtime.server_info
        own = f"{seen.is_authenticated} {isinstance(seen, BaseUser)} {server.user.identity}"
        return {"note": f"{seen['identity']} {seen.display_name} {seen.team['name']} {own}"}

    name = f"{runtime.access_context}_{user.identity}_{runtime.execution_runtime is not None}"
    return one(node, name=name)


@dataclass
class Ctx:
    name: str


async def typed(runtime: ServerRuntime[Ctx]):
    name = runtime.execution_runtime.context.name if runtime.execution_runtime else "nobody"
    return one(lambda state: {"note": name})


def functional():
    return functional_graph
