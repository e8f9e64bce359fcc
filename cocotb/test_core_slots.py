"""The slot table, compared packet by packet with the rules of section 5 of the specification.

The bench identifies members by their ports. Jobs share the table; each has its own slots. The bench
drives the stages of an operation as agg_commit does, and the inputs of other cycles at random.
"""

import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge

import model
import zwire
from bench import leaf, run, start

EMPTY, COLLECTING, REDUCING, REDUCED = "empty", "collecting", "reducing", "reduced"


class Slot:
    def __init__(self, vid, members):
        self.vid, self.state = vid, EMPTY
        self.held, self.done = set(), set(members)
        self.marks, self.nonfinite = [], False
        self.gen, self.stalled = 0, False

    def turn_over(self, vid):
        self.vid, self.state = vid, COLLECTING
        self.held, self.done = set(), set()
        self.marks, self.nonfinite = [], False
        self.gen, self.stalled = 1 - self.gen, False


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

    def places(self):
        """Returns the numbers of the job's slots in the table."""
        return range(self.base, self.base + self.count)

    def row(self, place):
        """Returns the row of a slot."""
        return self.base // 2 + place % self.window

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
            stall = slot.state == REDUCED and not all_done
            first, slot.stalled = stall and not slot.stalled, slot.stalled or stall
            return {"refused": zwire.CODE_NOT_READY, "timer_start": int(first)}
        slot.turn_over(vid)
        return {"turn_over": 1, "timer_start": 1} | self.store(slot, port, ecn, nonfinite)

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
        answer = {"complete": 1, "timer_stop": 1, "complete_ports": bits(slot.held), "complete_vid": slot.vid}
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


# Outputs that are 0 unless an operation says otherwise
EVENTS = [
    *("judged", "store", "turn_over", "owe", "complete", "asked", "overdue"),
    *("evict", "timer_start", "timer_stop", "acted", "finished", "refused", "answer", "notice"),
    *("verdict_valid", "store_ce", "store_nonfinite"),
]
STORED, DUPLICATE, OWED, REFUSED, FLUSHED = range(5)
CODES = [zwire.CODE_BAD_EPOCH, zwire.CODE_PAYLOAD_CRC, zwire.CODE_BAD_JOB]
ROW, ADDRESS, FLAGS, EVENT = 2, (3, 4), 5, 7  # the cycles of an operation


class Operation:
    """A packet, or an overdue slot, and what is expected of it."""

    def __init__(self, rng, rules, kind, order):
        self.rules, self.kind, self.age = rules, kind, ROW
        self.late = []  # slots whose sums end too late for this operation
        self.port = rng.choice(sorted(rules.members))
        self.target = rng.choice(rules.slots)
        steps = {"near": [0, 2, 2], "mixed": [-2, -1, 0, 0, 1, 2, 2, 2, 3, 4], "wild": [-(2**30), 0, 2, 2**30, 2**31]}
        self.vid = (self.target.vid + rng.choice(steps[order]) * rules.window) % 2**32
        self.ecn, self.nonfinite, self.writable = rng.randrange(4), rng.random() < 0.2, rng.random() < 0.9
        self.code, self.belongs, self.placed = rng.choice(CODES), rng.random() < 0.9, rng.random() < 0.8
        self.ended = kind == "refuse" and self.code == zwire.CODE_BAD_JOB and rng.random() < 0.5
        self.of_data = kind == "data" or (kind == "refuse" and rng.random() < 0.7)
        self.act_ok, self.link_down = rng.random() < 0.8, rng.random() < 0.2
        if kind != "refuse":
            self.placed = True
        self.slot = rules.place(self.target.vid if kind == "act" else self.vid)
        fields = ("number", "epoch", "rank")
        self.fields = dict(zip(fields, (rng.getrandbits(8), rng.getrandbits(16), rng.getrandbits(8))))
        self.expected = {}

    def judge(self):
        """Applies the rules, and sets the outputs expected one cycle later."""
        for slot in self.late:
            slot.state = REDUCING
        if self.kind == "act":
            self.expected = {"acted": int(self.act_ok)}
            if self.act_ok:
                self.expected |= self.rules.overdue(self.target)
        else:
            self.expected = {"judged": 1 << self.port} | self.judge_packet()
        for slot in self.late:
            slot.state = REDUCED

    def judge_packet(self):
        rules, answer = self.rules, {}
        if self.kind == "data":
            answer = rules.data(self.port, self.vid, self.ecn, self.nonfinite, self.writable)
        elif self.kind == "ask":
            answer = rules.ask(self.port, self.vid)
        elif self.kind == "finish":
            answer = {"finished": 1, "answer": (zwire.CODE_DONE, 0)}
        else:
            answer = {"refused": self.code}
        return answer | (self.verdict(answer) if self.of_data else {})

    def verdict(self, answer):
        code = answer.get("refused", zwire.CODE_DONE)
        if "store" in answer:
            result = STORED
        elif "owe" in answer:
            result = OWED
        elif code == zwire.CODE_DUPLICATE:
            result = DUPLICATE
        else:
            result = FLUSHED if self.ended or self.link_down else REFUSED
        return {"verdict_valid": 1, "verdict": (result, code, self.port, self.slot * self.placed, self.vid)}


