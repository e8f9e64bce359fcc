"""Egress, leaf by leaf: owed results, turns, statuses, packets, the ports' queues."""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, Timer

import zwire
from bench import leaf, run, start
from streams import PATTERNS, StreamSink, StreamSource


def bits(ports):
    return sum(1 << p for p in ports)


# agg_owed

NOTING = 60  # cycles, more than it takes to note all the ports that repeat


class Owed:
    """agg_owed with its surroundings: slots that turn over and begin, ports that repeat, picks.

    A pick is decided in a cycle with decide and shown in the next. If its slot begins in one of
    these two cycles, the egress cancels it. Its receivers are starting, and not ready, in the next
    two cycles with decide.
    """

    def __init__(self, dut, rng, slots, members):
        self.dut, self.rng, self.slots = dut, rng, slots
        self.members = members  # ports
        self.cycle = 0
        self.gens = dict.fromkeys(range(slots), 0)
        self.owed = {s: set() for s in range(slots)}
        self.sent = {s: set() for s in range(slots)}
        self.fresh = []  # slots whose result was sent to nobody, in the order of their beginning
        self.unsent = set()  # slots that turned over unsent: any order is allowed
        self.began, self.turned = {}, {}  # by slot: the cycle of the last event
        self.noted = {}  # by slot and port: the cycle in which it repeated
        self.always_ready = False
        self.picked = []  # slot, receivers, replay
        self.picked_at = {}  # by port: the cycle in which its last pick was shown
        self.last_pick = 0  # the cycle of the last one

    async def start(self):
        dut = self.dut
        for name in ("clear", "begun", "turn_over", "owe", "pick_ready", "ready", "starting", "decide"):
            getattr(dut, name).value = 0
        dut.slot_mask.value, dut.member.value, dut.flush.value = self.slots - 1, bits(self.members), 1
        await start(dut)
        await self.flush()

    async def flush(self):
        """Ends the job: empties the rows of all its slots."""
        dut = self.dut
        dut.flush.value = 1
        for slot in range(self.slots):
            dut.clear.value, dut.clear_slot.value = 1, slot
            await self.step(set())
        dut.clear.value = 0
        for _ in range(4):
            await self.step(set())
        dut.flush.value = 0
        self.began, self.turned, self.fresh, self.unsent, self.noted = {}, {}, [], set(), {}
        for slot in range(self.slots):
            self.owed[slot], self.sent[slot] = set(), set()

    def may_begin(self):
        return [s for s, at in self.turned.items() if s not in self.began and at <= self.cycle - 2]

    def may_turn_over(self):
        return [s for s in range(self.slots) if s not in self.turned or self.began.get(s, self.cycle) <= self.cycle - 6]

    def reduced(self):
        return [s for s, at in self.began.items() if at <= self.cycle - 6]

    async def step(self, ready, begin=None, turn_over=None, owe=None, take=True, starting=()):
        """Runs a cycle. owe: slot and port; starting: ports that were just sent other packets."""
        dut = self.dut
        starting = {p for p, at in self.picked_at.items() if at >= self.cycle - 3} | set(starting)
        ready = set(ready) - starting
        decide = self.cycle % 2
        dut.decide.value, dut.pick_ready.value = decide, int(decide and take)
        dut.ready.value, dut.starting.value = bits(ready), bits(starting)
        dut.begun.value, dut.turn_over.value, dut.owe.value = (int(e is not None) for e in (begin, turn_over, owe))
        if begin is not None:
            dut.begun_slot.value, dut.begun_gen.value = begin, self.gens[begin]
        if turn_over is not None:
            self.gens[turn_over] ^= 1
            dut.slot.value, dut.gen.value = turn_over, self.gens[turn_over]
        if owe is not None:
            dut.slot.value, dut.port.value = owe[0], 1 << owe[1]
        await FallingEdge(dut.clk)
        if int(dut.pick_valid.value):
            self.check(begin)
        await RisingEdge(dut.clk)
        if begin is not None:
            self.began[begin] = self.cycle
            self.owed[begin], self.sent[begin] = set(self.members), set()
            self.fresh = [s for s in self.fresh if s != begin] + [begin]
        if turn_over is not None:
            if turn_over in self.fresh:
                self.unsent.add(turn_over)
            self.turned[turn_over] = self.cycle
            self.began.pop(turn_over, None)
        if owe is not None:
            self.owed[owe[0]].add(owe[1])
            self.noted[owe] = self.cycle
        self.was_ready, self.took = set(ready), decide and take
        self.cycle += 1

    def check(self, begin):
        """Checks a pick: owed, its receivers ready in the cycle before, a replay if one had it."""
        slot = int(self.dut.pick_slot.value)
        receivers = {p for p in range(len(self.dut.ready)) if int(self.dut.pick_receivers.value) >> p & 1}
        assert self.took and receivers and receivers <= self.was_ready
        self.picked_at |= dict.fromkeys(receivers, self.cycle)
        if begin == slot or self.began.get(slot) == self.cycle - 1:
            return  # cancelled
        assert slot in self.began or self.turned[slot] >= self.cycle - 3, f"slot {slot} has no result"
        assert receivers <= self.owed[slot], f"slot {slot}: {receivers} of {self.owed[slot]}"
        if self.always_ready:
            can = {p for p in self.owed[slot] if self.noted.get((slot, p), -NOTING) <= self.cycle - NOTING}
            can &= self.was_ready
            assert can <= receivers, f"slot {slot}: {receivers}, want {can}"
        if slot in self.fresh and slot not in self.unsent:
            assert slot == next(s for s in self.fresh if s not in self.unsent), "not in order"
        self.unsent.discard(slot)
        replay = int(self.dut.pick_replay.value)
        assert replay == int(bool(receivers & self.sent[slot]))
        self.owed[slot] -= receivers
        self.sent[slot] |= receivers
        if slot in self.fresh:
            self.fresh.remove(slot)
        self.picked.append((slot, bits(receivers), replay))
        self.last_pick = self.cycle

    async def rest(self, ready):
        """Takes every pick until none has come for long; returns them."""
        self.picked, idle = [], 0
        while idle < 10 * self.slots + 40:
            count = len(self.picked)
            await self.step(ready)
            idle = 0 if len(self.picked) > count else idle + 1
        return self.picked


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(ready=["all", "one_seldom", "any"], stall=list(PATTERNS))
async def nothing_owed_is_forgotten(dut, ready, stall):
    """Random results, repeats and turnovers: every pick is right, and nothing stays owed."""
    rng = random.Random(f"{ready} {stall}")
    stall = PATTERNS[stall]()
    ports = len(dut.ready)
    slots = rng.choice([2 << i for i in range(len(dut.slot))])  # of the job
    members = set(rng.sample(range(ports), rng.randint(1, ports)))
    bench = Owed(dut, rng, slots, members)
    await bench.start()
    chance = {"all": 1.0, "any": 0.5, "one_seldom": 1.0}[ready]
    seldom = min(members) if ready == "one_seldom" else None
    bench.always_ready = ready == "all"
    began = False
    for _ in range(2000):
        now = {p for p in range(ports) if rng.random() < (0.1 if p == seldom else chance)}
        events = {"take": not next(stall)}
        if ready != "all":
            events["starting"] = {p for p in range(ports) if rng.random() < 0.1}
        if not began and bench.may_begin() and rng.random() < 0.5:
            events["begin"] = rng.choice(bench.may_begin())
        began = "begin" in events
        event = rng.choice(["turn_over", "owe", *["none"] * 6]) if bench.cycle % 2 == 0 else "none"
        if event == "turn_over" and bench.may_turn_over():
            events["turn_over"] = rng.choice(bench.may_turn_over())
        if event == "owe" and bench.reduced() and not int(dut.owe_nearly_full.value):
            events["owe"] = rng.choice(bench.reduced()), rng.choice(sorted(members))
        await bench.step(now, **events)
    assert len(bench.picked) > 5
    await bench.rest(set(range(ports)))
    assert not any(bench.owed[s] for s in bench.began), f"still owed: {bench.owed}"


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(wait=list(range(4)))
async def a_port_that_was_held_up_gets_its_results_in_order(dut, wait):
    """A port that was blocked gets its results in order; a replay precedes a fresh result."""
    slots, ports = 1 << len(dut.slot), len(dut.ready)
    everyone = set(range(ports))
    bench = Owed(dut, random.Random(wait), slots, everyone)
    await bench.start()
    order = [(slots // 2 + i) % slots for i in range(slots)]
    for slot in order:
        await bench.step(set(), turn_over=slot)
        await bench.step(set())
        await bench.step(set(), begin=slot)
    for _ in range(8):
        await bench.step(set())
    rest = bits(everyone - {0})
    assert await bench.rest(everyone - {0}) == [(s, rest, 0) for s in order]
    for _ in range(wait):
        await bench.step(everyone - {0})
    assert await bench.rest(everyone) == [(s, 1, 0) for s in order]
    await bench.step(set(), owe=(order[1], 1))
    await bench.step(set(), turn_over=order[0])
    await bench.step(set())
    await bench.step(set(), begin=order[0])
    for _ in range(12 * slots):
        await bench.step(everyone, take=False)  # the scan finds the replay
    assert await bench.rest(everyone) == [(order[1], 2, 1), (order[0], bits(everyone), 0)]


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(phase=[0, 1])
async def picks_come_at_once(dut, phase):
    """From rest: a result is shown four or five cycles after it began, a repeat after ten or eleven."""
    bench = Owed(dut, random.Random(1), 1 << len(dut.slot), {0})
    await bench.start()
    await bench.step({0}, turn_over=1)
    for _ in range(2 + (bench.cycle + phase) % 2):
        await bench.step({0})
    began = bench.cycle
    await bench.step({0}, begin=1)
    assert await bench.rest({0}) == [(1, 1, 0)] and bench.last_pick - began == 4 + phase
    for _ in range((bench.cycle + phase) % 2):
        await bench.step({0})
    repeated = bench.cycle
    await bench.step({0}, owe=(1, 0))
    assert await bench.rest({0}) == [(1, 1, 1)] and bench.last_pick - repeated == 10 + phase


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_flush_drops_what_is_owed(dut):
    bench = Owed(dut, random.Random(1), 1 << len(dut.slot), {0})
    await bench.start()
    await bench.step(set(), turn_over=1)
    await bench.step(set())
    await bench.step(set(), begin=1)
    await bench.step(set())
    await bench.flush()
    assert await bench.rest({0}) == []


@pytest.mark.parametrize("ports, slot_bits", [(1, 1), (3, 2), (5, 3), (2, 5)])
def test_agg_owed(ports, slot_bits):
    readiness = ["all", "one_seldom", "any"]
    run(
        "agg_owed",
        [leaf("agg_owed"), leaf("agg_slot_fifo"), leaf("agg_ram")],
        parameters={"PORTS": ports, "SLOT_BITS": slot_bits},
        testcase=[f"nothing_owed_is_forgotten/ready={r}/stall={s}" for r in readiness for s in PATTERNS]
        + ["a_flush_drops_what_is_owed", *(f"picks_come_at_once/phase={p}" for p in (0, 1))]
        + [f"a_port_that_was_held_up_gets_its_results_in_order/wait={w}" for w in range(4) if ports > 1],
    )


# agg_turns


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(stall=list(PATTERNS))
async def jobs_take_turns_to_send(dut, stall):
    """A pick is that of the job with the turn; while a job wants to pick, no other picks twice."""
    rng = random.Random(stall)
    stall = PATTERNS[stall]()
    jobs = len(dut.job_valid)
    widths = {name: len(getattr(dut, f"pick_{name}")) for name in ("slot", "receivers", "replay")}
    dut.job_wants.value = dut.job_valid.value = dut.pick_ready.value = 0
    await start(dut)
    wants, wanted, in_front, picks = set(), set(), [set() for _ in range(jobs)], 0
    for _ in range(800):
        wants ^= {job for job in range(jobs) if rng.random() < 0.1}
        dut.job_wants.value, dut.job_valid.value = bits(wants), 0
        dut.pick_ready.value = ready = int(not next(stall))
        await FallingEdge(dut.clk)
        turn = int(dut.job_ready.value)
        assert turn.bit_count() == ready
        wanted = set(wants)
        await RisingEdge(dut.clk)
        # A job that does not want to may pick as well, if it has the turn.
        valid = turn if ready and rng.random() < 0.9 else 0
        offers = [{n: rng.getrandbits(w) for n, w in widths.items()} for _ in range(jobs)]
        dut.pick_ready.value, dut.job_valid.value = 0, valid
        for name, width in widths.items():
            value = sum(offer[name] << width * job for job, offer in enumerate(offers))
            getattr(dut, f"job_{name}").value = value
        await FallingEdge(dut.clk)
        assert int(dut.pick_valid.value) == int(bool(valid))
        if valid:
            picked, picks = int(dut.pick_job.value), picks + 1
            assert valid == 1 << picked
            assert {name: int(getattr(dut, f"pick_{name}").value) for name in widths} == offers[picked]
            for job in wanted - {picked}:
                assert picked not in in_front[job], f"job {job} was passed over"
                in_front[job].add(picked)
            in_front[picked] = set()
        for job in set(range(jobs)) - wanted:
            in_front[job] = set()
        await RisingEdge(dut.clk)
    assert picks > 50


@pytest.mark.parametrize("jobs, job_bits", [(1, 1), (2, 1), (8, 3)])
def test_agg_turns(jobs, job_bits):
    run(
        "agg_turns",
        parameters={"PORTS": 3, "JOBS": jobs, "JOB_BITS": job_bits, "SLOT_BITS": 4},
        testcase=[f"jobs_take_turns_to_send/stall={s}" for s in PATTERNS],
    )


# agg_status

PAUSE = 1024  # least cycles between two answered refusals
CHOICE = 4  # cycles from a change to a candidate


class Statuses:
    """The expected packets of each port: its latest status, and the latest notice."""

    def __init__(self, jobs):
        self.jobs = jobs
        self.latest, self.told = {}, {}  # by port
        self.refused = -PAUSE
        self.picked = []  # "status" or "notice", in order of sending
        self.settled = {"status": 0, "notice": 0}  # cycles since what could be picked of it changed
        self.seen = {}
        self.turns = 0  # picks while both kinds could be picked

    def add(self, kind, cycle, port, status, drop):
        """Adds an answer or a refusal; a job that ended in the cycle before drops it."""
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
        """Checks that the pick is eligible; returns which it is."""
        can_send, can_tell = ({p for p in kept if ready >> p & 1} for kept in (self.latest, self.told))
        is_status = port in can_send and shown == self.latest[port]
        assert is_status or (port in can_tell and shown == self.told[port]), f"port {port}: {shown}"
        return "status" if is_status else "notice"

    def settle(self, ready):
        """Counts the cycles in which nothing changes, for each kind."""
        for kind, kept in (("status", self.latest), ("notice", self.told)):
            now = dict(kept), ready
            self.settled[kind] = self.settled[kind] + 1 if self.seen.get(kind) == now else 0
            self.seen[kind] = now

    def due(self, ready):
        """Returns the kinds of which a pick in this cycle must be: they could be picked for long. If
        that is both, they take turns."""
        kinds = {"status": self.latest, "notice": self.told}
        can = [k for k, kept in kinds.items() if self.settled[k] >= CHOICE and any(ready >> p & 1 for p in kept)]
        last = self.picked[-1] if self.picked else "notice"
        others = [kind for kind in can if kind != last]
        self.turns += len(can) == 2
        return others or (list(kinds) if can else [])


STATUS = ["port", "job", "epoch", "rank", "code", "vid", "mask"]


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(stall=list(PATTERNS))
async def every_port_gets_its_latest_status(dut, stall):
    """Every port gets its latest status and the latest notice, except those of a job that ended."""
    rng = random.Random(stall)
    stall = PATTERNS[stall]()
    ports, jobs = len(dut.ready), len(dut.drop)
    for name in ("drop", "answer", "refuse", "notice", "ready", "pick_ready"):
        getattr(dut, name).value = 0
    await start(dut)
    statuses, cut_off, ready, before, picked, drop = Statuses(jobs), 0, 0, None, None, 0
    for cycle in range(6000):
        if cycle % 200 == 0:
            often, drops, asks = rng.choice([0.05, 0.2, 0.6]), rng.choice([0, 0, 0.06]), rng.choice([0.2, 1])
        kind = rng.choice(["answer"] * 4 + ["refuse"] * 4 + ["notice"] * 2) if rng.random() < often else None
        dropped, drop = drop, rng.getrandbits(jobs) if rng.random() < drops else 0  # in the last cycle
        asked = before is None and rng.random() < asks and not next(stall)
        ready = ready if rng.random() < 0.9 else rng.getrandbits(ports)
        dut.drop.value, dut.ready.value, dut.pick_ready.value = drop, ready, int(asked)
        drive = drive_notice if kind == "notice" else drive_status
        added = drive(dut, rng, kind)
        await FallingEdge(dut.clk)
        if picked:
            # Its fields, one cycle after it was shown and two after it was decided: what was pending then
            shown = {n: int(getattr(dut, f"pick_{n}").value) for n in STATUS if n != "port"}
            port, (then, could, due) = picked
            what = then.check(port, shown, could)
            assert what in due or not due, "no turn was taken"
            # It is not pending any more, unless it came anew in that cycle.
            now = statuses.latest if what == "status" else statuses.told
            old = then.latest if what == "status" else then.told
            if now.get(port) is old[port]:
                del now[port]
            statuses.picked.append(what)
        picked = None
        if int(dut.pick_valid.value):
            port = int(dut.pick_ports.value).bit_length() - 1
            assert int(dut.pick_ports.value) == 1 << port
            picked = port, before
        else:
            assert before is None or not before[2], "nothing was picked"
        before = None
        statuses.settle(ready)
        if asked:
            before = Statuses(jobs), ready, statuses.due(ready)
            before[0].latest, before[0].told = dict(statuses.latest), dict(statuses.told)
        if kind == "notice":
            cut_off += bool(statuses.told)
            statuses.told = added
        statuses.drop(dropped)
        if kind != "notice":
            port, status = added
            statuses.add(kind, cycle, port, status, dropped)
        await RisingEdge(dut.clk)
    assert statuses.picked.count("status") > 50 and statuses.picked.count("notice") > 10
    assert statuses.turns > 5
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

EGRESS = ("tpayload", "tlast", "tuser", "tdest")  # of its output


def field(user, name):
    lsb, width = zwire.FIELDS[name]
    return user >> lsb & (1 << width) - 1


PICK = ["job", "slot", "receivers", "replay"]  # of pick_*
JOB = ["last", "number", "epoch", "chunk", "member"]  # of job_*, in the first cycle of label_valid
LABEL = ["ports", "vid", "ecn", "nonfinite", "gen"]  # of result_*, two cycles later
RANKS = ["mask", "receivers"]  # of result_*, RANKS_LATENCY cycles later
STATUS_FIELDS = ["job", "epoch", "rank", "code", "vid", "mask"]


def queried(dut):
    """Returns the slot and the beat that agg_egress asks for."""
    of = "after" if int(dut.query_after.value) else "query"
    return getattr(dut, f"{of}_slot").value, getattr(dut, f"{of}_beat").value


class Egress:
    """The surroundings of agg_egress: picks, labels and ranks that come in their cycles, statuses,
    and a cache that fills up."""

    def __init__(self, dut, rng, idle, often=0.5):
        self.dut, self.rng, self.idle, self.often = dut, rng, idle, often
        self.results, self.statuses = [], []  # picked, not seen as sent
        self.cancelled = 0
        self.reads, self.written = [], set()
        self.forgotten = set()  # slots that were cleared: the cache's writer knows of no beat
        self.shown_to = 0  # the port of a status that was shown in the last cycle
        self.label = None  # the result being labelled
        self.age = 0

    def drive(self, prefix, names):
        """Drives random fields and returns them."""
        fields = {}
        for name in names:
            handle = getattr(self.dut, f"{prefix}_{name}")
            fields[name] = handle.value = self.rng.getrandbits(len(handle))
        return fields

    async def run(self, cycles):
        dut, latency = self.dut, int(self.dut.RANKS_LATENCY.value)
        asked, asked_status, query, ready, named = 0, 0, None, 0, set()
        for _ in range(cycles):
            dut.port_ready.value = self.rng.getrandbits(len(dut.port_ready))
            dut.status_wants.value = int(self.rng.random() < 0.6 * self.often)
            # Fields are right in one cycle only.
            job, label, ranks = self.drive("job", JOB), {}, {}
            if self.age < 2:
                self.drive("result", LABEL)
            elif self.age == 2:
                label = self.drive("result", LABEL)
            ranks = self.drive("result", RANKS)
            if self.label is not None:
                if self.age == 0:
                    self.label |= {f"job_{n}": v for n, v in job.items()}
                if label:
                    self.label |= label
                if self.age == 2 + latency:
                    self.label |= {f"rank_{n}": v for n, v in ranks.items()}
            shows = asked and ready and self.rng.random() < self.often
            dut.pick_valid.value, dut.status_valid.value = int(shows), 0
            pick = self.drive("pick", PICK)
            if shows:
                dut.pick_receivers.value = pick["receivers"] = ready & -ready
            # A status's fields come one cycle after its port.
            if self.shown_to:
                self.statuses.append(self.drive("status", STATUS_FIELDS) | {"ports": self.shown_to})
            self.shown_to = ready & -ready if asked_status else 0
            if self.shown_to:
                dut.status_valid.value, dut.status_ports.value = 1, self.shown_to
            # The slot of a pick begins now and then in the cycle in which it is shown.
            begins = shows and pick["slot"] not in named and self.rng.random() < 0.2
            dut.begun.value, dut.begun_slot.value = int(begins), pick["slot"]
            # A slot is cleared while its result is on its way out: all of it is written by then.
            clears = sorted(named) if self.rng.random() < 0.05 else []
            cleared = self.rng.choice(clears or [0])
            dut.clear.value, dut.clear_slot.value = int(clears != []), cleared
            if clears:
                self.forgotten.add(cleared)
                self.written |= {(cleared, b) for b in range(1 << len(dut.rd_beat))}
            written = query is not None and (query in self.written or not next(self.idle))
            if query is not None and query[0] in self.forgotten:
                written = False
            dut.query_written.value = int(written)
            if written:
                self.written.add(query)
            await FallingEdge(dut.clk)
            if int(dut.rd_en.value):
                read = int(dut.rd_slot.value), int(dut.rd_beat.value)
                assert read in self.written, f"{read} is not written"
                self.reads.append(read)
            # Before the first result, no query has a meaning.
            slot, beat = queried(dut)
            query = (int(slot), int(beat)) if slot.is_resolvable and beat.is_resolvable else None
            steps = [n for n in ("label", "prep", "send") if int(getattr(dut, f"{n}_valid").value)]
            named = {int(getattr(dut, f"{n}_slot").value) for n in steps}
            asked, asked_status = int(dut.pick_ready.value), int(dut.status_ready.value)
            assert not (asked and asked_status)
            ready = int(dut.ready.value)
            await RisingEdge(dut.clk)
            self.age += 1
            if shows:
                self.label, self.age = (None if begins else pick), 0
                self.written = {w for w in self.written if w[0] != pick["slot"]} if begins else self.written
                self.forgotten.discard(pick["slot"])
                self.cancelled += begins
                pick["receivers_to"] = pick["receivers"]
                if not begins:
                    self.results.append(pick)
        dut.pick_valid.value = dut.status_valid.value = dut.status_wants.value = 0


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def packets_are_what_was_picked(dut, idle, stall):
    """Headers, beats and order match the picks; idle: cycles in which the cache lacks the next
    beat."""
    rng = random.Random(f"{idle} {stall}")
    for name in ("pick_valid", "status_valid", "status_wants", "begun", "clear", "query_written", "port_ready"):
        getattr(dut, name).value = 0
    sink = StreamSink(dut, "m_axis", PATTERNS[stall](), EGRESS)
    await start(dut)
    bench = Egress(dut, rng, PATTERNS[idle]())
    await bench.run(1500)
    bench.often = 0
    await bench.run(400)
    results, statuses = bench.results, bench.statuses
    wanted, packet = [], []
    for beat in list(sink.beats):
        packet.append(beat)
        if not beat["tlast"]:
            continue
        if field(beat["tuser"], "kind") == zwire.KIND_STATUS:
            check_status(packet, statuses.pop(0))
        else:
            picked = results.pop(0)
            check_result(packet, picked)
            wanted += [(picked["slot"], b) for b in range(picked["job_last"] + 1)]
        packet = []
    assert bench.reads[: len(wanted)] == wanted and len(wanted) > 10
    assert not results and not statuses and bench.cancelled > 0


def check_result(packet, picked):
    assert len(packet) == picked["job_last"] + 1 and len({b["tuser"] for b in packet}) == 1
    assert all(b["tpayload"] == 1 and b["tdest"] == picked["receivers_to"] for b in packet)
    user = packet[0]["tuser"]
    partial = bool(picked["job_member"] & ~picked["ports"])
    want = {
        "version": zwire.VERSION,
        "kind": zwire.KIND_REPLAY if picked["replay"] else zwire.KIND_RESULT,
        "flags": picked["ecn"] | picked["nonfinite"] * zwire.FLAG_NONFINITE | partial * zwire.FLAG_PARTIAL,
        "format": zwire.FORMAT_FP32,
        "rank": 0,
        "code": 0,
        "length": picked["job_chunk"],
        "job": picked["job_number"],
        "epoch": picked["job_epoch"],
        "vid": picked["vid"],
        "mask": picked["rank_mask"],
        "receivers": picked["rank_receivers"],
    }
    assert {n: field(user, n) for n in want} == want


def check_status(packet, picked):
    (beat,) = packet
    assert beat["tpayload"] == 0 and beat["tdest"] == picked["ports"]
    want = {"version": zwire.VERSION, "kind": zwire.KIND_STATUS, "flags": 0, "format": 0, "length": 0, "receivers": 0}
    want |= {n: picked[n] for n in STATUS_FIELDS}
    assert {n: field(beat["tuser"], n) for n in want} == want


async def saturate(dut, cycles, statuses):
    """Picks a result of six beats for port 0, or a status for the last port, whenever one is asked
    for and the port is ready; returns the sink."""
    for name in ("status_valid", "begun", "begun_slot", "clear", "clear_slot", "pick_valid"):
        getattr(dut, name).value = 0
    for name in [f"pick_{n}" for n in PICK] + [f"job_{n}" for n in JOB] + [f"result_{n}" for n in LABEL + RANKS]:
        getattr(dut, name).value = 0
    for name in [f"status_{n}" for n in STATUS_FIELDS]:
        getattr(dut, name).value = 0
    dut.status_wants.value = int(statuses)
    dut.query_written.value, dut.pick_receivers.value = 1, 1
    dut.status_ports.value = 1 << len(dut.port_ready) - 1
    dut.port_ready.value = (1 << len(dut.port_ready)) - 1
    dut.job_last.value = 5
    sink = StreamSink(dut, "m_axis", fields=EGRESS)
    await start(dut)
    await saturated(dut, cycles)
    return sink


async def saturated(dut, cycles, begun=True):
    """Runs some cycles; begun: the first beat of a result is written as well."""
    asked = asked_status = 0
    for _ in range(cycles):
        dut.pick_valid.value, dut.status_valid.value = asked, asked_status
        dut.query_written.value = int(begun or int(queried(dut)[1]) != 0)
        await FallingEdge(dut.clk)
        ready = int(dut.ready.value)
        asked = ready & int(dut.pick_ready.value)
        asked_status = ready >> len(dut.ready) - 1 & int(dut.status_ready.value)
        await RisingEdge(dut.clk)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def packets_follow_without_a_bubble(dut):
    """Results of six beats for one port follow one another."""
    sink = await saturate(dut, 120, statuses=False)
    assert sink.taken_at[60] - sink.taken_at[10] == 50, "a bubble"


def kinds(beats):
    return [field(b["tuser"], "kind") for b in beats if b["tlast"]]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def nothing_starves(dut):
    """Endless statuses and results take turns, without a bubble if they are for different ports.
    Statuses go on while a prepared result is not written, and take turns again once it is."""
    sink = await saturate(dut, 200, statuses=True)
    sent = kinds(sink.beats[20:])
    if len(dut.port_ready) > 1:
        assert sink.taken_at[120] - sink.taken_at[20] == 100, "a bubble"
    assert sent[::2] != sent[1::2] and len(set(sent[::2])) == len(set(sent[1::2])) == 1
    await saturated(dut, 20, begun=False)
    before = len(sink.beats)
    await saturated(dut, 80, begun=False)
    assert set(kinds(sink.beats[before:])) == {zwire.KIND_STATUS} and len(sink.beats) - before >= 80 // 6
    before = len(sink.beats)
    await saturated(dut, 200)
    sent = kinds(sink.beats[before + 2 :])
    assert sent[::2] != sent[1::2] and len(set(sent[::2])) == len(set(sent[1::2])) == 1


@pytest.mark.parametrize("ports, slot_bits, index_bits, latency", [(1, 1, 3, 1), (5, 3, 3, 2)])
def test_agg_egress(ports, slot_bits, index_bits, latency):
    run(
        "agg_egress",
        parameters={
            "PORTS": ports,
            "JOB_BITS": 2,
            "SLOT_BITS": slot_bits,
            "INDEX_BITS": index_bits,
            "RANKS_LATENCY": latency,
        },
        testcase=[f"packets_are_what_was_picked/idle={i}/stall={s}" for i in PATTERNS for s in PATTERNS]
        + ["packets_follow_without_a_bubble", "nothing_starves"],
    )


# agg_stage


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def beats_leave_one_cycle_later(dut, idle, stall):
    """In order, each once; a beat a cycle if neither end waits; a reset drops the beat."""
    rng = random.Random(f"{idle} {stall}")
    source = StreamSource(dut, "s_axis", PATTERNS[idle]())
    sink = StreamSink(dut, "m_axis", PATTERNS[stall]())
    await start(dut)
    beats = [{field: rng.getrandbits(len(getattr(dut, f"s_axis_{field}"))) for field in ("tuser", "tdest")} for _ in range(60)]
    cocotb.start_soon(without_a_beat(dut))
    for beat in beats:
        source.put(beat)
    assert await sink.take(len(beats)) == beats
    if idle == stall == "never":
        assert sink.taken_at == [n + 1 for n in source.accepted_at]
        assert sink.taken_at[-1] - sink.taken_at[0] == len(beats) - 1
    dut.m_axis_tready.value = 0
    dut.s_axis_tvalid.value = dut.rst.value = 1
    for _ in range(2):
        await RisingEdge(dut.clk)
    await FallingEdge(dut.clk)
    assert not int(dut.m_axis_tvalid.value)
    assert not int(dut.m_axis_tdest.value)


async def without_a_beat(dut):
    """tdest is zero without a beat."""
    while True:
        await FallingEdge(dut.clk)
        if not int(dut.m_axis_tvalid.value):
            assert int(dut.m_axis_tdest.value) == 0


def test_agg_stage():
    cases = [f"beats_leave_one_cycle_later/idle={i}/stall={s}" for i in PATTERNS for s in PATTERNS]
    run("agg_stage", parameters={"WIDTH": 9, "PORTS": 3}, testcase=cases)


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
                # The first one waits, for others to be announced meanwhile.
                delay = 6 if self.announced == 1 else self.rng.randint(1, 6)
                self.packets.append((cycle + delay, self.packet()))
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
            data = rng.getrandbits(32) * payload
            beat = {"tdata": data, "tuser": user, "tlast": int(i == count - 1)}
            beats.append((payload, beat))
            self.expected.append(beat | {"tkeep": 15 if payload else 0})
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
