from __future__ import annotations

import base64
import uuid

import pytest
from fake_server import Process

PARTS = {
    "auth": {"path": "./parts.py:auth"},
    "embed": {"spec": "./parts.py:embed"},
    "encryption": {"path": "./parts.py:encryption"},
}


@pytest.fixture(scope="module")
def server():
    process = Process()
    process.loaded = process.load(PARTS, trivial="./graphs.py:trivial", whoami="./factories.py:whoami")
    yield process
    process.close()


def test_what_loaded_says(server):
    assert server.loaded["parts"] == {
        "auth": {
            "ok": True,
            "authenticates": True,
            "body": True,
            "handlers": [
                "*:read",
                "threads",
                "threads:create",
                "threads:delete",
                "store",
                "crons:create",
                "*",
            ],
        },
        "embed": {"ok": True},
        "encryption": {"ok": True, "json": True, "blob": True},
    }


def authenticate(server, token, payload=b""):
    headers = [["Authorization", f"Bearer {token}"]] if token else []
    url = "http://api/threads/7/runs?a=1"
    request = {"method": "POST", "url": url, "path": "/threads/7/runs", "query": "a=1", "path_params": {"t": "7"}}
    return server.verb("auth.authenticate", payload, headers=headers, **request)


def test_authenticate_injects_by_name(server):
    got = authenticate(server, "ada", b'{"x":1}')
    assert got == {
        "identity": "ada",
        "display_name": "ada",
        "is_authenticated": True,
        "permissions": ["read"],
        "seen": ["Bearer ada", "POST", "/threads/7/runs", {"t": "7"}, "1", {"x": 1}, "/threads/7/runs"],
        "read": '{"x":1}',
    }
    assert authenticate(server, "short")["identity"] == "ada"


@pytest.mark.parametrize(
    ("token", "status", "message", "headers"),
    [
        ("", 401, "no token", []),
        ("bad", 401, "bad token", [["www-authenticate", "Bearer"]]),
        ("law", 451, "not here", [["x-why", "law"]]),
    ],
)
def test_authenticate_refuses(server, token, status, message, headers):
    error = authenticate(server, token)["error"]
    assert (error["code"], error["status"], error["message"], error["headers"]) == ("http", status, message, headers)


@pytest.mark.parametrize(("token", "word"), [("broken", "database is down"), ("nameless", "identity")])
def test_mistakes_of_the_authenticate_handler(server, token, word):
    error = authenticate(server, token)["error"]
    assert "status" not in error and word in error["message"]


def authorize(server, resource, action, value=None, identity="ada"):
    return server.verb(
        "auth.authorize", user={"identity": identity}, resource=resource, action=action, value=value or {}
    )


def test_the_most_specific_handler_decides(server):
    assert authorize(server, "threads", "update")["filter"] == {"rule": "threads", "owner": "ada"}
    assert authorize(server, "assistants", "read")["filter"] == {"rule": "*:read"}
    assert authorize(server, "assistants", "search") == {"allow": False, "filter": None, "value": {}}


def test_handlers_change_the_value(server):
    thread = str(uuid.uuid4())
    got = authorize(server, "threads", "create", {"thread_id": thread})
    assert got["value"] == {"thread_id": thread, "metadata": {"owner": "ada"}, "kind": "UUID"}
    assert got["filter"] == {"owner": {"$eq": "ada"}}
    got = authorize(server, "store", "put", {"namespace": ["notes"], "key": "k"})
    assert got == {"allow": True, "filter": None, "value": {"namespace": ["ada", "notes"], "key": "k"}}


def test_a_failed_assertion_of_a_handler_forbids(server):
    error = authorize(server, "threads", "delete")["error"]
    assert (error["code"], error["status"], error["message"]) == ("http", 403, "only root deletes")
    assert authorize(server, "threads", "delete", identity="root")["allow"]


def test_studio_is_the_librarys_own_user(server):
    studio = {"identity": "langgraph-studio-user", "kind": "StudioUser", "permissions": []}
    got = server.verb("auth.authorize", user=studio, resource="assistants", action="search", value={})
    assert got["allow"] and got["filter"] is None
    pretender = {"identity": "eve", "kind": "StudioUser"}
    got = server.verb("auth.authorize", user=pretender, resource="assistants", action="search", value={})
    assert not got["allow"]


def test_an_odd_answer_of_a_handler(server):
    error = authorize(server, "crons", "create")["error"]
    assert "a filter" in error["message"] and "status" not in error


def test_the_user_reaches_graphs_and_factories(server):
    user = {"identity": "ada", "team": {"name": "blue"}}
    config = {"configurable": {"langgraph_auth_user": user}}
    done = server.run("whoami", input={}, config=config).done()
    want = "ada ada blue True True ada"
    assert (done.error, done.snapshot["values"]["note"]) == (None, want)
    assert "blue" not in str(done.snapshot["metadata"])
    got = server.verb("graph.schemas", graph_id="whoami", config=config)
    assert got["input_schema"]["title"] == "assistants.read_ada_False_input"
    got = server.verb("graph.schemas", graph_id="whoami", config={"configurable": {}})
    assert got["error"]["error"] == "PermissionError"


