"""Parts of an application beside its graphs."""

import asyncio
import base64
import contextlib
from dataclasses import dataclass

from graphs import add, one
from langchain_core.embeddings import Embeddings
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph_sdk import Auth
from langgraph_sdk.encryption import Encryption

auth = Auth()


class Forbidden(Exception):
    status = 451
    message = "not here"
    headers = (("x-why", "law"),)


@auth.authenticate
async def authenticate(authorization, headers, method, path, path_params, query_params, body, request):
    token = (authorization or "").removeprefix("Bearer ")
    assert token, "no token"
    if token == "bad":
        raise Auth.exceptions.HTTPException(status_code=401, detail="bad token", headers={"www-authenticate": "Bearer"})
    if token == "law":
        raise Forbidden
    if token == "broken":
        raise RuntimeError("database is down")
    if token == "nameless":
        return {"display_name": "x"}
    if token == "short":
        return "ada"
    seen = [headers[b"authorization"].decode(), method, path, path_params, query_params["a"], body, request.url.path]
    return {"identity": token, "permissions": ["read"], "seen": seen, "read": (await request.body()).decode()}


@auth.on
async def anything(ctx, value):
    return isinstance(ctx.user, Auth.types.StudioUser)


@auth.on(actions=["read"])
async def reading(ctx, value):
    return {"rule": "*:read"}


@auth.on.threads
async def threads(ctx, value):
    return {"rule": "threads", "owner": ctx.user.identity}


@auth.on.threads.create
async def create_thread(ctx, value):
    value.setdefault("metadata", {})["owner"] = ctx.user["identity"]
    value["kind"] = type(value["thread_id"]).__name__
    return {"owner": {"$eq": ctx.user.identity}}


@auth.on.threads.delete
async def delete_thread(ctx, value):
    assert ctx.user.identity == "root", "only root deletes"


@auth.on.store
async def items(ctx, value):
    value["namespace"] = (ctx.user.identity, *value["namespace"])


@auth.on.crons.create
async def odd(ctx, value):
    return 42


wrong_auth = {"no": "auth"}
asking_auth = Auth()


@asking_auth.authenticate
async def asks(cookie_jar):
    return "x"


async def embed(texts):
    return [[float(len(text)), 1] for text in texts]


def embed_sync(texts):
    return [[2.0] for _ in texts]


def embed_wrong(texts):
    return []


class Own(Embeddings):
    def embed_documents(self, texts):
        return [[3.0] for _ in texts]

    def embed_query(self, text):
        return [3.0]


own = Own()
encryption = Encryption()


def flip(data):
    return bytes(b ^ 0x55 for b in data)


@encryption.encrypt.blob
async def encrypt_blob(ctx, blob):
    return str(ctx.metadata.get("tenant", "-")).encode() + b":" + flip(blob)


@encryption.decrypt.blob
async def decrypt_blob(ctx, blob):
    tenant, _, rest = blob.partition(b":")
    assert tenant.decode() == str(ctx.metadata.get("tenant", "-"))
    return flip(rest)


@encryption.encrypt.json
async def encrypt_json(ctx, data):
    if "grow" in data:
        return {**data, "more": 1}
    return {k: base64.b64encode(f"{ctx.model}.{ctx.field}={v}".encode()).decode() for k, v in data.items()}


@encryption.decrypt.json
async def decrypt_json(ctx, data):
    return {k: base64.b64decode(v).decode().partition("=")[2] for k, v in data.items()}


half = Encryption()


@half.encrypt.blob
async def only_encrypts(ctx, blob):
    return blob


class Saver(InMemorySaver):
    async def adelete_for_runs(self, run_ids):
        print("rolled back", run_ids)


class Poor(InMemorySaver):
    from langgraph.checkpoint.base import BaseCheckpointSaver

    aput_writes = BaseCheckpointSaver.aput_writes


@contextlib.asynccontextmanager
async def saver():
    print("saver opened", flush=True)
    yield Saver()
    print("saver closed", flush=True)


def poor():
    return Poor()


@contextlib.asynccontextmanager
async def store():
    yield InMemoryStore()


async def no_store():
    await asyncio.sleep(0)
    return 5


@dataclass
class Secret:
    x: int = 0


def keep_secret(state):
    return {"note": "s", "log": [Secret(7)]}


def read_secret(state):
    return {"note": str([type(item).__name__ for item in state["log"]])}


secret = one(keep_secret)
reader = one(read_secret)
trivial = one(add)
