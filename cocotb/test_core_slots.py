"""The slot table, judged packet by packet against the rules of section 5 of the specification."""

import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge

import model
import zwire
from bench import run, start

EMPTY, COLLECTING, REDUCING, REDUCED = "empty", "collecting", "reducing", "reduced"


class Slot:
    def __init__(self, vid, ranks):
        self.vid, self.state = vid, EMPTY
        self.held, self.done = set(), set(range(ranks))
        self.marks, self.nonfinite = [], False


class Rules:
    """The rules, with a reduction that takes as long as the bench likes."""

    def __init__(self, first, window, ranks):
        self.first, self.window, self.ranks = first, window, ranks
        count = 2 * window
        self.slots = [Slot((first + (s - first) % count - count) % 2**32, ranks) for s in range(count)]
        self.reducing = []  # slots, in the order in which they became complete

    def of(self, vid):
        return self.slots[vid % len(self.slots)]

    def data(self, rank, vid, ecn, nonfinite, writable):
        """What the table must answer, by the names of its outputs."""
        proven = self.of(vid - self.window)
        if proven.vid == (vid - self.window) % 2**32 and proven.state == REDUCED:
            proven.done.add(rank)
        slot = self.of(vid)
        if vid == slot.vid:
            return self.repeat(slot, rank, ecn, nonfinite, writable)
        if vid != (slot.vid + 2 * self.window) % 2**32:
            return {"refused": behind_or_ahead(vid, slot.vid)}
        slot.done.add(rank)
        if slot.state not in (REDUCED, EMPTY) or len(slot.done) < self.ranks or not writable:
            return {"refused": zwire.CODE_NOT_READY}
        slot.__init__(vid, 0)
        slot.state = COLLECTING
        return {"turn_over": 1} | self.store(slot, rank, ecn, nonfinite)

    def repeat(self, slot, rank, ecn, nonfinite, writable):
        """Data for the VID that the slot holds."""
        if slot.state == EMPTY:
            return {"refused": zwire.CODE_LATE}
        if slot.state == REDUCED:
            return {"refused": zwire.CODE_DUPLICATE, "owe": 1}
        if rank in slot.held or slot.state == REDUCING:
            return {"refused": zwire.CODE_DUPLICATE}
        if not writable:
            return {"refused": zwire.CODE_NOT_READY}
        return self.store(slot, rank, ecn, nonfinite)

    def store(self, slot, rank, ecn, nonfinite):
        slot.held.add(rank)
        slot.marks.append(ecn)
        slot.nonfinite |= nonfinite
        answer = {"store": 1, "store_ce": int(ecn == zwire.ECN_CE), "store_nonfinite": int(nonfinite)}
        if len(slot.held) == self.ranks:
            slot.state = REDUCING
            self.reducing.append(slot)
            mark = max(slot.marks, key=model.ECN_ORDER.index)
            answer |= {"complete": 1, "complete_ecn": mark, "complete_nonfinite": int(slot.nonfinite)}
        return answer

    def ask(self, rank, vid):
        slot = self.of(vid)
        everyone = (1 << self.ranks) - 1
        if vid == (slot.vid + 2 * self.window) % 2**32:
            return {"asked": 1, "answer": (zwire.CODE_SEND, everyone)}
        if vid != slot.vid:
            return {"refused": behind_or_ahead(vid, slot.vid)}
        if slot.state == EMPTY:
            return {"refused": zwire.CODE_LATE}
        if slot.state == REDUCED:
            return {"asked": 1, "owe": 1}
        if slot.state == REDUCING:
            return {"asked": 1}
        code = zwire.CODE_WAIT if rank in slot.held else zwire.CODE_SEND
        return {"asked": 1, "answer": (code, everyone & ~sum(1 << r for r in slot.held))}


def behind_or_ahead(vid, held):
    return zwire.CODE_LATE if (vid - held) % 2**32 >= 1 << 31 else zwire.CODE_EARLY


def set_up(dut, first, window, ranks):
    dut.job_first.value, dut.job_window.value = first, window
    dut.slot_mask.value = 2 * window - 1
    dut.job_ranks.value = (1 << ranks) - 1


def quiet(dut):
    for name in ("refuse", "data", "ask", "finish", "reduced"):
        getattr(dut, name).value = 0


