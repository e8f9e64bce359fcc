"""Egress, leaf by leaf: owed results, turns, statuses, packets, the ports' queues."""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, Timer

import zwire
from bench import leaf, run, start
from streams import PATTERNS, StreamSink


def bits(ports):
    return sum(1 << p for p in ports)


# agg_owed


class Owed:
    """The expected state of agg_owed: owed and sent ports per slot, and the order of reduction."""

    def __init__(self, slots, members, held_up):
        self.members = members  # ports
        self.held_up = held_up  # whether ports are sometimes not ready
        self.owed = {s: set() for s in range(slots)}
        self.sent = {s: set() for s in range(slots)}
        self.fresh = []  # slots whose result was sent to nobody, in the order of reduction
        self.unsent = set()  # slots that turned over unsent: any order is allowed
        self.free = set(range(slots))  # slots that have turned over

    def check_pick(self, dut, ready):
        """Checks that the pick serves owed and ready ports: all of them if ports are always
        ready."""
        slot, receivers = int(dut.pick_slot.value), int(dut.pick_receivers.value)
        can = bits(self.owed[slot] & ready)
        assert receivers and not receivers & ~can, f"slot {slot}: {receivers:#x}, want {can:#x}"
        assert receivers == can or self.held_up, f"slot {slot}: {receivers:#x}, want {can:#x}"
        again = {p for p in self.sent[slot] if receivers >> p & 1}
        assert int(dut.pick_replay.value) == int(bool(again))
        if slot in self.fresh and slot not in self.unsent:
            assert slot == next(s for s in self.fresh if s not in self.unsent), "not in order"
        return slot, {p for p in self.members if receivers >> p & 1}

    def take(self, slot, receivers):
        self.owed[slot] -= receivers
        self.sent[slot] |= receivers
        self.unsent.discard(slot)
        if slot in self.fresh:
            self.fresh.remove(slot)


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(ready=["all", "one_seldom", "any"], stall=list(PATTERNS))
async def nothing_owed_is_forgotten(dut, ready, stall):
    """Random results, repeats and turnovers: every pick is right, and nothing stays owed."""
    rng = random.Random(f"{ready} {stall}")
    stall = PATTERNS[stall]()
    ports = len(dut.ready)
    for name in ("flush", "begun", "turn_over", "owe", "pick_take", "ready"):
        getattr(dut, name).value = 0
    slots = rng.choice([2 << i for i in range(len(dut.slot))])  # of the job
    members = set(rng.sample(range(ports), rng.randint(1, ports)))
    dut.slot_mask.value = slots - 1
    dut.member.value = bits(members)
    await start(dut)
    model = Owed(slots, members, held_up=ready != "all")
    for cycle in range(800):
        busy = cycle < 600
        chance = {"all": 1.0, "any": 0.5, "one_seldom": 1.0}[ready] if busy else 1.0
        seldom = min(members) if ready == "one_seldom" and busy else None
        now = {p for p in range(ports) if rng.random() < (0.05 if p == seldom else chance)}
        await cycle_of(dut, rng, model, now, busy, not next(stall))
    assert not any(model.owed.values()), f"still owed: {model.owed}"