class Bench:
    """Drives the operations of several jobs, reductions and clears."""

    def __init__(self, dut, rng, order):
        self.dut, self.rng, self.order = dut, rng, order
        self.ports, self.slots = len(dut.ports), 1 << len(dut.read_slot)
        self.jobs, self.operations, self.seen = [], [], []
        self.rests = 0  # cycles until the next operation may begin
        self.inputs = ["code", "belongs", "of_data", "placed", "ended", "writable", "nonfinite", "ecn", "number", "job"]
        self.inputs += ["epoch", "rank", "ports", "port", "member", "evicted", "partial", "act_ok", "link_down"]
        self.inputs += ["read_row", "read_slot", "read_other", "read_vid", "read_window", "read_mask", "read_first"]
        self.inputs += ["reduced_slot", "reduced_gen", "clear_slot"]
        self.pulses = ["read", "act", "refuse", "data", "ask", "finish", "reduced", "clear"]

    def begin_job(self):
        """Starts a new job if its slots are free."""
        rng = self.rng
        count = 2 << rng.randrange((self.slots // 2).bit_length())
        base = rng.randrange(0, self.slots, count)
        first = rng.choice([0, 1, 2**32 - 1, 2**32 - count, 2**31 - 1, rng.getrandbits(32)])
        members = rng.sample(range(self.ports), rng.randint(1, self.ports))
        rules = Rules(first, count // 2, members, base, partial=rng.random() < 0.5)
        if not any(set(rules.places()) & set(job.places()) for job in self.jobs):
            self.jobs.append(rules)

    async def end_job(self, job):
        """Lets the operations end, and clears the job's slots."""
        while self.operations:
            await self.cycle()
        self.jobs.remove(job)
        await self.clear(job.places())

    async def clear(self, places):
        for place in places:
            await self.cycle(clear=place)

    def begin_operation(self):
        """Starts a random operation of a job; an overdue slot's goes on alone."""
        kinds = ["data"] * 12 + ["ask"] * 4 + ["finish"] * 2 + ["refuse"] * 2 + ["act"] * 2
        kind = self.rng.choice(kinds)
        operation = Operation(self.rng, self.rng.choice(self.jobs), kind, self.order)
        self.operations.append(operation)
        self.rests = EVENT if kind == "act" else self.rng.choice([1, 1, 1, 2, 3])

    async def cycle(self, begin=False, clear=None):
        """Runs a cycle; perhaps an operation begins, and a reduction ends."""
        dut, rng = self.dut, self.rng
        if begin and not self.rests:
            self.begin_operation()
        else:
            self.rests = max(0, self.rests - 1)
        values = {name: rng.getrandbits(len(getattr(dut, name))) for name in self.inputs}
        values |= dict.fromkeys(self.pulses, 0)
        reducing = [(job, slot) for job in self.jobs for slot in job.reducing[:1]]
        if clear is not None:
            values |= {"clear": 1, "clear_slot": clear}
        elif reducing and rng.random() < 0.2:
            job, slot = rng.choice(reducing)
            job.reducing.remove(slot)
            values |= {"reduced": 1, "reduced_slot": job.place(slot.vid), "reduced_gen": slot.gen}
            slot.state = REDUCED
            for operation in self.operations:
                if ADDRESS[0] <= operation.age < EVENT:
                    operation.late.append(slot)
        for operation in self.operations:
            values |= self.stage(operation)
            if operation.age == EVENT - 1:
                operation.judge()
        for name, value in values.items():
            getattr(dut, name).value = int(value)
        await FallingEdge(dut.clk)
        judged = [operation for operation in self.operations if operation.age == EVENT]
        compare(dut, judged[0] if judged else None)
        await RisingEdge(dut.clk)
        self.seen += [operation.expected for operation in judged]
        for operation in self.operations:
            operation.age += 1
        self.operations = [operation for operation in self.operations if operation.age <= EVENT]

    def stage(self, o):
        """Returns the inputs of an operation in this cycle."""
        rules, values = o.rules, {}
        if o.age == ROW:
            values = {"read": 1, "read_row": rules.row(o.slot)}
        if o.age in ADDRESS:
            values = {"read_slot": o.slot, "read_other": o.slot ^ rules.window, "read_vid": o.vid}
            values |= {"read_window": rules.window, "read_mask": rules.count - 1, "read_first": rules.first}
        if o.age == FLAGS:
            values[o.kind] = 1
        if o.age in (FLAGS, FLAGS + 1):
            values |= {name: getattr(o, name) for name in ("code", "belongs", "of_data", "placed", "ended")}
            values |= {"writable": o.writable, "nonfinite": o.nonfinite, "ecn": o.ecn, "job": 0, **o.fields}
            values |= {"ports": 1 << o.port, "port": o.port, "partial": rules.partial}
            values |= {"member": bits(rules.members), "evicted": bits(rules.evicted)}
        if o.age == FLAGS + 1:
            values |= {"act_ok": o.act_ok, "link_down": o.link_down}
        return values


def compare(dut, operation):
    """Checks this cycle's outputs; operation is the one in C7, if any."""
    expected = operation.expected if operation else {}

    def shows(*names):
        return tuple(int(getattr(dut, name).value) for name in names)

    what = f"{operation.kind} {operation.vid} from {operation.port}: want {expected}" if operation else "no operation"
    for name in EVENTS:
        want = expected.get(name, 0)
        want = int(name in expected) if name in ("refused", "answer", "notice") else want
        assert int(getattr(dut, name).value) == want, f"{name}, {what}"
    for name in ("complete_ports", "complete_vid", "complete_ecn", "complete_nonfinite"):
        if name in expected:
            assert shows(name) == (expected[name],), f"{name}, {what}"
    if "refused" in expected:
        answered = operation.belongs and "owe" not in expected and expected["refused"] != zwire.CODE_PAYLOAD_CRC
        assert shows("refused_code", "refused_answer") == (expected["refused"], int(answered)), what
    if "answer" in expected:
        assert shows("answer_code", "answer_ports") == expected["answer"], what
    if "notice" in expected:
        assert shows("notice_code", "notice_vid", "notice_ports", "answer_ports") == expected["notice"], what
    if "verdict" in expected:
        verdict = ("verdict_result", "verdict_code", "verdict_port", "verdict_slot", "verdict_vid")
        assert shows(*verdict) == expected["verdict"], what
    if operation:
        assert shows("e_slot", "e_job", "e_vid", "e_port") == (operation.slot, 0, operation.vid, operation.port), what
        fields = operation.fields
        assert shows("e_number", "e_epoch", "e_rank") == (fields["number"], fields["epoch"], fields["rank"]), what
    if "owe" in expected or "store" in expected:
        assert shows("e_gen") == (operation.rules.of(operation.vid).gen,), what


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(order=["near", "mixed", "wild"])
async def the_rules_hold(dut, order):
    """Random packets of several jobs with any window, every second cycle at most, and overdue slots;
    checks all outputs in every cycle.

    Jobs end and begin. Reductions end at any time.
    """
    rng = random.Random(order)
    bench = Bench(dut, rng, order)
    for name in bench.pulses:
        getattr(dut, name).value = 0
    await start(dut)
    await bench.clear(range(bench.slots))
    most = 0
    while len(bench.seen) < 2000:
        if rng.random() < 0.05:
            bench.begin_job()
        most = max(most, len(bench.jobs))
        ending = [job for job in bench.jobs if not job.members or rng.random() < 0.002 / len(bench.jobs)]
        # A job whose members were all evicted has no senders.
        for job in ending:
            await bench.end_job(job)
        await bench.cycle(begin=bool(bench.jobs))
    seen = bench.seen
    assert most > 1 or bench.slots == 2
    several = bench.ports > 1  # a single port never waits for others
    counts = {name: sum(name in answer for answer in seen) for name in ("store", "complete", "overdue", "evict")}
    assert counts["store"] > 100 and counts["complete"] > 25, counts
    assert counts["overdue"] > 20 * several and counts["evict"] >= 3 * several, counts
    early = sum("overdue" in answer and "complete" in answer for answer in seen)
    assert early >= 3 * several, "few slots were closed with what they held"
    results = {answer["verdict"][0] for answer in seen if "verdict" in answer}
    assert results == {STORED, DUPLICATE, OWED, REFUSED, FLUSHED}


@pytest.mark.parametrize("ports, window", [(1, 1), (3, 4), (5, 2), (4, 8)])
def test_agg_slots(ports, window):
    run(
        "agg_slots",
        sources=[leaf("agg_slots"), leaf("agg_replies")],
        parameters={
            "PORTS": ports,
            "PORT_BITS": max(1, (ports - 1).bit_length()),
            "SLOT_BITS": (2 * window - 1).bit_length(),
            "ROW_BITS": max(1, (window - 1).bit_length()),
        },
        testcase=[f"the_rules_hold/order={order}" for order in ("near", "mixed", "wild")],
    )