def compare(dut, expected, what):
    """The table's outputs in this cycle are what the rules say."""
    for name in ("store", "turn_over", "owe", "complete", "asked"):
        assert int(getattr(dut, name).value) == expected.get(name, 0), f"{what}: {name}, want {expected}"
    for name in ("store_ce", "store_nonfinite", "complete_ecn", "complete_nonfinite"):
        if name in expected:
            assert int(getattr(dut, name).value) == expected[name], f"{what}: {name}, want {expected}"
    assert int(dut.refused.value) == int("refused" in expected), f"{what}: refused, want {expected}"
    if "refused" in expected:
        assert int(dut.refused_code.value) == expected["refused"], f"{what}: want {expected}"
    assert int(dut.answer.value) == int("answer" in expected), f"{what}: answer, want {expected}"
    if "answer" in expected:
        assert (int(dut.answer_code.value), int(dut.answer_mask.value)) == expected["answer"], what


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(order=["near", "mixed", "wild"])
async def the_rules_hold(dut, order):
    """Random packets, one a cycle, in jobs of any window; every output in every cycle."""
    rng = random.Random(order)
    ports = len(dut.ports)
    most = 1 << len(dut.job_window) - 1
    dut.flush.value = 0
    set_up(dut, 0, 1, 1)
    quiet(dut)
    await start(dut)
    stored = completed = 0
    for _ in range(25):
        ranks = rng.randint(1, ports)
        window = 1 << rng.randrange(most.bit_length())
        first = rng.choice([0, 1, 2**32 - 1, 2**32 - 2 * window, 2**31 - 1, rng.getrandbits(32)])
        dut.flush.value = 1
        quiet(dut)
        set_up(dut, first, window, ranks)
        await RisingEdge(dut.clk)
        dut.flush.value = 0
        rules = Rules(first, window, ranks)
        for _ in range(150):
            answer = await packet(dut, rng, rules, order)
            stored += answer.get("store", 0)
            completed += answer.get("complete", 0)
    assert stored > 100 and completed > 25


async def packet(dut, rng, rules, order):
    """One random cycle: a packet or none, and perhaps the end of a reduction."""
    quiet(dut)
    rank, port = rng.randrange(rules.ranks), rng.randrange(len(dut.ports))
    slot = rng.choice(rules.slots)
    steps = {"near": [0, 2, 2], "mixed": [-2, -1, 0, 0, 1, 2, 2, 2, 3, 4], "wild": [-(2**30), 0, 2, 2**30, 2**31]}
    vid = (slot.vid + rng.choice(steps[order]) * rules.window) % 2**32
    ecn, nonfinite, writable = rng.randrange(4), rng.random() < 0.2, rng.random() < 0.9
    dut.ports.value, dut.rank.value, dut.vid.value, dut.ecn.value = 1 << port, rank, vid, ecn
    dut.nonfinite.value, dut.writable.value, dut.belongs.value = int(nonfinite), int(writable), 1
    dut.code.value = rng.choice([zwire.CODE_BAD_EPOCH, zwire.CODE_PAYLOAD_CRC])
    done = None
    if rules.reducing and rng.random() < 0.3:
        done = rules.reducing.pop(0)
        dut.reduced.value, dut.reduced_slot.value = 1, done.vid % len(rules.slots)
    kind = rng.choice(["data"] * 6 + ["ask", "ask", "finish", "refuse", "none"])
    if kind != "none":
        getattr(dut, kind).value = 1
    await FallingEdge(dut.clk)
    expected = {}
    if kind == "data":
        expected = rules.data(rank, vid, ecn, nonfinite, writable)
    elif kind == "ask":
        expected = rules.ask(rank, vid)
    elif kind == "finish":
        expected = {"answer": (zwire.CODE_DONE, 0)}
    elif kind == "refuse":
        expected = {"refused": int(dut.code.value)}
    compare(dut, expected, f"{kind} {vid} from {rank}")
    assert int(dut.rank_bit.value) == 1 << rank and int(dut.slot.value) == vid % len(rules.slots)
    resolved = kind in ("data", "refuse") and writable
    assert int(dut.resolve.value) == (1 << port if resolved else 0)
    if "refused" in expected:
        told = "owe" not in expected and expected["refused"] != zwire.CODE_PAYLOAD_CRC
        assert int(dut.refused_answer.value) == int(told)
    await RisingEdge(dut.clk)
    if done is not None:
        done.state = REDUCED
    return expected


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_strangers_refusal_is_not_answered(dut):
    dut.flush.value = 0
    set_up(dut, 0, 1, 1)
    quiet(dut)
    await start(dut)
    dut.refuse.value, dut.code.value = 1, zwire.CODE_BAD_EPOCH
    for belongs in (0, 1):
        dut.belongs.value = belongs
        await FallingEdge(dut.clk)
        assert int(dut.refused.value) == 1 and int(dut.refused_answer.value) == belongs


@pytest.mark.parametrize("ports, window", [(1, 1), (3, 4), (5, 2), (4, 8)])
def test_agg_slots(ports, window):
    run(
        "agg_slots",
        parameters={
            "PORTS": ports,
            "WINDOW": window,
            "SLOT_BITS": (2 * window - 1).bit_length(),
            "ROW_BITS": max(1, (window - 1).bit_length()),
            "RANK_BITS": max(1, (ports - 1).bit_length()),
        },
        testcase=[f"the_rules_hold/order={order}" for order in ("near", "mixed", "wild")]
        + ["a_strangers_refusal_is_not_answered"],
    )
