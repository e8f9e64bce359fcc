"""Checks the Python model against values worked out by hand, not by any code of ours."""

import numpy as np
import pytest

import frames
import model
import zwire
from arithmetic import Arithmetic


def bits(*values):
    return np.array(values, dtype=np.float32).view(np.uint32)


def tree_sum(*ports):
    """The sum of one element a port by the tree of fp32."""
    total, _ = Arithmetic().sum(ports)
    return total


def test_crc_has_the_published_check_value():
    assert model.crc16(b"123456789") == 0x29B1


@pytest.mark.parametrize(
    "ports, total",
    [
        # Rounds to even at every node: 2^24 + 1 is a tie and stays 2^24; summed in order of the ports the
        # second 1 would be lost too, but 1 + 1 meet first in the tree.
        ([16777216.0, 0.0, 1.0, 1.0], 16777218.0),
        ([16777216.0, 1.0, 0.0, 1.0], 16777216.0),
        # Five ports: ((p0 + p1) + (p2 + p3)) + p4, so p4 meets what is left of a cancellation.
        ([1e30, 1.0, -1e30, 1.0, 0.5], 0.5),
        ([1.4e-45, 1.4e-45, 0.0], 2.8e-45),
        ([3e38, 3e38, -3e38], float("inf")),
    ],
)
def test_tree_sum_rounds_at_every_node(ports, total):
    assert tree_sum(*map(bits, ports)) == bits(total)


def test_a_member_that_is_absent_leaves_no_trace():
    minus_zero = np.array([0x80000000], dtype=np.uint32)
    assert tree_sum(minus_zero, None, None) == 0x80000000
    assert tree_sum(bits(0.0), None, minus_zero) == 0
    assert tree_sum(None, bits(1.5), None) == bits(1.5)


def test_every_nan_is_the_canonical_one():
    signalling = np.array([0xFF800001], dtype=np.uint32)
    assert tree_sum(signalling) == 0x7FC00000
    assert tree_sum(bits(1.0), signalling) == 0x7FC00000
    assert tree_sum(bits(float("inf")), bits(float("-inf"))) == 0x7FC00000


def test_ecn_marks_merge_without_inventing_congestion():
    assert model.merge_ecn([zwire.ECN_ECT0, zwire.ECN_ECT1]) == zwire.ECN_ECT0
    assert model.merge_ecn([zwire.ECN_NOT_ECT, zwire.ECN_ECT0]) == zwire.ECN_NOT_ECT
    assert model.merge_ecn([zwire.ECN_NOT_ECT, zwire.ECN_CE]) == zwire.ECN_CE


def test_an_ask_has_the_layout_of_the_specification():
    header = {"version": 1, "kind": zwire.KIND_ASK, "job": 2, "epoch": 0x1234, "rank": 5, "vid": 0x89ABCDEF}
    raw = bytes.fromhex("21 00 02 00 34 12 05 00 ef cd ab 89 00 00")
    assert model.pack(header, 14) == raw
    assert model.unpack(raw)["vid"] == 0x89ABCDEF


@pytest.mark.parametrize("name", [row[0] for row in zwire.KINDS.values()])
def test_the_hand_written_frames(name):
    raw, header, payload = frames.load()[name]
    assert model.frame(header, payload) == raw
    if zwire.KINDS[header["kind"]][4]:
        (read, body), = model.parse_frames(raw)
        assert {**dict.fromkeys(zwire.FIELDS, 0), **read} == header
        assert body == payload


class TestSlots:
    """Two ranks, one chunk of window: the slots of VID 0 and 1."""

    EPOCH = 7

    def setup_method(self):
        ident = {"LINK": 32, "LATENCY": 11}
        self.card = model.Card(lanes=1, ports=2, chunk=1, window=1, ident=ident, shared=True)
        self.write("OWNER", 99)
        for name, value in {"JOB_TOKEN": 99, "JOB_PORTS": 3, "JOB_CHUNK": 1, "JOB_WINDOW": 1}.items():
            self.write(name, value)
        assert self.write("JOB_COMMIT", self.EPOCH << 32) == "done"

    def write(self, name, value):
        header = {"kind": zwire.KIND_REGWRITE, "vid": zwire.REGISTERS[name][0], "mask": value, "length": 0}
        reply, _, _ = self.card.register(header)
        return zwire.CODES[reply["code"]]

    def send(self, kind, rank, vid, value=0.0):
        header = {"version": 1, "kind": kind, "job": 0, "epoch": self.EPOCH, "rank": rank, "vid": vid}
        payload = b""
        if kind == zwire.KIND_DATA:
            header |= {"format": zwire.FORMAT_FP32, "length": 1, "flags": 0}
            payload = np.float32(value).tobytes()
        sent = self.card.packet(rank, header, payload)
        return [(zwire.KINDS[h["kind"]][0], zwire.CODES[h.get("code", 0)], ports) for h, _, ports in sent]

    def test_a_chunk_is_summed_once_and_replayed(self):
        assert self.send(zwire.KIND_DATA, 0, 0, 1.0) == []
        assert self.send(zwire.KIND_DATA, 0, 0, 5.0) == [("status", "duplicate", 1)]
        assert self.send(zwire.KIND_DATA, 1, 0, 2.0) == [("result", "done", 3)]
        assert self.send(zwire.KIND_ASK, 1, 0) == [("replay", "done", 2)]
        assert self.card.counters["stored"] == 2

    def test_asks_say_who_is_missing(self):
        assert self.send(zwire.KIND_ASK, 0, 0) == [("status", "send", 1)]
        self.send(zwire.KIND_DATA, 0, 0)
        assert self.send(zwire.KIND_ASK, 0, 0) == [("status", "wait", 1)]
        assert self.send(zwire.KIND_ASK, 1, 0) == [("status", "send", 2)]

    def test_a_slot_is_not_reused_while_a_member_may_still_ask(self):
        for rank in (0, 1):
            self.send(zwire.KIND_DATA, rank, 0)
        assert self.send(zwire.KIND_DATA, 0, 2) == [("status", "not_ready", 1)]
        assert self.send(zwire.KIND_ASK, 1, 0) == [("replay", "done", 2)]
        assert self.send(zwire.KIND_DATA, 1, 2) == []
        assert self.send(zwire.KIND_DATA, 0, 2) == [("result", "done", 3)]

    def test_what_is_far_off_is_refused(self):
        assert self.send(zwire.KIND_DATA, 0, 6) == [("status", "early", 1)]
        assert self.send(zwire.KIND_DATA, 0, 2**32 - 4) == [("status", "late", 1)]

    def test_all_that_finish_end_the_job(self):
        assert self.send(zwire.KIND_FINISH, 0, 1) == [("status", "done", 1)]
        assert self.send(zwire.KIND_FINISH, 1, 1) == [("status", "done", 2)]
        assert self.send(zwire.KIND_FINISH, 0, 1) == [("status", "done", 1)]
        assert self.send(zwire.KIND_DATA, 0, 1) == [("status", "bad_job", 1)]
