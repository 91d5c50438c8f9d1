from __future__ import annotations


def describe(worker, verb, graph_id, **members):
    return worker.verb(verb, graph_id=graph_id, config={"configurable": {}}, **members)


def test_schemas(worker):
    got = describe(worker, "graph.schemas", "trivial")
    for name in ("state_schema", "input_schema", "output_schema"):
        assert set(got[name]["properties"]) == {"x", "note", "log"}, name
        assert got[name]["properties"]["x"]["type"] == "integer"
    assert got["config_schema"]["type"] == "object" and "context_schema" not in got
    assert set(describe(worker, "graph.schemas", "greeting")["context_schema"]["properties"]) == {"name"}
    assert describe(worker, "graph.schemas", "functional")["input_schema"]["type"] == "integer"
    assert "messages" in describe(worker, "graph.schemas", "chat")["input_schema"]["properties"]


def test_schemas_of_a_compiled_graph_are_made_once(worker):
    worker.verb("graph.schemas", graph_id="chain", config={})
    assert describe(worker, "graph.schemas", "chain") == describe(worker, "graph.schemas", "chain")


def test_drawing(worker):
    got = describe(worker, "graph.draw", "parent", xray=False)
    assert [n["id"] for n in got["nodes"]] == ["__start__", "first", "sub", "__end__"]
    assert {"source": "first", "target": "sub", "conditional": False} in got["edges"]
    assert {n["type"] for n in got["nodes"]} <= {"schema", "runnable"} and all("data" in n for n in got["nodes"])
    assert got["nodes"][1]["data"]["name"] == "first"
    for xray in (True, 1):
        opened = describe(worker, "graph.draw", "parent", xray=xray)
        assert "sub:inner" in [n["id"] for n in opened["nodes"]]


def test_subgraphs(worker):
    got = describe(worker, "graph.subgraphs", "parent", namespace=None, recurse=False)
    assert set(got) == {"sub"} and "x" in got["sub"]["input_schema"]["properties"]
    assert set(describe(worker, "graph.subgraphs", "parent", namespace="sub", recurse=False)) == {"sub"}
    assert describe(worker, "graph.subgraphs", "parent", namespace="nobody", recurse=True) == {}
    assert describe(worker, "graph.subgraphs", "trivial", namespace=None, recurse=True) == {}


def test_an_unknown_graph(worker):
    assert describe(worker, "graph.draw", "nowhere")["error"]["code"] == "not_found"