def test_embedding(server):
    assert server.verb("embed.texts", texts=["a", "bcd"]) == [[1.0, 1.0], [3.0, 1.0]]
    assert server.verb("embed.texts", texts=[]) == []


def test_encryption_of_json(server):
    clear = {"a": "1", "b": "two"}
    sealed = server.verb("crypt.encrypt", kind="json", model="thread", field="metadata", context={}, value=clear)
    assert set(sealed) == set(clear) and base64.b64decode(sealed["a"]) == b"thread.metadata=1"
    assert (
        server.verb("crypt.decrypt", kind="json", model="thread", field="metadata", context={}, value=sealed) == clear
    )
    refused = server.verb("crypt.encrypt", kind="json", model="thread", field="m", context={}, value={"grow": 1})
    assert "keys" in refused["error"]["message"]


def test_encryption_of_blobs(server):
    clear = base64.b64encode(b"secret").decode()
    about = {"kind": "blob", "model": "store", "field": "value", "context": {"tenant": 9}}
    sealed = server.verb("crypt.encrypt", value=clear, **about)
    assert base64.b64decode(sealed).startswith(b"9:") and b"secret" not in base64.b64decode(sealed)
    assert server.verb("crypt.decrypt", value=sealed, **about) == clear


def test_checkpoints_are_encrypted_before_they_travel(server):
    run = server.run("trivial", input={"x": 1, "note": "clear words"}, encryption_context={"tenant": "t1"})
    run.done()
    blobs = [blob for key, blob in server.storage.blobs.items() if key[0] == run.thread_id]
    writes = [w for key, rows in server.storage.writes.items() if key[0] == run.thread_id for w in rows.values()]
    assert blobs and writes
    assert (
        {kind.rpartition("+")[2] for kind, _ in blobs} == {w["type"].rpartition("+")[2] for w in writes} == {"custom"}
    )
    assert all(b"clear words" not in data and b'{"tenant":"t1"}' in data for _, data in blobs)
    again = server.run("trivial", thread_id=run.thread_id, input={"x": 5}, encryption_context={"tenant": "t2"}).done()
    assert again.snapshot["values"]["note"] == "clear words"
    history = server.call("state.history", "trivial", run.thread_id, limit=10, before=None, filter=None)
    assert len(history) == 6 and history[-1]["values"]["log"] == []


REFUSED = {
    ("auth", "./parts.py:wrong_auth"): "an Auth object of langgraph_sdk is needed",
    ("auth", "./parts.py:asking_auth"): '"cookie_jar"',
    ("auth", "./prats.py:auth"): 'did you mean "parts.py"',
    ("app", "./parts.py:wrong_auth"): "an ASGI app",
    ("app", "./apps.py:failing"): "no database",
    ("encryption", "./parts.py:half"): "decrypt.blob",
    ("checkpointer", "./parts.py:poor"): "lacks aput_writes",
    ("store", "./parts.py:no_store"): "a BaseStore is needed",
}


@pytest.mark.parametrize(("part", "spec"), REFUSED)
def test_a_part_that_cannot_be_loaded_is_explained(fresh, part, spec):
    loaded = fresh.load({part: {"path": spec}}, trivial="./graphs.py:trivial")
    said = loaded["parts"][part]
    assert not said["ok"] and REFUSED[part, spec] in said["error"]["message"], said
    assert loaded["graphs"]["trivial"]["ok"]


@pytest.mark.parametrize(
    ("spec", "want"),
    [("./parts.py:embed_sync", [[2.0]]), ("./parts.py:own", [[3.0]]), ("openai:tiny", [[4.0]])],
)
def test_every_form_of_embedding(fresh, spec, want):
    loaded = fresh.load({"embed": {"spec": spec}})
    assert loaded["parts"]["embed"] == {"ok": True}, loaded
    assert fresh.verb("embed.texts", texts=["a"]) == want


def test_embeddings_that_fail(fresh):
    fresh.load({"embed": {"spec": "./parts.py:embed_wrong"}})
    assert "0 vectors for 1" in fresh.verb("embed.texts", texts=["a"])["error"]["message"]


def test_parts_that_are_absent(fresh):
    fresh.load(trivial="./graphs.py:trivial")
    for verb in (
        "auth.authenticate",
        "auth.authorize",
        "embed.texts",
        "crypt.encrypt",
        "checkpoint.prune",
        "store.batch",
    ):
        assert fresh.verb(verb)["error"]["code"] == "invalid"


