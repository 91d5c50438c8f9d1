from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from slipway_worker import frames, jsonable

VECTORS = Path(__file__).resolve().parents[3] / "worker" / "wire" / "testdata" / "vectors.json"


def test_encode_then_decode_in_any_pieces():
    sent = [
        (frames.TELL, 0, {"op": "checkpoint.put", "ä": "ö"}, b"\x00\xff"),
        (frames.CHUNK, 7, {"event": "values"}, b"{}"),
        (frames.ASK, 2**32 - 1, {}, b""),
    ]
    data = b"".join(frames.encode(*frame) for frame in sent)
    for size in (1, 2, 7, len(data)):
        decoder = frames.Decoder()
        got = [tuple(f) for at in range(0, len(data), size) for f in decoder.feed(data[at : at + size])]
        assert got == sent


def test_layout_is_the_documented_one():
    got = frames.encode(frames.DONE, 3, {"a": 1}, b"xy")
    assert got == bytes.fromhex("00000012" + "0e" + "00000003" + "00000007") + b'{"a":1}' + b"xy"


@pytest.mark.parametrize("head", ["00000008", "04000001", "ffffffff"])
def test_impossible_lengths_end_the_connection(head):
    with pytest.raises(frames.FrameError):
        list(frames.Decoder().feed(bytes.fromhex(head)))


def test_an_envelope_beyond_its_frame_is_refused():
    with pytest.raises(frames.FrameError):
        list(frames.Decoder().feed(bytes.fromhex("00000009" + "0e" + "00000003" + "00000007")))


def test_a_frame_over_the_limit_is_not_sent():
    with pytest.raises(frames.FrameError):
        frames.encode(frames.CHUNK, 1, {}, bytes(frames.MAX_FRAME))


def test_shared_vectors():
    vectors = json.loads(VECTORS.read_text())
    assert vectors
    for vector in vectors:
        data, payload = bytes.fromhex(vector["frame_hex"]), bytes.fromhex(vector["payload_hex"])
        (got,) = frames.Decoder().feed(data)
        assert got == (vector["kind"], vector["stream"], json.loads(vector["envelope"]), payload), vector["name"]
        assert frames.encode(*got) == data, vector["name"]


@pytest.mark.parametrize("fast", [True, False])
def test_json_of_odd_values(fast, monkeypatch):
    if not fast:
        monkeypatch.setattr(jsonable, "orjson", None)
    value = {
        "nan": math.nan,
        "inf": [math.inf],
        "big": 1 << 80,
        "set": {1},
        3: b"raw",
        "bytes": b"\xff",
        "bad": "\ud800",
    }
    got = json.loads(jsonable.dumps(value))
    want = {"nan": None, "inf": [None], "big": 1 << 80, "set": [1], "3": "raw", "bytes": "/w==", "bad": "?"}
    assert got == want
    assert jsonable.loads(jsonable.dumps({"big": 1 << 80})) == {"big": 1 << 80}


def test_json_never_fails():
    class Odd:
        __slots__ = ()

        def __repr__(self):
            return "<odd>"

    circle: list = []
    circle.append(circle)
    assert json.loads(jsonable.dumps([Odd()])) == ["<odd>"]
    assert json.loads(jsonable.dumps(circle))


def test_valid_json_that_the_fast_parser_refuses_is_read():
    data = b'{"half":"\\ud800","huge":1e999}'
    assert jsonable.loads(data) == {"half": "\ud800", "huge": math.inf}
