"""The slot table, compared packet by packet with the rules of section 5 of the specification.

The bench identifies members by their ports. Jobs share the table; each has its own slots.
"""

import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge

import model
import zwire
from bench import run, start

EMPTY, COLLECTING, REDUCING, REDUCED = "empty", "collecting", "reducing", "reduced"


class Slot:
    def __init__(self, vid, members):
        self.vid, self.state = vid, EMPTY
        self.held, self.done = set(), set(members)
        self.marks, self.nonfinite = [], False


class Rules:
    """The rules for one job; the bench chooses how long a reduction takes."""

    def __init__(self, first, window, members, base, partial=False):
        self.first, self.window, self.base, self.partial = first, window, base, partial
        self.members, self.evicted = set(members), set()  # members excludes the evicted ports
        self.count = count = 2 * window
        self.slots = [Slot((first + (s - first) % count - count) % 2**32, members) for s in range(count)]
        self.reducing = []  # slots, in the order of completion

    def of(self, vid):
        return self.slots[vid % self.count]

    def place(self, vid):
        """Returns the number of the VID's slot in the table."""
        return self.base + vid % self.count

    def mask(self):
        """Returns the mask of the job's slots in the table."""
        return ((1 << self.count) - 1) << self.base

    def data(self, port, vid, ecn, nonfinite, writable):
        """Returns the table's expected outputs for data, by name."""
        proven = self.of(vid - self.window)
        if proven.vid == (vid - self.window) % 2**32 and proven.state == REDUCED:
            proven.done.add(port)
        slot = self.of(vid)
        if vid == slot.vid:
            return self.repeat(slot, port, ecn, nonfinite, writable)
        if vid != (slot.vid + 2 * self.window) % 2**32:
            return {"refused": behind_or_ahead(vid, slot.vid)}
        slot.done.add(port)
        all_done = slot.done >= self.members
        if slot.state not in (REDUCED, EMPTY) or not all_done or not writable:
            return {"refused": zwire.CODE_NOT_READY, "stall": int(slot.state == REDUCED and not all_done)}
        slot.__init__(vid, ())
        slot.state = COLLECTING
        return {"turn_over": 1} | self.store(slot, port, ecn, nonfinite)

    def repeat(self, slot, port, ecn, nonfinite, writable):
        """Handles data for the slot's VID."""
        if slot.state == EMPTY:
            return {"refused": zwire.CODE_LATE}
        if slot.state == REDUCED:
            return {"refused": zwire.CODE_DUPLICATE, "owe": 1}
        if port in slot.held or slot.state == REDUCING:
            return {"refused": zwire.CODE_DUPLICATE}
        if not writable:
            return {"refused": zwire.CODE_NOT_READY}
        return self.store(slot, port, ecn, nonfinite)

    def store(self, slot, port, ecn, nonfinite):
        slot.held.add(port)
        slot.marks.append(ecn)
        slot.nonfinite |= nonfinite
        answer = {"store": 1, "store_ce": int(ecn == zwire.ECN_CE), "store_nonfinite": int(nonfinite)}
        return answer | self.close(slot) if slot.held >= self.members else answer

    def close(self, slot):
        """Closes the slot: it is summed with the contributions it holds."""
        slot.state = REDUCING
        self.reducing.append(slot)
        mark = max(slot.marks, key=model.ECN_ORDER.index)
        answer = {"complete": 1, "complete_ports": bits(slot.held), "complete_vid": slot.vid}
        return answer | {"complete_ecn": mark, "complete_nonfinite": int(slot.nonfinite)}

    def ask(self, port, vid):
        slot = self.of(vid)
        everyone = bits(self.members)
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
        code = zwire.CODE_WAIT if port in slot.held else zwire.CODE_SEND
        return {"asked": 1, "answer": (code, everyone & ~bits(slot.held))}

    def overdue(self, slot):
        """Returns the expected outputs for an overdue slot."""
        collects = slot.state == COLLECTING
        waits_for = self.members - (slot.held if collects else slot.done)
        if not collects and (slot.state != REDUCED or not waits_for):
            return {}
        if not self.partial:
            told = bits(self.members - waits_for)
            return {"overdue": 1, "notice": (zwire.CODE_OVERDUE, slot.vid, told, bits(waits_for))}
        if collects:
            return {"overdue": 1} | self.close(slot)
        everyone = bits(self.members | self.evicted)
        self.members -= waits_for
        self.evicted |= waits_for
        notice = (zwire.CODE_EVICTED, slot.vid, everyone, bits(self.evicted))
        return {"overdue": 1, "evict": bits(waits_for), "notice": notice}