async def cycle_of(dut, rng, model, ready, busy, take):
    """Runs a cycle in which a result may begin, a member repeat, a slot turn over, or a pick be
    taken."""
    dut.ready.value = bits(ready)
    dut.begun.value = dut.turn_over.value = dut.owe.value = dut.pick_take.value = 0
    begun = rng.choice(sorted(model.free)) if busy and model.free and rng.random() < 0.3 else None
    if begun is not None:
        dut.begun.value, dut.begun_slot.value = 1, begun
    reduced = sorted(set(model.owed) - model.free)
    event, slot, port = rng.choice(["owe", "turn_over", "none", "none"]), None, rng.choice(sorted(model.members))
    if busy and reduced and event != "none":
        slot = rng.choice(reduced)
        # A slot may turn over although it owes results: all members are done with it.
        getattr(dut, event).value, dut.slot.value, dut.port.value = 1, slot, 1 << port
    await FallingEdge(dut.clk)
    if int(dut.pick_valid.value):
        picked, receivers = model.check_pick(dut, ready)
        if take:
            dut.pick_take.value = 1
            model.take(picked, receivers)
    await RisingEdge(dut.clk)
    if slot is not None and event == "owe":
        model.owed[slot].add(port)
    elif slot is not None:
        model.owed[slot] = set()
        model.free.add(slot)
        if slot in model.fresh:
            model.fresh.remove(slot)
            model.unsent.add(slot)
    if begun is not None:
        model.free.discard(begun)
        model.owed[begun], model.sent[begun] = set(model.members), set()
        model.fresh.append(begun)


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(wait=list(range(4)))
async def a_port_that_was_held_up_gets_its_results_in_order(dut, wait):
    """A port that was blocked gets its results in order; a replay precedes a fresh result."""
    slots, ports = 1 << len(dut.slot), len(dut.ready)
    for name in ("flush", "begun", "turn_over", "owe", "pick_take", "ready"):
        getattr(dut, name).value = 0
    dut.slot_mask.value = slots - 1
    dut.member.value = everyone = (1 << ports) - 1
    await start(dut)
    order = [(slots // 2 + i) % slots for i in range(slots)]
    for slot in order:
        dut.turn_over.value, dut.slot.value = 1, slot
        dut.begun.value, dut.begun_slot.value = 0, slot
        await RisingEdge(dut.clk)
        dut.turn_over.value, dut.begun.value = 0, 1
        await RisingEdge(dut.clk)
    dut.begun.value = 0
    assert await take_all(dut, everyone & ~1) == [(s, everyone & ~1, 0) for s in order]
    await ClockCycles(dut.clk, wait)
    assert await take_all(dut, everyone) == [(s, 1, 0) for s in order]
    dut.owe.value, dut.slot.value, dut.port.value = 1, order[1], 2
    await RisingEdge(dut.clk)
    dut.owe.value, dut.turn_over.value, dut.slot.value = 0, 1, order[0]
    await RisingEdge(dut.clk)
    dut.turn_over.value = 0
    dut.ready.value = 0
    dut.begun.value, dut.begun_slot.value = 1, order[0]
    await RisingEdge(dut.clk)
    dut.begun.value = 0
    await ClockCycles(dut.clk, 3 * slots)
    dut.ready.value = everyone
    await ClockCycles(dut.clk, 3 * slots)  # not taking picks yet lets the scan find the replay
    assert await take_all(dut, everyone) == [(order[1], 2, 1), (order[0], everyone, 0)]


async def take_all(dut, ready):
    """Takes every pick until none has come for long; returns (slot, receivers, replay) of each."""
    dut.ready.value = ready
    taken, idle = [], 0
    while idle < 4 << len(dut.slot):
        await FallingEdge(dut.clk)
        valid = int(dut.pick_valid.value)
        dut.pick_take.value = valid
        if valid:
            taken.append((int(dut.pick_slot.value), int(dut.pick_receivers.value), int(dut.pick_replay.value)))
        idle = 0 if valid else idle + 1
        await RisingEdge(dut.clk)
    dut.pick_take.value = 0
    return taken


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_flush_drops_what_is_owed(dut):
    for name in ("flush", "begun", "turn_over", "owe", "pick_take", "ready"):
        getattr(dut, name).value = 0
    dut.slot_mask.value = (1 << len(dut.slot)) - 1
    dut.member.value = 1
    await start(dut)
    dut.begun.value, dut.begun_slot.value = 1, 1
    await RisingEdge(dut.clk)
    dut.begun.value, dut.flush.value, dut.ready.value = 0, 1, 1
    await FallingEdge(dut.clk)
    assert not int(dut.pick_valid.value), "a result of the job that ends is still begun"
    await RisingEdge(dut.clk)
    dut.flush.value = 0
    assert await take_all(dut, 1) == []


@pytest.mark.parametrize("ports, slot_bits", [(1, 1), (3, 2), (5, 3)])
def test_agg_owed(ports, slot_bits):
    readiness = ["all", "one_seldom", "any"]
    run(
        "agg_owed",
        [leaf("agg_owed"), leaf("agg_slot_fifo")],
        parameters={"PORTS": ports, "SLOT_BITS": slot_bits},
        testcase=[f"nothing_owed_is_forgotten/ready={r}/stall={s}" for r in readiness for s in PATTERNS]
        + ["a_flush_drops_what_is_owed"]
        + [f"a_port_that_was_held_up_gets_its_results_in_order/wait={w}" for w in range(4) if ports > 1],
    )


# agg_turns


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(stall=list(PATTERNS))
async def jobs_take_turns_to_send(dut, stall):
    """A pick is some job's current offer; while a job has a result, no other job sends two."""
    rng = random.Random(stall)
    stall = PATTERNS[stall]()
    jobs = len(dut.job_valid)
    widths = {name: len(getattr(dut, f"pick_{name}")) for name in ("slot", "receivers", "replay")}
    dut.job_valid.value = dut.pick_take.value = 0
    await start(dut)
    offers, in_front = [None] * jobs, [set() for _ in range(jobs)]
    for _ in range(600):
        for job in range(jobs):
            # A job's offer may change, or vanish when the job ends.
            if rng.random() < 0.4:
                offers[job] = {n: rng.getrandbits(w) for n, w in widths.items()} if rng.random() < 0.9 else None
        dut.job_valid.value = bits(job for job in range(jobs) if offers[job])
        for name, width in widths.items():
            value = sum((offers[job] or {}).get(name, 0) << width * job for job in range(jobs))
            getattr(dut, f"job_{name}").value = value
        await FallingEdge(dut.clk)
        offered = {job for job in range(jobs) if offers[job]}
        assert int(dut.pick_valid.value) == int(bool(offered))
        take = bool(offered) and not next(stall)
        dut.pick_take.value = int(take)
        await Timer(1, "ns")
        picked = int(dut.pick_job.value)
        if offered:
            assert {name: int(getattr(dut, f"pick_{name}").value) for name in widths} == offers[picked]
        assert int(dut.job_take.value) == (1 << picked if take else 0)
        for job in range(jobs):
            if job not in offered or (take and job == picked):
                in_front[job] = set()
            elif take:
                assert picked not in in_front[job], f"job {job} was passed over"
                in_front[job].add(picked)
        if take:
            offers[picked] = None
        await RisingEdge(dut.clk)


@pytest.mark.parametrize("jobs, job_bits", [(1, 1), (2, 1), (8, 3)])
def test_agg_turns(jobs, job_bits):
    run(
        "agg_turns",
        parameters={"PORTS": 3, "JOBS": jobs, "JOB_BITS": job_bits, "SLOT_BITS": 4},
        testcase=[f"jobs_take_turns_to_send/stall={s}" for s in PATTERNS],
    )


# agg_status

PAUSE = 1024  # least cycles between two answered refusals


class Statuses:
    """The expected packets of each port: its latest status, and the latest notice."""

    def __init__(self, jobs):
        self.jobs = jobs
        self.latest, self.told = {}, {}  # by port
        self.refused = -PAUSE
        self.picked = []  # "status" or "notice", in order of sending

    def add(self, kind, cycle, port, status, drop):
        """Adds an answer or a refusal; a job that ends in the same cycle drops it."""
        if kind == "refuse":
            kept = cycle - self.refused >= PAUSE
            self.refused = cycle if kept else self.refused
            status = status | {"mask": 0}
        else:
            kept = kind == "answer"
        if kept and not self.ends(status, drop):
            self.latest[port] = status

    def ends(self, status, drop):
        """Ends jobs; only the low bits of a status's job number count."""
        return drop >> status["job"] % self.jobs & 1

    def drop(self, drop):
        for kept in (self.latest, self.told):
            for port in [p for p, status in kept.items() if self.ends(status, drop)]:
                del kept[port]

    def check(self, port, shown, ready):
        """Checks that the pick is eligible, and that statuses and the notice take turns; returns
        which it is."""
        can_send, can_tell = ({p for p in kept if ready >> p & 1} for kept in (self.latest, self.told))
        is_status = port in can_send and shown == self.latest[port]
        assert is_status or (port in can_tell and shown == self.told[port]), f"port {port}: {shown}"
        kind = "status" if is_status else "notice"
        assert not (can_send and can_tell and self.picked[-1:] == [kind]), "no turn was taken"
        return kind

    def take(self, kind, port):
        del (self.latest if kind == "status" else self.told)[port]
        self.picked.append(kind)


STATUS = ["port", "job", "epoch", "rank", "code", "vid", "mask"]


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(stall=list(PATTERNS))
async def every_port_gets_its_latest_status(dut, stall):
    """Every port gets its latest status and the latest notice, except those of a job that ended."""
    rng = random.Random(stall)
    stall = PATTERNS[stall]()
    ports, jobs = len(dut.ready), len(dut.drop)
    for name in ("drop", "answer", "refuse", "notice", "ready", "pick_take"):
        getattr(dut, name).value = 0
    await start(dut)
    statuses, often, cut_off = Statuses(jobs), 0.2, 0
    for cycle in range(3000):
        if cycle % 500 == 0:
            often = rng.choice([0.05, 0.2, 0.6])
        kind = rng.choice(["answer"] * 4 + ["refuse"] * 4 + ["notice"] * 2) if rng.random() < often else None
        drop = rng.getrandbits(jobs) if rng.random() < 0.06 else 0
        ready = rng.getrandbits(ports)
        dut.drop.value, dut.ready.value = drop, ready
        drive = drive_notice if kind == "notice" else drive_status
        added = drive(dut, rng, kind)
        await FallingEdge(dut.clk)
        can = any(ready >> p & 1 for p in (*statuses.latest, *statuses.told))
        assert int(dut.pick_valid.value) == int(can)
        take = can and not next(stall)
        dut.pick_take.value = int(take)
        if can:
            at = int(dut.pick_port.value)
            shown = {n: int(getattr(dut, f"pick_{n}").value) for n in STATUS if n != "port"}
            what = statuses.check(at, shown, ready)
            if take:
                statuses.take(what, at)
        if kind == "notice":
            cut_off += bool(statuses.told)
            statuses.told = added
        statuses.drop(drop)
        if kind != "notice":
            port, status = added
            statuses.add(kind, cycle, port, status, drop)
        await RisingEdge(dut.clk)
    assert statuses.picked.count("status") > 50 and statuses.picked.count("notice") > 10
    assert cut_off > 5 or ports == 1, "no notice replaced what was not sent of the last one"


def drive_status(dut, rng, kind):
    """Drives an answer or a refusal to a port, or none; returns both."""
    fields = {name: rng.getrandbits(len(getattr(dut, name))) for name in ("job", "epoch", "rank", "vid")}
    port, code, mask = rng.randrange(len(dut.ready)), rng.getrandbits(8), rng.getrandbits(len(dut.ready))
    dut.port.value = port
    dut.answer.value, dut.refuse.value, dut.notice.value = int(kind == "answer"), int(kind == "refuse"), 0
    dut.answer_code.value = dut.refuse_code.value = code
    dut.answer_mask.value = mask
    for name, value in fields.items():
        getattr(dut, name).value = value
    return port, fields | {"code": code, "mask": mask}


def drive_notice(dut, rng, _):
    """Drives a notice to some ports, with their ranks; returns each port's expected notice."""
    ports, jobs = len(dut.ready), len(dut.drop)
    status = {"job": rng.randrange(jobs), "epoch": rng.getrandbits(16)}
    status |= {"vid": rng.getrandbits(32), "code": rng.getrandbits(8)}
    to, mask, ranks = rng.getrandbits(ports), rng.getrandbits(ports), [rng.getrandbits(8) for _ in range(ports)]
    dut.answer.value, dut.refuse.value, dut.notice.value = 0, 0, 1
    dut.notice_ports.value, dut.answer_mask.value = to, mask
    dut.notice_ranks.value = sum(rank << 8 * p for p, rank in enumerate(ranks))
    for name, value in status.items():
        getattr(dut, f"notice_{name}").value = value
    return {p: status | {"mask": mask, "rank": ranks[p]} for p in range(ports) if to >> p & 1}


@pytest.mark.parametrize("ports, port_bits, jobs, job_bits", [(1, 1, 1, 1), (5, 3, 1, 1), (5, 3, 4, 2)])
def test_agg_status(ports, port_bits, jobs, job_bits):
    run(
        "agg_status",
        parameters={"PORTS": ports, "PORT_BITS": port_bits, "JOBS": jobs, "JOB_BITS": job_bits},
        testcase=[f"every_port_gets_its_latest_status/stall={s}" for s in PATTERNS],
    )


# agg_egress


def field(user, name):
    lsb, width = zwire.FIELDS[name]
    return user >> lsb & (1 << width) - 1


class Egress:
    """The surroundings of agg_egress: picks that come and go, and a cache that fills up."""

    def __init__(self, dut, rng, idle):
        self.dut, self.rng, self.idle = dut, rng, idle
        self.result = self.status = None
        self.expected = []  # received packets: kind, fields, beats
        self.reads = []  # slot and beat of every read
        self.sent = 0

    async def run(self, count):
        dut = self.dut
        while self.sent < count:
            self.offer()
            written = not next(self.idle)
            dut.rd_written.value = int(written)
            await FallingEdge(dut.clk)
            if int(dut.rd_en.value):
                assert written
                self.reads.append((int(dut.rd_slot.value), int(dut.rd_beat.value)))
            if int(dut.result_take.value):
                assert not int(dut.status_take.value)
                self.expected.append(("result", self.result))
                self.result = None
                self.sent += 1
            if int(dut.status_take.value):
                self.expected.append(("status", self.status))
                self.status = None
                self.sent += 1
            await RisingEdge(dut.clk)

    def offer(self):
        """Makes new offers where none are pending; a missing offer has random fields."""
        if self.result is None and self.rng.random() < 0.4:
            self.result = self.show("result", RESULT)
        if self.status is None and self.rng.random() < 0.2:
            self.status = self.show("status", STATUS)
        for what, names, pick in (("result", RESULT, self.result), ("status", STATUS, self.status)):
            getattr(self.dut, f"{what}_valid").value = int(pick is not None)
            if pick is None:
                self.show(what, names)

    def show(self, what, names):
        """Drives random fields of a result or a status, and returns them."""
        handles = {name: getattr(self.dut, f"{what}_{name}") for name in names}
        pick = {name: self.rng.getrandbits(len(handle)) for name, handle in handles.items()}
        if what == "status":
            pick["port"] %= len(self.dut.result_ports)
        for name, handle in handles.items():
            handle.value = pick[name]
        return pick


RESULT = ["slot", "last", "ports", "job", "epoch", "chunk", "vid", "ecn", "nonfinite", "partial", "mask", "receivers"]
RESULT += ["replay"]


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def packets_are_what_was_picked(dut, idle, stall):
    """Headers, beats and order match the picks; idle: cycles in which the cache lacks the next
    beat."""
    rng = random.Random(f"{idle} {stall}")
    for name in ("result_valid", "status_valid", "rd_written"):
        getattr(dut, name).value = 0
    sink = StreamSink(dut, "m_axis", PATTERNS[stall]())
    await start(dut)
    bench = Egress(dut, rng, PATTERNS[idle]())
    await bench.run(40)
    dut.result_valid.value = dut.status_valid.value = 0
    dut.rd_written.value = 1
    for kind, picked in bench.expected:
        packet = await sink.packet()
        check = check_result if kind == "result" else check_status
        check(packet, picked)
    wanted = [(p["slot"], b) for kind, p in bench.expected if kind == "result" for b in range(p["last"] + 1)]
    assert bench.reads == wanted[: len(bench.reads)] and len(wanted) - len(bench.reads) <= 1 << len(dut.result_last)
    kinds = [kind for kind, _ in bench.expected]
    assert {"result", "status"} <= set(kinds)


def check_result(packet, picked):
    assert len(packet) == picked["last"] + 1 and len({b["tuser"] for b in packet}) == 1
    assert all(b["tkeep"] == 15 and b["tdest"] == picked["ports"] for b in packet)
    user = packet[0]["tuser"]
    want = {
        "version": zwire.VERSION,
        "kind": zwire.KIND_REPLAY if picked["replay"] else zwire.KIND_RESULT,
        "flags": picked["ecn"] | picked["nonfinite"] * zwire.FLAG_NONFINITE | picked["partial"] * zwire.FLAG_PARTIAL,
        "format": zwire.FORMAT_FP32,
        "rank": 0,
        "code": 0,
        "length": picked["chunk"],
    }
    want |= {name: picked[name] for name in ("job", "epoch", "vid", "mask", "receivers")}
    assert {n: field(user, n) for n in want} == want


def check_status(packet, picked):
    (beat,) = packet
    assert beat["tkeep"] == 0 and beat["tdest"] == 1 << picked["port"]
    want = {"version": zwire.VERSION, "kind": zwire.KIND_STATUS, "flags": 0, "format": 0, "length": 0, "receivers": 0}
    want |= {n: picked[n] for n in ("job", "epoch", "rank", "code", "vid", "mask")}
    assert {n: field(beat["tuser"], n) for n in want} == want


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def nothing_starves(dut):
    """Endless statuses and results take turns; packets follow one another without a bubble."""
    for handle in [getattr(dut, f"result_{n}") for n in RESULT] + [getattr(dut, f"status_{n}") for n in STATUS]:
        handle.value = 0
    dut.result_valid.value = dut.status_valid.value = dut.rd_written.value = 1
    sink = StreamSink(dut, "m_axis")
    await start(dut)
    await ClockCycles(dut.clk, 30)
    kinds = [field(b["tuser"], "kind") for b in sink.beats[1:21]]
    assert kinds[::2] != kinds[1::2] and len(set(kinds[::2])) == len(set(kinds[1::2])) == 1
    assert sink.taken_at[20] - sink.taken_at[0] == 20, "a bubble"


@pytest.mark.parametrize("ports, port_bits, slot_bits, index_bits", [(1, 1, 1, 1), (5, 3, 3, 2)])
def test_agg_egress(ports, port_bits, slot_bits, index_bits):
    run(
        "agg_egress",
        parameters={
            "PORTS": ports,
            "PORT_BITS": port_bits,
            "SLOT_BITS": slot_bits,
            "INDEX_BITS": index_bits,
            "KEEP_BITS": 4,
        },
        testcase=[f"packets_are_what_was_picked/idle={i}/stall={s}" for i in PATTERNS for s in PATTERNS]
        + ["nothing_starves"],
    )


# agg_port_queue


class Announced:
    """As in the core: announces packets while ready is high, and sends their beats in order, each
    packet some cycles after its announcement."""

    def __init__(self, dut, rng, idle):
        self.dut, self.rng, self.idle = dut, rng, idle
        self.largest = int(dut.BEATS.value)
        self.packets = []  # announced: the cycle in which the first beat may come, and the beats
        self.left = []  # beats of the packet that arrives
        self.expected = []
        self.announced = self.most = 0

    async def run(self, count):
        dut, cycle = self.dut, 0
        while self.announced < count or self.packets or self.left:
            # In the cycle of a start, ready may be sampled for the next one already.
            start = int(dut.ready.value) and self.announced < count and not next(self.idle)
            dut.start.value = int(start)
            if not self.left and self.packets and self.packets[0][0] <= cycle:
                self.left = self.packets.pop(0)[1]
            self.drive(self.left.pop(0) if self.left and self.rng.random() < 0.95 else None)
            if start:
                self.announced += 1
                self.packets.append((cycle + self.rng.randint(1, 6), self.packet()))
            self.most = max(self.most, len(self.packets))
            await RisingEdge(dut.clk)
            await FallingEdge(dut.clk)
            cycle += 1
        dut.start.value = 0
        self.drive(None)

    def packet(self):
        """Returns the beats of a packet, of any size."""
        rng = self.rng
        payload = rng.random() < 0.8
        count = rng.choice([1, self.largest, rng.randint(1, self.largest)]) if payload else 1
        user = rng.getrandbits(8)
        beats = []
        for i in range(count):
            beat = {"tdata": rng.getrandbits(32), "tuser": user, "tlast": int(i == count - 1)}
            beats.append((payload, beat))
            zero = {} if payload else {"tdata": 0}
            self.expected.append(beat | {"tkeep": 15 if payload else 0} | zero)
        return beats

    def drive(self, item):
        dut = self.dut
        dut.s_axis_tvalid.value = int(item is not None)
        payload, beat = item or (self.rng.random() < 0.5, {})
        for name in ("tdata", "tuser", "tlast"):
            handle = getattr(dut, f"s_axis_{name}")
            handle.value = beat.get(name, self.rng.getrandbits(len(handle)))
        dut.s_axis_tpayload.value = int(payload)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def an_announced_packet_has_room(dut, idle, stall):
    """Packets announced while ready is high come out whole and in order, with their headers,
    whatever the receiver does. Lanes without payload are zero."""
    dut.s_axis_tvalid.value = dut.start.value = 0
    sink = StreamSink(dut, "m_axis", PATTERNS[stall]())
    zeros = cocotb.start_soon(check_empty_lanes(dut))
    await start(dut)
    await FallingEdge(dut.clk)
    bench = Announced(dut, random.Random(f"{idle} {stall}"), PATTERNS[idle]())
    await bench.run(200)
    assert await sink.take(len(bench.expected)) == bench.expected
    assert bench.most > 1 or idle != "never", "no packet was announced before its predecessor came"
    zeros.cancel()


async def check_empty_lanes(dut):
    """Checks tdata of beats without payload, which the sink does not look at."""
    while True:
        await FallingEdge(dut.clk)
        if dut.m_axis_tvalid.value == 1 and dut.m_axis_tkeep.value == 0:
            assert dut.m_axis_tdata.value == 0


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(size=["one", "largest"])
async def packets_follow_without_a_bubble(dut, size):
    """A packet is announced as soon as its beats can follow its predecessor's, six cycles before
    the first of them: a beat per cycle, each in the cycle after it came."""
    beats = int(dut.BEATS.value) if size == "largest" else 1
    dut.s_axis_tvalid.value = dut.start.value = 0
    dut.s_axis_tpayload.value = 1
    sink = StreamSink(dut, "m_axis")
    await start(dut)
    await FallingEdge(dut.clk)
    await ClockCycles(dut.clk, 2)
    came = []
    for cycle in range(40 * beats):
        await FallingEdge(dut.clk)
        begins = cycle % beats == 0
        assert dut.ready.value == 1 or not begins, f"not ready in cycle {cycle}"
        dut.start.value = int(begins)
        number = cycle - 6
        dut.s_axis_tvalid.value = int(number >= 0)
        dut.s_axis_tdata.value = max(number, 0)
        dut.s_axis_tuser.value = max(number, 0) // beats % 256
        dut.s_axis_tlast.value = int(number % beats == beats - 1)
        if number >= 0:
            came.append(number)
            if number > 0:
                assert (dut.m_axis_tvalid.value, dut.m_axis_tdata.value) == (1, number - 1)
        await RisingEdge(dut.clk)
    dut.start.value = dut.s_axis_tvalid.value = 0
    taken = await sink.take(len(came))
    assert [(b["tdata"], b["tuser"]) for b in taken] == [(n, n // beats % 256) for n in came]
    assert sink.taken_at[len(came) - 1] - sink.taken_at[0] == len(came) - 1


@pytest.mark.parametrize("beats, depth_bits", [(1, 4), (4, 6), (5, 7)])
def test_agg_port_queue(beats, depth_bits):
    run(
        "agg_port_queue",
        parameters={"BEAT_BITS": 32, "USER_BITS": 8, "BEATS": beats, "DEPTH_BITS": depth_bits, "PACKET_BITS": 4},
        testcase=[f"an_announced_packet_has_room/idle={i}/stall={s}" for i in PATTERNS for s in PATTERNS]
        + [f"packets_follow_without_a_bubble/size={s}" for s in ("one", "largest")],
    )


def test_agg_port_queue_when_tight():
    """Room for two of the largest packets, or four of any size."""
    run(
        "agg_port_queue",
        parameters={"BEAT_BITS": 32, "USER_BITS": 8, "BEATS": 4, "DEPTH_BITS": 3, "PACKET_BITS": 2},
        testcase=[f"an_announced_packet_has_room/idle={i}/stall={s}" for i in ("never", "bursts") for s in PATTERNS],
    )