def test_a_checkpointer_and_a_store_of_the_application(fresh):
    parts = {"checkpointer": {"path": "./parts.py:saver"}, "store": {"path": "./parts.py:store"}}
    loaded = fresh.load(parts, chain="./graphs.py:chain", sync_store="./graphs.py:sync_store")
    methods = loaded["parts"]["checkpointer"]["methods"]
    assert "adelete_for_runs" in methods and "aprune" not in methods
    run = fresh.run("chain", input={"x": 1}, interrupt_before=["b"])
    assert run.done().snapshot["next"] == ["b"]
    assert fresh.run("sync_store", input={"x": 3}).done().snapshot["values"]["note"] == "3"
    assert not fresh.storage.checkpoints and not fresh.storage.items
    target = str(uuid.uuid4())
    assert fresh.verb("checkpoint.copy_thread", source=run.thread_id, target=target) is None
    assert fresh.run("chain", thread_id=target).done().snapshot["values"]["x"] == 3
    assert fresh.verb("checkpoint.delete_thread", thread_id=run.thread_id) is None
    assert fresh.call("state.get", "chain", run.thread_id)["created_at"] is None
    assert fresh.verb("checkpoint.prune", thread_ids=[target])["error"]["code"] == "invalid"
    put = {"put": {"namespace": ["a"], "key": "k", "value": {"v": 1}}}
    found = {"search": {"namespace_prefix": ["a"], "limit": 5, "offset": 0}}
    spaces = {"namespaces": {"prefix": ["a"], "limit": 5, "offset": 0}}
    fresh.verb("store.batch", ops=[put])
    got = fresh.verb("store.batch", ops=[{"get": {"namespace": ["a"], "key": "k"}}, found, spaces])
    assert got[0]["item"]["value"] == {"v": 1} and got[1]["items"][0]["key"] == "k"
    assert got[2] == {"namespaces": [["a"]]}


def test_the_application_closes_what_it_opened(tmp_path):
    with open(tmp_path / "out", "w+") as out:
        process = Process(stdout=out)
        process.load({"checkpointer": {"path": "./parts.py:saver"}})
        assert process.close() == 0
        out.seek(0)
        assert out.read().split("\n")[:2] == ["saver opened", "saver closed"]


def test_a_key_encrypts_checkpoints_and_chosen_keys():
    process = Process(env={"LANGGRAPH_AES_KEY": "0123456789abcdef", "LANGGRAPH_AES_JSON_KEYS": "token, pin"})
    loaded = process.load({"encryption": {"aes": True}}, trivial="./graphs.py:trivial")
    assert loaded["parts"]["encryption"] == {"ok": True, "json": True, "blob": True}
    run = process.run("trivial", input={"x": 1, "note": "clear words"})
    assert run.done().snapshot["values"]["note"] == "clear words"
    assert {kind.rpartition("+")[2] for kind, _ in process.storage.blobs.values()} == {"aes"}
    clear = {"token": {"a": [1]}, "name": "n", "deep": {"pin": 5}}
    sealed = process.verb("crypt.encrypt", kind="json", value=clear)
    assert sealed["name"] == "n" and isinstance(sealed["token"], str) and isinstance(sealed["deep"]["pin"], str)
    assert process.verb("crypt.decrypt", kind="json", value=sealed) == clear
    process.close()


def test_a_bad_key_is_explained():
    process = Process(env={"LANGGRAPH_AES_KEY": "short"})
    said = process.load({"encryption": {"aes": True}})["parts"]["encryption"]
    assert "16, 24 or 32" in said["error"]["message"]
    process.close()


@pytest.mark.parametrize(
    ("env", "serde", "want"),
    [
        ({}, {}, "['Secret']"),
        ({"LANGGRAPH_STRICT_MSGPACK": "true"}, {"pickle_fallback": False}, "['dict']"),
        ({}, {"allowed_msgpack_modules": ["decimal.Decimal"]}, "['dict']"),
        ({}, {"allowed_msgpack_modules": [["parts", "Secret"]]}, "['Secret']"),
    ],
)
def test_settings_of_the_serialiser(env, serde, want):
    process = Process(env=env)
    process.load({"checkpointer": {"path": None, "serde": serde}}, secret="parts:secret", reader="parts:reader")
    run = process.run("secret", input={})
    run.done()
    done = process.run("reader", thread_id=run.thread_id, input={"x": 1}).done()
    assert done.snapshot["values"]["note"] == want
    process.close()


def test_strict_serialisation_of_a_fresh_thread_keeps_its_snapshot():
    process = Process(env={"LANGGRAPH_STRICT_MSGPACK": "true"})
    process.load(hitl="./graphs.py:hitl")
    done = process.run("hitl", input={"x": 1}, fresh=True).done()
    assert [i["value"] for i in done.snapshot["interrupts"]] == [{"q": "ok?"}]
    process.close()