def behind_or_ahead(vid, held):
    return zwire.CODE_LATE if (vid - held) % 2**32 >= 1 << 31 else zwire.CODE_EARLY


def bits(ports):
    return sum(1 << p for p in ports)


def show_job(dut, rules):
    """Drives the set-up of the packet's job."""
    dut.job_first.value, dut.job_window.value = rules.first, rules.window
    dut.slot_mask.value, dut.slot_base.value = rules.count - 1, rules.base
    dut.member.value, dut.evicted.value = bits(rules.members), bits(rules.evicted)
    dut.partial.value = int(rules.partial)


def quiet(dut):
    for name in ("refuse", "data", "ask", "finish", "reduced", "act"):
        getattr(dut, name).value = 0


def compare(dut, expected, what):
    """Checks this cycle's outputs."""
    for name in ("store", "turn_over", "owe", "complete", "asked", "stall", "overdue", "evict"):
        assert int(getattr(dut, name).value) == expected.get(name, 0), f"{what}: {name}, want {expected}"
    of_complete = ("complete_ports", "complete_vid", "complete_ecn", "complete_nonfinite")
    for name in ("store_ce", "store_nonfinite", *of_complete):
        if name in expected:
            assert int(getattr(dut, name).value) == expected[name], f"{what}: {name}, want {expected}"
    assert int(dut.refused.value) == int("refused" in expected), f"{what}: refused, want {expected}"
    if "refused" in expected:
        assert int(dut.refused_code.value) == expected["refused"], f"{what}: want {expected}"
    assert int(dut.answer.value) == int("answer" in expected), f"{what}: answer, want {expected}"
    if "answer" in expected:
        assert (int(dut.answer_code.value), int(dut.answer_ports.value)) == expected["answer"], what
    assert int(dut.notice.value) == int("notice" in expected), f"{what}: notice, want {expected}"
    if "notice" in expected:
        shown = (dut.notice_code, dut.notice_vid, dut.notice_ports, dut.answer_ports)
        assert tuple(int(signal.value) for signal in shown) == expected["notice"], f"{what}: want {expected}"


