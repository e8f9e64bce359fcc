"""Checks the Python model against values worked out by hand, independent of this project's code."""

import numpy as np
import pytest

import frames
import model
import zwire
from arithmetic import Arithmetic


def bits(*values):
    return np.array(values, dtype=np.float32).view(np.uint32)


def tree_sum(*ports):
    """Returns the fp32 tree's sum of one element per port."""
    total, _ = Arithmetic().sum(ports)
    return total


def test_crc_has_the_published_check_value():
    assert model.crc16(b"123456789") == 0x29B1


@pytest.mark.parametrize(
    "ports, total",
    [
        # Every node rounds to even: 2^24 + 1 is a tie and stays 2^24. A sum in port order would
        # lose the second 1 too, but the tree adds 1 + 1 first.
        ([16777216.0, 0.0, 1.0, 1.0], 16777218.0),
        ([16777216.0, 1.0, 0.0, 1.0], 16777216.0),
        # Five ports: ((p0 + p1) + (p2 + p3)) + p4, so p4 is added after the cancellation.
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
    header = {"version": 2, "kind": zwire.KIND_ASK, "job": 2, "epoch": 0x1234, "rank": 5, "vid": 0x89ABCDEF}
    raw = bytes.fromhex("22 00 02 00 34 12 05 00 ef cd ab 89 00 00")
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


class OwnedCard:
    """A card of one lane with chunks of one element, and a host that owns it."""

    EPOCH = 7

    def own(self, **sizes):
        ident = {"LINK": 32, "LATENCY": 11}
        self.card = model.Card(lanes=1, chunk=1, ident=ident, shared=True, **sizes)
        self.write("OWNER", 99)
        self.write("JOB_TOKEN", 99)

    def set_up(self, job=0, ports=3, window=1, epoch=EPOCH, first=0, deadline=0):
        for name, value in {"JOB_PORTS": ports, "JOB_CHUNK": 1, "JOB_WINDOW": window, "JOB_DEADLINE": deadline}.items():
            self.write(name, value)
        return self.write("JOB_COMMIT", job << 48 | epoch << 32 | first)

    def write(self, name, value):
        header = {"kind": zwire.KIND_REGWRITE, "vid": zwire.REGISTERS[name][0], "mask": value, "length": 0}
        reply, _, _ = self.card.register(header)
        return zwire.CODES[reply["code"]]

    def read(self, name, job=0):
        at = zwire.REGISTERS[name][0] + 0x100 * job
        reply, _, _ = self.card.register({"kind": zwire.KIND_REGREAD, "vid": at, "length": 0})
        return reply["mask"] if reply["code"] == zwire.CODE_DONE else zwire.CODES[reply["code"]]

    def send(self, kind, rank, vid, value=0.0, port=None, **change):
        """Sends a packet from the port numbered like its rank; returns kinds, codes and ports of
        the card's packets."""
        header = {"version": 2, "kind": kind, "job": 0, "epoch": self.EPOCH, "rank": rank, "vid": vid} | change
        payload = b""
        if kind == zwire.KIND_DATA:
            header |= {"format": zwire.FORMAT_FP32, "length": 1, "flags": 0}
            payload = np.float32(value).tobytes()
        self.sent = self.card.packet(rank if port is None else port, header, payload)
        return self.described()

    def overdue(self, vid, job=0):
        """Returns the same for a slot that is overdue."""
        self.sent = self.card.overdue(job, vid)
        return self.described()

    def described(self):
        return [(zwire.KINDS[h["kind"]][0], zwire.CODES[h.get("code", 0)], ports) for h, _, ports in self.sent]


class TestSlots(OwnedCard):
    """Two ranks, one chunk of window: the slots of VID 0 and 1."""

    def setup_method(self):
        self.own(ports=2, window=1)
        assert self.set_up() == "done"

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

    def test_only_the_epoch_that_all_finished_is_confirmed(self):
        for rank in (0, 1):
            self.send(zwire.KIND_FINISH, rank, 1)
        assert self.send(zwire.KIND_FINISH, 0, 1, epoch=6) == [("status", "bad_job", 1)]
        self.write("RELEASE", 99)
        assert self.send(zwire.KIND_FINISH, 0, 1) == [("status", "done", 1)]
        assert self.card.counters["finishes"] == 3


class TestJobs(OwnedCard):
    """Four job numbers on a card with eight slots and three ports."""

    def setup_method(self):
        self.own(ports=3, window=4, jobs=4)

    def slots(self, job):
        """Returns the job's first slot, and the number of its slots."""
        value = self.read("JOB_SLOTS", job)
        return value & 0xFFFF, value >> 16

    def test_slots_are_the_first_that_are_free_and_aligned(self):
        assert self.set_up(job=0, window=1) == "done"
        assert self.set_up(job=1, window=2) == "done"
        assert self.set_up(job=2, window=2) == "no_slots"
        assert self.set_up(job=2, window=1) == "done"
        assert [self.slots(job) for job in range(4)] == [(0, 2), (4, 4), (2, 2), (0, 0)]
        assert self.set_up(job=3, window=1) == "no_slots"
        # The slots of the number's running job count as free: job 2 leaves slot 2 for slot 0.
        self.write("JOB_ABORT", self.EPOCH << 32)
        assert self.set_up(job=2, window=2, epoch=8) == "done"
        assert self.slots(2) == (0, 4)
        # Slots are the last check, and a refusal leaves the running job unchanged.
        assert self.set_up(job=2, window=4, epoch=9) == "no_slots"
        assert self.set_up(job=2, window=8, epoch=9) == "bad_window"
        assert self.set_up(job=4, window=8, epoch=9) == "bad_job"
        assert self.read("JOB_STATE", 2) == 2 << 32 | 8 << 16 | 3

    def test_chunks_of_several_jobs_do_not_meet(self):
        """Ports 0 and 1 in job 0, ports 1 and 2 in job 3: the same epochs, ranks and VIDs."""
        self.set_up(job=0, ports=0b011)
        self.set_up(job=3, ports=0b110)
        assert self.send(zwire.KIND_DATA, 0, 0, 1.0) == []
        assert self.send(zwire.KIND_DATA, 1, 0, 4.0, port=2, job=3) == []
        assert self.send(zwire.KIND_ASK, 1, 0, port=2, job=3) == [("status", "wait", 0b100)]
        assert self.send(zwire.KIND_DATA, 1, 0, 2.0) == [("result", "done", 0b011)]
        ((header, payload, _),) = self.sent
        assert (header["job"], payload) == (0, np.float32(3).tobytes())
        assert self.send(zwire.KIND_DATA, 0, 0, float("inf"), port=1, job=3) == [("result", "done", 0b110)]
        ((header, payload, _),) = self.sent
        assert (header["job"], payload) == (3, np.float32("inf").tobytes())
        assert [self.read("JOB_NONFINITE_IN", job) for job in range(4)] == [0, 0, 0, 1]
        assert [self.read("JOB_FIRST_OUT", job) for job in (0, 3)] == [0, 1 << 63]

    def test_a_rank_belongs_to_its_jobs_port(self):
        assert [self.read("JOB_MEMBERS", job) for job in range(4)] == [0b111] * 4
        self.set_up(job=1, ports=0b110)
        assert self.read("JOB_MEMBERS", 1) == 0b110
        assert self.send(zwire.KIND_ASK, 0, 0, job=1) == []
        assert self.card.counters["bad_rank"] == 1
        # The rank's port gets the refusal; an unknown job number counts by its remainder.
        assert self.send(zwire.KIND_ASK, 0, 0, job=2) == [("status", "bad_job", 0b001)]
        assert self.send(zwire.KIND_ASK, 0, 0, port=1, job=5) == [("status", "bad_job", 0b010)]
        assert self.send(zwire.KIND_ASK, 0, 0, job=5) == []
        assert self.send(zwire.KIND_ASK, 0, 0, job=6) == [("status", "bad_job", 0b001)]

    def test_jobs_end_one_by_one_or_with_their_owner(self):
        for job in range(3):
            assert self.set_up(job, ports=0b001, epoch=self.EPOCH + job) == "done"
        assert self.send(zwire.KIND_FINISH, 0, 0, job=1, epoch=self.EPOCH + 1) == [("status", "done", 1)]
        assert [self.read("JOB_STATE", job) & 1 for job in range(3)] == [1, 0, 1]
        self.write("JOB_ABORT", 2 << 48 | self.EPOCH + 2 << 32)
        assert [self.read("JOB_STATE", job) & 1 for job in range(3)] == [1, 0, 0]
        assert self.set_up(1, epoch=self.EPOCH) == "stale_epoch"
        assert self.set_up(3, epoch=0) == "done"
        self.write("RELEASE", 99)
        assert [self.read("JOB_STATE", job) & 1 for job in range(4)] == [0] * 4
        assert [self.read("JOB_STATE", job) >> 16 & 0xFFFF for job in range(4)] == [7, 8, 9, 0]

    def test_blocks_of_numbers_that_do_not_exist_do_not_either(self):
        assert self.read("JOB_STATE", 3) == 3 << 32
        assert self.read("JOB_STATE", 4) == "bad_address"


class TestDeadlines(OwnedCard):
    """Three ranks, one chunk of window, and slots with a deadline of 50 cycles."""

    PARTIAL = 1 << 32

    def begin(self, deadline):
        self.own(ports=3, window=1, jobs=2)
        assert self.set_up(ports=7, deadline=deadline) == "done"

    def data(self, vid, *ranks):
        """Sends data of these ranks; rank r sends 2^r. Returns the outcome of the last packet."""
        return [self.send(zwire.KIND_DATA, rank, vid, 2.0**rank) for rank in ranks][-1]

    def of_result(self):
        """Returns mask, partial flag and sum of a sent result."""
        ((header, payload, _),) = self.sent
        (total,) = np.frombuffer(payload, dtype=np.float32)
        return header["mask"], bool(header["flags"] & zwire.FLAG_PARTIAL), total

    def test_a_deadline_that_is_none_is_refused(self):
        self.own(ports=3, window=1)
        for deadline in (self.PARTIAL, 1 << 33 | 50, 1 << 63 | self.PARTIAL | 50):
            assert self.set_up(deadline=deadline) == "bad_deadline"
            assert self.read("JOB_DEADLINE") == deadline
        assert self.set_up(window=2, deadline=self.PARTIAL) == "bad_window"
        assert self.set_up(deadline=2**32 - 1) == "done"
        assert self.set_up(deadline=2**32 - 1) == "done"
        assert self.set_up(deadline=self.PARTIAL | 2**32 - 1) == "epoch_in_use"
        self.write("RESET", 99)
        assert self.read("JOB_DEADLINE") == 0

    def test_ranks_that_wait_are_told_for_whom(self):
        self.begin(50)
        self.data(0, 1)
        for _ in range(2):
            assert self.overdue(0) == [("status", "overdue", 0b010)]
            assert self.sent[0][0]["mask"] == 0b101
        self.data(0, 0)
        assert self.overdue(0) == [("status", "overdue", 0b001), ("status", "overdue", 0b010)]
        assert [(h["rank"], h["vid"], h["mask"]) for h, _, _ in self.sent] == [(0, 0, 0b100), (1, 0, 0b100)]
        assert self.data(0, 2) == [("result", "done", 0b111)]
        assert self.of_result() == (0b111, False, 7.0)
        assert [self.card.counters[name] for name in ("overdue", "partial", "evictions")] == [3, 0, 0]

    def test_a_slot_that_cannot_turn_over_is_overdue_once_it_was_asked_to(self):
        self.begin(50)
        self.data(0, 0, 1, 2)
        with pytest.raises(AssertionError):
            self.overdue(0)
        assert self.data(2, 0) == [("status", "not_ready", 0b001)]
        assert self.overdue(0) == [("status", "overdue", 0b001)]
        assert self.sent[0][0]["mask"] == 0b110
        assert self.data(2, 1, 2) == []
        assert self.data(2, 0, 1) == [("result", "done", 0b111)]

    def test_a_partial_sum_takes_nothing_more(self):
        self.begin(self.PARTIAL | 50)
        self.data(0, 0, 2)
        assert self.overdue(0) == [("result", "done", 0b111)]
        assert self.of_result() == (0b101, True, 5.0)
        # A late contribution is answered with the result, which lacks it; the next sum includes the
        # rank.
        assert self.data(0, 1) == [("replay", "done", 0b010)]
        assert self.of_result() == (0b101, True, 5.0)
        assert self.data(1, 0, 1, 2) == [("result", "done", 0b111)]
        assert self.of_result() == (0b111, False, 7.0)
        assert [self.card.counters[name] for name in ("overdue", "partial", "duplicate")] == [1, 1, 1]

    def test_who_does_not_come_back_is_evicted(self):
        self.begin(self.PARTIAL | 50)
        self.data(0, 0, 1, 2)
        self.data(1, 1)
        self.overdue(1)
        self.data(2, 1)
        everyone = [("status", "evicted", 1 << rank) for rank in range(3)]
        # For VID 0: rank 1 sent VID 2, the others nothing since; rank 2 sends in time.
        self.data(1, 2)
        self.data(2, 2)
        assert self.overdue(0) == everyone
        assert [(h["vid"], h["mask"]) for h, _, _ in self.sent] == [(0, 0b001)] * 3
        assert self.read("JOB_EVICTED") == 0b001
        for kind in (zwire.KIND_DATA, zwire.KIND_ASK, zwire.KIND_FINISH):
            assert self.send(kind, 0, 1) == [("status", "evicted", 0b001)]
        assert self.send(zwire.KIND_DATA, 0, 1, format=77) == [("status", "evicted", 0b001)]
        assert self.card.counters["evicted"] == 4
        # The remaining ranks go on.
        self.data(2, 1)
        assert self.send(zwire.KIND_ASK, 1, 2) == [("status", "wait", 0b010)]
        assert self.sent[0][0]["mask"] == 0b100
        assert self.data(2, 2) == [("result", "done", 0b110)]
        assert self.of_result() == (0b110, True, 6.0)
        assert self.send(zwire.KIND_ASK, 1, 3) == [("status", "send", 0b010)]
        assert self.sent[0][0]["mask"] == 0b110
        for rank in (1, 2):
            self.send(zwire.KIND_FINISH, rank, 3)
        assert self.read("JOB_STATE") & 1 == 0
        assert self.send(zwire.KIND_FINISH, 1, 3) == [("status", "done", 0b010)]
        assert self.send(zwire.KIND_FINISH, 0, 3) == [("status", "evicted", 0b001)]
        assert self.read("JOB_EVICTED") == 0b001
        assert self.set_up(ports=7, epoch=8) == "done"
        assert self.read("JOB_EVICTED") == 0

    def test_what_the_evicted_gave_stays_in_its_sum(self):
        """Rank 0 is evicted for VID 0 while VIDs 1 to 3 are collected."""
        self.own(ports=3, window=2)
        self.set_up(ports=7, window=2, deadline=self.PARTIAL | 50)
        self.data(0, 0, 1, 2)
        self.data(1, 0, 1)
        self.data(2, 2)
        self.data(3, 1, 2)
        assert self.data(4, 1) == [("status", "not_ready", 0b010)]
        assert self.overdue(0) == [("status", "evicted", 1 << rank) for rank in range(3)]
        assert self.read("JOB_EVICTED") == 0b001
        assert self.data(1, 2) == [("result", "done", 0b110)]
        assert self.of_result() == (0b111, False, 7.0)
        assert self.data(2, 1) == [("result", "done", 0b110)]
        assert self.of_result() == (0b110, True, 6.0)
        # A slot that holds all remaining contributions waits for its deadline, then closes.
        assert self.send(zwire.KIND_ASK, 1, 3) == [("status", "wait", 0b010)]
        assert self.sent[0][0]["mask"] == 0
        assert self.overdue(3) == [("result", "done", 0b110)]
        assert self.card.counters["partial"] == 2

    def test_the_job_ends_when_the_last_that_had_not_finished_is_evicted(self):
        self.begin(self.PARTIAL | 50)
        self.data(0, 0, 1, 2)
        self.data(1, 1)
        self.data(2, 0)
        for rank in (0, 1):
            self.send(zwire.KIND_FINISH, rank, 1)
        assert self.overdue(0) == [("status", "evicted", 1 << rank) for rank in range(3)]
        assert self.read("JOB_STATE") & 1 == 0
        assert self.send(zwire.KIND_FINISH, 0, 1) == [("status", "done", 0b001)]
        assert self.send(zwire.KIND_FINISH, 2, 1) == [("status", "evicted", 0b100)]

    def test_lags_have_an_address_for_each_rank_that_there_can_be(self):
        self.begin(50)
        for address in (0x20000, 0x20000 + 0x2000 + 2 * 0x80 + 15 * 8):
            assert self.card.register({"kind": zwire.KIND_REGREAD, "vid": address, "length": 0})[0]["code"] == zwire.CODE_DONE
        for address in (0x24000, 0x20000 + 3 * 0x80, 0x20001, 0x20000 - 8):
            assert self.card.register({"kind": zwire.KIND_REGREAD, "vid": address, "length": 0})[0]["code"] == zwire.CODE_BAD_ADDRESS
        assert model.lag_address(1, 2, 15) == 0x20000 + 0x2000 + 2 * 0x80 + 15 * 8

    @pytest.mark.parametrize(
        "cycles, bucket", [(0, 0), (1, 1), (3, 1), (4, 2), (15, 2), (16, 3), (4**14 - 1, 14), (4**14, 15), (2**32, 15)]
    )
    def test_lags_are_counted_by_powers_of_four(self, cycles, bucket):
        assert model.lag_bucket(cycles) == bucket
