from __future__ import annotations

import subprocess

import pytest
from fake_server import Process


def test_hello(fresh):
    assert fresh.hello["protocol"] == 1
    assert fresh.hello["language"] == "python"
    assert fresh.hello["pid"] == fresh.process.pid
    assert set(fresh.hello["versions"]) == {"python", "langgraph", "checkpoint", "core"}
    assert fresh.hello["versions"]["langgraph"]


FORMS = {
    "./graphs.py:trivial": {"x": 1, "log": ["add"]},
    "graphs:trivial": {"x": 1, "log": ["add"]},
    "./graphs.py:uncompiled": {"x": 1, "log": ["add"]},
    "./pack/agent.py:agent": {"x": 1, "log": ["add"]},
    "pack.agent:agent": {"x": 1, "log": ["add"]},
    "./factories.py:plain": {"x": 1, "log": ["add"]},
    "./factories.py:managed": {"x": 1, "log": ["add"]},
    "./factories.py:managed_sync": {"x": 1, "log": ["add"]},
    "./factories.py:with_config": {"x": 0, "log": [], "note": "red"},
    "./factories.py:unannotated": {"x": 0, "log": [], "note": "red"},
    "./factories.py:with_runtime": {"x": 0, "log": [], "note": "threads.create_run True None"},
    "./factories.py:typed": {"x": 0, "log": [], "note": "typed"},
    "./factories.py:functional": 0,
    "./factories.py:with_both": {"x": 0, "log": [], "note": "./factories.py:with_both {'a': 1}"},
}

REFUSED = {
    "./graphs.py:trivail": ("LoadError", ['"trivail"', 'did you mean "trivial"?']),
    "./grahps.py:trivial": ("LoadError", ["grahps.py", 'did you mean "graphs.py"?']),
    "./broken.py:x": ("ModuleNotFoundError", ["./broken.py:x", "no_such_module_here"]),
    "no.such:x": ("ModuleNotFoundError", ["no.such:x", "No module named"]),
    "./graphs.py": ("LoadError", ["names no attribute"]),
    "./graphs.py:NAMES_NOTHING": ("LoadError", ["NAMES_NOTHING"]),
    "./graphs.py:__doc__": ("LoadError", ["is a str"]),
    "./factories.py:needs": ("LoadError", ['"a", "b"', "RunnableConfig"]),
    "./quits.py:x": ("SystemExit", ["./quits.py:x"]),
}


@pytest.fixture(scope="module")
def forms():
    server = Process()
    server.loaded = server.load(**{spec: spec for spec in (*FORMS, *REFUSED)})
    yield server
    server.close()


@pytest.mark.parametrize("spec", FORMS)
def test_every_form_of_export(forms, spec):
    factory = "factories.py" in spec
    assert forms.loaded["graphs"][spec] == {"ok": True, "factory": factory}
    context = {"a": 1} if "both" in spec else {"name": "typed"} if "typed" in spec else None
    given = 0 if "functional" in spec else {"x": 0}
    done = forms.run(spec, input=given, config={"configurable": {"suffix": "red"}}, context=context).done()
    assert done.error is None
    assert done.snapshot["values"] == FORMS[spec]


@pytest.mark.parametrize("spec", REFUSED)
def test_one_bad_graph_is_explained_and_hides_no_other(forms, spec):
    error, words = REFUSED[spec]
    said = forms.loaded["graphs"][spec]
    assert not said["ok"]
    assert said["error"]["error"] == error
    assert "\n" not in said["error"]["message"]
    assert all(word in said["error"]["message"] for word in words), said["error"]["message"]
    assert said["error"]["trace"]


def test_calls_open_a_factory_too(forms):
    run = forms.run("./factories.py:with_runtime", input={"x": 0})
    done = run.done()
    assert forms.call("state.get", "./factories.py:with_runtime", run.thread_id) == done.snapshot


def test_a_factory_that_returns_no_graph_fails_the_run(fresh):
    assert fresh.load(g="./factories.py:wrong")["graphs"]["g"]["ok"]
    done = fresh.run("g", input={}).done()
    assert done.status == "error"
    assert "returned a int, which is no graph" in done.error["message"]


def test_own_checkpointer_is_replaced_with_one_warning(fresh):
    loaded = fresh.load(own="./graphs.py:own")
    assert len(loaded["warnings"]) == 1
    assert "InMemorySaver" in loaded["warnings"][0]
    assert fresh.run("own", input={"x": 1}).done().snapshot["values"]["x"] == 2
    assert fresh.storage.checkpoints


def test_the_end_of_the_link_ends_the_process(fresh):
    assert fresh.close() == 0


def test_the_end_of_the_link_ends_a_process_that_blocks(fresh):
    fresh.load(blocking="./graphs.py:blocking")
    run = fresh.run("blocking", input={"x": 600}, stream_mode=["values"])
    run.until("values")
    assert fresh.close() == 0


def test_signals_leave_the_worker_to_its_server(fresh):
    fresh.process.terminate()
    fresh.load(trivial="./graphs.py:trivial")
    assert fresh.run("trivial", input={"x": 1}).done().status == "success"
    with pytest.raises(subprocess.TimeoutExpired):
        fresh.process.wait(timeout=0)
