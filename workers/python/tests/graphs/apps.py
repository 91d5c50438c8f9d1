"""HTTP apps of an application."""

import asyncio
import contextlib

from fastapi import FastAPI, Request, WebSocket
from fastapi.responses import StreamingResponse
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Mount, Route


@contextlib.asynccontextmanager
async def lifespan(app):
    app.state.name = "started"
    yield {"db": "open"}
    print("app stopped", flush=True)


app = FastAPI(lifespan=lifespan)


@app.get("/hello/{name}")
async def hello(name: str, request: Request, q: str = ""):
    user = request.scope.get("user")
    return {"name": name, "q": q, "db": request.state.db, "user": user and user.identity, "app": request.app.state.name}


class Echo:
    async def __call__(self, scope, receive, send):
        headers = [(b"x-kind", b"echo")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        more = True
        while more:
            message = await receive()
            more = message["more_body"]
            await send({"type": "http.response.body", "body": message["body"].upper(), "more_body": more})


app.router.routes.append(Route("/echo", Echo(), methods=["POST"]))


@app.get("/flood")
async def flood():
    async def parts():
        for _ in range(16):
            yield b"x" * (64 << 10)

    return StreamingResponse(parts())


@app.get("/forever")
async def forever():
    async def parts():
        try:
            while True:
                yield b"tick"
                await asyncio.sleep(0.01)
        finally:
            print("client gone", flush=True)

    return StreamingResponse(parts())


@app.get("/files/{path:path}")
async def files(path: str):
    return path


@app.get("/n/{n}")
async def number(n: int):
    return n


@app.get("/broken")
async def broken():
    raise RuntimeError("broken on purpose")


@app.websocket("/ws")
async def ws(socket: WebSocket):
    await socket.accept(subprotocol="v1", headers=[(b"x-a", b"b")])
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            print(f"closed {message['code']} {message['reason']}", flush=True)
            return
        if message.get("text") == "bye":
            await socket.close(4001, "bye")
            return
        if message.get("bytes") is not None:
            await socket.send_bytes(message["bytes"][::-1])
        else:
            await socket.send_text(message["text"].upper())


@app.websocket("/refused")
async def refused(socket: WebSocket):
    await socket.close()


class Stamp:
    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        async def stamped(message):
            if message["type"] in ("http.response.start", "websocket.accept"):
                message = {**message, "headers": [*message.get("headers", []), (b"x-stamp", b"1")]}
            await send(message)

        if scope["type"] == "http" and scope["path"] == "/blocked":
            return await PlainTextResponse("no", 418)(scope, receive, send)
        await self.app(scope, receive, stamped)


async def mine(request):
    return JSONResponse({"mine": True})


wrapped = Starlette(
    routes=[Route("/mine", mine, methods=["GET"]), Mount("/sub", routes=[Route("/x", mine)])],
    middleware=[Middleware(Stamp)],
)
by_hand = Stamp(Starlette(routes=[Route("/mine", mine)]))


async def opaque(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("HTTP only")
    found = scope["path"] == "/opaque"
    await send({"type": "http.response.start", "status": 200 if found else 404, "headers": []})
    await send({"type": "http.response.body", "body": b"found" if found else b"not found"})


@contextlib.asynccontextmanager
async def no_database(app):
    raise RuntimeError("no database")
    yield


failing = FastAPI(lifespan=no_database)