class Table:
    """The jobs with slots in the table, and the free slots."""

    def __init__(self, rng, ports, slots):
        self.rng, self.ports, self.slots = rng, ports, slots
        self.jobs = []

    def begin(self):
        """Starts a new job if its slots are free, or returns None."""
        rng = self.rng
        count = 2 << rng.randrange((self.slots // 2).bit_length())
        base = rng.randrange(0, self.slots, count)
        first = rng.choice([0, 1, 2**32 - 1, 2**32 - count, 2**31 - 1, rng.getrandbits(32)])
        members = rng.sample(range(self.ports), rng.randint(1, self.ports))
        rules = Rules(first, count // 2, members, base, partial=rng.random() < 0.5)
        if any(rules.mask() & job.mask() for job in self.jobs):
            return None
        self.jobs.append(rules)
        return rules

    def end(self, job):
        """Ends a job, and returns the mask of its slots."""
        self.jobs.remove(job)
        return job.mask()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(order=["near", "mixed", "wild"])
async def the_rules_hold(dut, order):
    """Random packets of several jobs with any window, one a cycle, and overdue slots; checks all
    outputs in every cycle.

    Jobs end and begin.
    """
    rng = random.Random(order)
    table = Table(rng, len(dut.ports), 1 << len(dut.slot))
    dut.flush_slots.value = (1 << table.slots) - 1
    show_job(dut, table.begin())
    quiet(dut)
    await start(dut)
    seen, ended, most = [], 0, 0
    for cycle in range(3750):
        dut.flush_slots.value = ended
        if not ended and cycle % 8 == 0:
            table.begin()
        ended = 0
        most = max(most, len(table.jobs))
        if table.jobs:
            job = rng.choice(table.jobs)
            seen.append(await packet(dut, rng, job, table.jobs, order))
            # A job whose members were all evicted has no senders.
            if not job.members or rng.random() < 0.005:
                ended = table.end(job)
        else:
            quiet(dut)
            await RisingEdge(dut.clk)
    assert most > 1 or table.slots == 2
    several = table.ports > 1  # a single port never waits for others
    counts = {name: sum(name in answer for answer in seen) for name in ("store", "complete", "overdue", "evict")}
    assert counts["store"] > 100 and counts["complete"] > 25
    assert counts["overdue"] > 30 * several and counts["evict"] >= 5 * several, counts
    early = sum("overdue" in answer and "complete" in answer for answer in seen)
    assert early >= 5 * several, "few slots were closed with what they held"


def random_kind(rng):
    return rng.choice(["data"] * 12 + ["ask"] * 4 + ["finish"] * 2 + ["refuse"] * 2 + ["none"] * 2 + ["act"] * 2)


async def packet(dut, rng, rules, jobs, order):
    """Runs a random cycle: a packet of the job, an overdue slot or nothing; perhaps a reduction
    ends."""
    quiet(dut)
    port = rng.choice(sorted(rules.members))
    slot = rng.choice(rules.slots)
    steps = {"near": [0, 2, 2], "mixed": [-2, -1, 0, 0, 1, 2, 2, 2, 3, 4], "wild": [-(2**30), 0, 2, 2**30, 2**31]}
    vid = (slot.vid + rng.choice(steps[order]) * rules.window) % 2**32
    ecn, nonfinite, writable = rng.randrange(4), rng.random() < 0.2, rng.random() < 0.9
    show_job(dut, rules)
    dut.ports.value, dut.vid.value, dut.ecn.value = 1 << port, vid, ecn
    dut.nonfinite.value, dut.writable.value, dut.belongs.value = int(nonfinite), int(writable), 1
    dut.code.value = rng.choice([zwire.CODE_BAD_EPOCH, zwire.CODE_PAYLOAD_CRC])
    done, job = None, rng.choice(jobs)
    if job.reducing and rng.random() < 0.5:
        done = job.reducing.pop(0)
        dut.reduced.value, dut.reduced_slot.value = 1, job.place(done.vid)
    kind = random_kind(rng)
    dut.slot.value = rules.place(slot.vid if kind == "act" else vid)
    if kind != "none":
        getattr(dut, kind).value = 1
    await FallingEdge(dut.clk)
    expected = {}
    if kind == "data":
        expected = rules.data(port, vid, ecn, nonfinite, writable)
    elif kind == "ask":
        expected = rules.ask(port, vid)
    elif kind == "finish":
        expected = {"answer": (zwire.CODE_DONE, 0)}
    elif kind == "refuse":
        expected = {"refused": int(dut.code.value)}
    elif kind == "act":
        expected = rules.overdue(slot)
    compare(dut, expected, f"{kind} {vid} from {port}")
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
    dut.flush_slots.value = (1 << len(dut.flush_slots)) - 1
    show_job(dut, Rules(0, 1, {0}, 0))
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
        },
        testcase=[f"the_rules_hold/order={order}" for order in ("near", "mixed", "wild")]
        + ["a_strangers_refusal_is_not_answered"],
    )
