from __future__ import annotations

import json

import pytest
from fake_server import Process, said

from slipway_worker import frames


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with open(tmp_path_factory.mktemp("app") / "out", "w+") as out:
        process = Process(stdout=out)
        process.out = out
        process.loaded = process.load({"app": {"path": "./apps.py:app"}})["parts"]["app"]
        yield process
        assert process.close() == 0
        out.seek(0)
        assert "app stopped" in out.read()


def test_routes_are_told(server):
    assert server.loaded == {
        "ok": True,
        "middleware": False,
        "routes": [
            {"path": "/hello/{name}", "methods": ["GET"], "kind": "http"},
            {"path": "/echo", "methods": ["POST"], "kind": "http"},
            {"path": "/flood", "methods": ["GET"], "kind": "http"},
            {"path": "/forever", "methods": ["GET"], "kind": "http"},
            {"path": "/files/{path:path}", "methods": ["GET"], "kind": "http"},
            {"path": "/n/{n}", "methods": ["GET"], "kind": "http"},
            {"path": "/broken", "methods": ["GET"], "kind": "http"},
            {"path": "/ws", "methods": None, "kind": "websocket"},
            {"path": "/refused", "methods": None, "kind": "websocket"},
        ],
    }


def test_a_request_with_lifespan_state_and_user(server):
    asked = server.request("/hello/a%20b?q=%C3%A4", user={"identity": "ada"})
    head = asked.head()
    assert head["status"] == 200 and ["content-type", "application/json"] in head["headers"]
    assert json.loads(asked.body()) == {"name": "a b", "q": "ä", "db": "open", "user": "ada", "app": "started"}


@pytest.mark.parametrize("target", ["/threads/search", "/docs", "/openapi.json"])
def test_unknown_paths_are_passed(server, target):
    assert server.request(target).head() == {"pass": True}


def test_other_methods_are_passed(server):
    assert server.request("/hello/a", method="POST").head() == {"pass": True}


def test_bodies_stream_both_ways(server):
    asked = server.request("/echo", method="POST", body=None)
    asked.send(b"one")
    assert ["x-kind", "echo"] in asked.head()["headers"]
    assert asked.next().payload == b"ONE"
    asked.send(b"two", end=True)
    assert asked.body() == b"TWO"
    assert asked.room == 6


def test_a_slow_reader_holds_back_only_its_own_exchange(server):
    asked = server.request("/flood")
    asked.grants = False
    asked.head()
    got = sum(len(asked.next().payload) for _ in range(4))
    assert got == 256 << 10
    other = server.request("/hello/x")
    assert other.head()["status"] == 200 and asked.quiet()
    asked.grant(16 << 20)
    assert len(asked.body()) == (1 << 20) - got


def test_a_client_that_goes_away_ends_the_stream(server):
    asked = server.request("/forever")
    asked.head()
    assert asked.next().payload == b"tick"
    asked.hang_up()
    assert said(server, "client gone")


def test_an_app_that_fails_answers_500(server):
    asked = server.request("/broken")
    assert asked.head()["status"] == 500
    assert asked.body() == b"Internal Server Error"


def test_websockets(server):
    asked = server.request("/ws", websocket=True, headers=[["Sec-WebSocket-Protocol", "v0, v1"]])
    assert asked.head() == {"status": 101, "headers": [["x-a", "b"], ["sec-websocket-protocol", "v1"]]}
    asked.send(b"hey", text=True)
    frame = asked.next()
    assert (frame.payload, frame.envelope) == (b"HEY", {"text": True})
    asked.send(b"\x01\x02", text=False)
    frame = asked.next()
    assert (frame.payload, frame.envelope) == (b"\x02\x01", {"text": False})
    asked.send(b"bye", text=True)
    frame = asked.next()
    assert (frame.kind, frame.envelope) == (frames.HANGUP, {"code": 4001, "reason": "bye"})


def test_a_websocket_closed_by_its_client(server):
    asked = server.request("/ws", websocket=True)
    asked.head()
    asked.hang_up(code=4002, reason="enough")
    assert said(server, "closed 4002 enough")


def test_a_refused_websocket(server):
    asked = server.request("/refused", websocket=True)
    assert asked.head()["status"] == 403
    assert asked.body() == b""
    assert server.request("/unknown", websocket=True).head() == {"pass": True}


@pytest.fixture(scope="module", params=["wrapped", "by_hand"])
def wrapped(request):
    process = Process()
    process.loaded = process.load({"app": {"path": f"./apps.py:{request.param}"}})["parts"]["app"]
    yield process
    process.close()


def test_middleware_wraps_the_built_in_routes(wrapped):
    assert wrapped.loaded["middleware"] is True
    assert {"path": "/mine", "methods": ["GET", "HEAD"], "kind": "http"} in wrapped.loaded["routes"]
    asked = wrapped.request("/threads?x=1", method="POST", body=b'{"a":1}', headers=[["Authorization", "t"]])
    inner = wrapped.asked()
    assert {k: inner.request[k] for k in ("method", "target", "inner", "websocket", "run", "outer")} == {
        "method": "POST",
        "target": "/threads?x=1",
        "inner": True,
        "websocket": False,
        "run": 0,
        "outer": asked.number,
    }
    assert ["authorization", "t"] in inner.request["headers"]
    assert inner.body() == b'{"a":1}'
    inner.respond(201, [["X-Inner", "1"]])
    head = asked.head() if inner.send(b"part") is None else None
    assert head["status"] == 201 and ["x-inner", "1"] in head["headers"] and ["x-stamp", "1"] in head["headers"]
    assert asked.next().payload == b"part"
    inner.send(b"rest", end=True)
    assert asked.body() == b"rest"
    own = wrapped.request("/mine")
    assert ["x-stamp", "1"] in own.head()["headers"] and own.body() == b'{"mine":true}'
    assert wrapped.request("/blocked").head()["status"] == 418


def test_middleware_and_a_client_that_goes_away(wrapped):
    asked = wrapped.request("/threads/1/stream")
    inner = wrapped.asked()
    inner.body()
    inner.respond(200)
    inner.send(b"part")
    asked.head()
    asked.hang_up()
    while (frame := inner.next()).kind != frames.HANGUP:
        pass
    assert frame.kind == frames.HANGUP


def test_middleware_and_websockets(wrapped):
    asked = wrapped.request("/threads/1/stream/events", websocket=True)
    inner = wrapped.asked()
    assert inner.request["websocket"] and inner.request["inner"]
    inner.respond(101)
    assert asked.head()["status"] == 101
    asked.send(b"up", text=True)
    assert inner.next().payload == b"up"
    inner.send(b"down", text=True)
    assert asked.next().payload == b"down"
    inner.hang_up(code=4000, reason="done")
    assert asked.next().envelope == {"code": 4000, "reason": "done"}


def test_an_opaque_app(fresh):
    loaded = fresh.load({"app": {"path": "./apps.py:opaque"}})["parts"]["app"]
    assert loaded == {"ok": True, "routes": None, "middleware": False}
    asked = fresh.request("/opaque")
    assert asked.head()["status"] == 200 and asked.body() == b"found"
    assert fresh.request("/other").head() == {"pass": True}
