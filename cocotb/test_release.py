"""agg_release: the order of results on connections, against section 5 of driver/wire/ROCE.md."""

import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge

from bench import leaf, run, start
from streams import PATTERNS

SUMMED = 8  # cycles from the beginning of a sum to its end, here
SETTLES = 12  # most cycles from an event to all that agg_release knows of it


def bits(ports):
    return sum(1 << p for p in ports)


class Connection:
    """What the specification says of one connection."""

    def __init__(self):
        self.next = 0
        self.jumped = False  # next + 1 was released by rule 2
        self.debts = []  # VIDs that are owed again, in order
        self.owed_at = 0  # cycle of the last one
        self.lost = None  # a slot turned over from next or above: the cycle, and that VID
        self.released = []  # VID, rule


class Release:
    """agg_release, and the slots of its job: contributions, sums, turnovers, and the releases due.

    A pick is decided in a cycle with decide and shown in the next. It is due by what happened before
    the cycle of the decision.
    """

    def __init__(self, dut, rng, window, members):
        self.dut, self.rng, self.window, self.members = dut, rng, window, sorted(members)
        self.slots = 2 * window
        self.cycle = 0
        self.fresh()

    def fresh(self):
        self.holds = [None] * self.slots  # VID
        self.has = {}  # by VID: ports that have contributed, and the cycle
        self.turned = {}  # by VID: the cycle in which its slot took it
        self.began = {}  # by VID: the cycle
        self.complete = []  # VIDs that wait to be summed
        self.owing = None  # port and VID, from the last cycle
        self.connections = {p: Connection() for p in self.members}
        self.picks = 0
        self.busy = {}  # by port: the cycle of its last pick
        self.last_begin = self.last_event = -10
        self.last_pick = None

    async def start(self):
        dut = self.dut
        for name in ("clear", "begun", "turn_over", "store", "owe", "pick_ready", "ready", "starting", "decide"):
            getattr(dut, name).value = 0
        dut.slot_mask.value, dut.member.value, dut.flush.value = self.slots - 1, bits(self.members), 1
        await start(dut)
        await self.flush()

    async def flush(self):
        dut = self.dut
        dut.flush.value = 1
        self.fresh()
        for slot in range(self.slots):
            dut.clear.value, dut.clear_slot.value = 1, slot
            await self.step(set())
        dut.clear.value = 0
        for _ in range(4):
            await self.step(set())
        dut.flush.value = 0

    def gen(self, vid):
        return 1 - vid // self.slots % 2

    def held(self, vid):
        return self.holds[vid % self.slots] == vid

    def reduced(self, vid):
        return self.held(vid) and self.began.get(vid, self.cycle) <= self.cycle - SUMMED

    def may_store(self, port, vid, honest=True):
        """Whether data is stored. honest: by a port that sends what its receiver may have."""
        if self.held(vid):
            return port not in self.has[vid]
        before = vid - self.slots
        if (before >= 0 and not self.reduced(before)) or (before < 0 and self.holds[vid % self.slots] is not None):
            return False
        return not honest or before < 0 or all(c.next > before for c in self.connections.values())

    def leaves(self, vid):
        """Whether the slot has the VID, or had it when the pick that is shown now was decided."""
        return self.held(vid) or self.turned[vid + self.slots] >= self.cycle - 3

    def may_begin(self):
        if self.cycle <= self.last_begin + 1 or not self.complete:
            return None
        return self.complete[0] if self.turned[self.complete[0]] <= self.cycle - 3 else None

    async def step(self, ready, store=None, owe=None, begin=None, take=True):
        """Runs a cycle. store, owe: port and VID; begin: VID."""
        dut, decide = self.dut, self.cycle % 2
        starting = {p for p, at in self.busy.items() if at >= self.cycle - 3}
        ready = set(ready) - starting
        dut.decide.value, dut.pick_ready.value = decide, int(decide and take)
        dut.ready.value, dut.starting.value = bits(ready), bits(starting)
        dut.begun.value, dut.store.value, dut.owe.value = int(begin is not None), int(store is not None), int(owe is not None)
        dut.turn_over.value = 0
        if begin is not None:
            dut.begun_slot.value, dut.begun_gen.value = begin % self.slots, self.gen(begin)
        for event in (store, owe):
            if event is not None:
                port, vid = event
                dut.slot.value, dut.gen.value = vid % self.slots, self.gen(vid)
                dut.port.value, dut.port_index.value = 1 << port, port
        if store is not None:
            port, vid = store
            if not self.held(vid):
                dut.turn_over.value = 1
                self.turn_over(vid)
            self.has[vid][port] = self.cycle
            dut.store_ports.value = bits(self.has[vid])
            if len(self.has[vid]) == len(self.members):
                self.complete.append(vid)
        await FallingEdge(dut.clk)
        self.last_pick = None
        if int(dut.pick_valid.value):
            self.check()
        else:
            assert not int(dut.released_early.value)
        if self.owing:
            port, vid = self.owing
            connection = self.connections[port]
            if vid < connection.next and connection.lost is None:
                connection.debts.append(vid)
                connection.owed_at = self.cycle
        await RisingEdge(dut.clk)
        if begin is not None:
            self.began[begin], self.last_begin = self.cycle, self.cycle
            self.complete.remove(begin)
        if store or owe:
            self.last_event = self.cycle
        self.owing = owe
        self.was_ready, self.took = ready, decide and take
        self.cycle += 1

    def turn_over(self, vid):
        self.holds[vid % self.slots] = vid
        self.has[vid], self.turned[vid] = {}, self.cycle
        for connection in self.connections.values():
            if connection.lost is None and connection.next <= vid - self.slots:
                connection.lost = self.cycle, vid - self.slots

    def check(self):
        """Checks a pick against the rules, and carries it out."""
        dut = self.dut
        slot, replay = int(dut.pick_slot.value), int(dut.pick_replay.value)
        receivers = [p for p in range(len(dut.ready)) if int(dut.pick_receivers.value) >> p & 1]
        assert self.took and receivers and set(receivers) <= self.was_ready & set(self.members)
        connections = [self.connections[p] for p in receivers]
        self.busy |= dict.fromkeys(receivers, self.cycle)
        self.picks += 1
        self.last_pick = (receivers, slot)
        decided = self.cycle - 1
        for connection in connections:
            assert connection.lost is None or decided <= connection.lost[0] + 1, "released to a lost connection"
        if replay:
            assert not int(dut.released_early.value) and len(receivers) == 1
            vid = connections[0].debts.pop(0)
            while not self.leaves(vid):
                vid = connections[0].debts.pop(0)
            assert slot == vid % self.slots, "debts leave in order"
            connections[0].released.append((vid, 3))
            return
        if int(dut.released_early.value):
            (connection,) = connections
            vid = connection.next + 1
            assert slot == vid % self.slots and not connection.jumped
            assert self.began[vid] < decided, "released without a sum"
            assert self.began.get(vid - 1, decided) >= decided, "the next VID was summed"
            at = self.has.get(vid - 1, {}).get(receivers[0], decided)
            assert at >= decided, f"port {receivers[0]} had contributed VID {vid - 1}"
            connection.jumped = True
            connection.released.append((vid, 2))
            return
        (vid,) = {c.next for c in connections}
        assert slot == vid % self.slots, f"port {receivers}: slot {slot}, want VID {vid}"
        assert self.began[vid] < decided
        assert self.leaves(vid)
        for port in receivers:
            connection = self.connections[port]
            due = [v for v in connection.debts if self.held(v)]
            assert not due or connection.owed_at > self.cycle - SETTLES, "debts go first"
            connection.next, connection.jumped = vid + 1, False
            if connection.lost and decided <= connection.lost[0] and vid >= connection.lost[1]:
                connection.lost = None  # it was released before the slot turned over
            connection.released.append((vid, 1))

    def front(self):
        vid = 0
        while vid in self.began:
            vid += 1
        return vid

    async def rest(self, ready, cycles=None):
        """Takes every pick until none has come for long, or for a number of cycles."""
        idle = 0
        while idle < (cycles or 60 + 4 * self.slots):
            picks = self.picks
            await self.step(ready)
            idle = 0 if self.picks > picks and not cycles else idle + 1

    def all_released(self, ports):
        """Checks that these ports have got all that is due."""
        front = self.front()
        for port in ports:
            c = self.connections[port]
            if c.lost:
                continue
            assert not any(self.held(v) for v in c.debts), f"port {port} is owed {c.debts}"
            assert c.next == front, f"port {port}: next is {c.next}, front {front}"
            missing = front + 1 in self.began and port not in self.has.get(front, {})
            assert c.jumped or not missing, f"port {port} did not get {front + 1}"


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(ready=["all", "one_seldom", "any"], stall=list(PATTERNS))
async def every_connection_gets_its_sums_in_order(dut, ready, stall):
    """Contributions in any order, lost ones, repeats: releases follow the rules, and all leave."""
    rng = random.Random(f"{ready} {stall}")
    stall = PATTERNS[stall]()
    ports = len(dut.ready)
    window = rng.choice([1 << i for i in range(len(dut.slot))])
    members = rng.sample(range(ports), rng.randint(max(1, ports - 1), ports))
    bench = Release(dut, rng, window, members)
    await bench.start()
    seldom = min(members) if ready == "one_seldom" else None
    chance = 0.5 if ready == "any" else 1.0
    sums, rules = 0, set()
    for life in range(2):
        held_up = {}  # by port: a VID that was lost, until a cycle
        for _ in range(1500):
            now = {p for p in members if rng.random() < (0.2 if p == seldom else chance)}
            events = {"take": not next(stall)}
            begin = bench.may_begin()
            if begin is not None and rng.random() < 0.4:
                if rng.random() < 0.3:  # sums begin in the order of completion, but complete in any
                    bench.complete.append(bench.complete.pop(0))
                begin = bench.may_begin()
                if begin is not None:
                    events["begin"] = begin
            if bench.cycle % 2 == 0 and rng.random() < 0.6:
                port = rng.choice(members)
                receiver = bench.connections[port]
                lowest = next(v for v in range(10**6) if port not in bench.has.get(v, {}))
                vid = lowest + (rng.randrange(window) if rng.random() < 0.4 else 0)
                if port in held_up and held_up[port][1] > bench.cycle:
                    vid = max(vid, held_up[port][0] + 1)
                elif rng.random() < 0.02:
                    held_up[port] = lowest, bench.cycle + rng.randrange(200)
                if vid < receiver.next + window and port not in bench.has.get(vid, {}) and bench.may_store(port, vid):
                    events["store"] = port, vid
                elif rng.random() < 0.1:
                    repeats = [v for v in bench.holds if v is not None and bench.reduced(v)]
                    if repeats and len(receiver.debts) < bench.slots - 1:
                        events["owe"] = port, rng.choice(repeats)
            await bench.step(now, **events)
        while bench.complete:
            begin = bench.may_begin()
            await bench.step(set(members), begin=begin)
        await bench.rest(set(members))
        bench.all_released(members)
        sums += len(bench.began)
        rules |= {rule for c in bench.connections.values() for _, rule in c.released}
        if life == 0:
            await bench.flush()
    assert sums > (20 if ready == "all" else 4) and rules >= ({1, 3} if ready == "all" else {1})
    assert 2 in rules or window == 1 or len(members) < 3 or ready != "all", "rule 2 was never used"


async def contribute(bench, vid, ports=None, ready=()):
    """Stores a VID's contributions, one every second cycle; begins its sum if it has all."""
    for port in bench.members if ports is None else ports:
        while bench.cycle % 2 or not bench.may_store(port, vid):
            await bench.step(set(ready))
        await bench.step(set(ready), store=(port, vid))
    if vid in bench.complete:
        while bench.may_begin() is None:
            await bench.step(set(ready))
        await bench.step(set(ready), begin=vid)


async def full(dut, seed=1):
    bench = Release(dut, random.Random(seed), 1 << len(dut.slot) - 1, range(len(dut.ready)))
    await bench.start()
    return bench, set(bench.members)


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(phase=[0, 1])
async def picks_come_at_once(dut, phase):
    """From rest: a result is shown four or five cycles after it began, a replay after eight or nine."""
    bench, everyone = await full(dut)
    await contribute(bench, 0, bench.members[:-1], everyone)
    await bench.rest(everyone, 20)
    while bench.cycle % 2:
        await bench.step(everyone)
    await bench.step(everyone, store=(bench.members[-1], 0))
    for _ in range(4 + (bench.cycle + phase) % 2):
        await bench.step(everyone)
    began = bench.cycle
    await bench.step(everyone, begin=0)
    while bench.last_pick is None:
        await bench.step(everyone)
    assert bench.last_pick == (bench.members, 0) and bench.cycle - 1 - began == 4 + phase
    await bench.rest(everyone, 20 + (bench.cycle + phase) % 2)
    repeated = bench.cycle
    await bench.step(everyone, owe=(0, 0))
    while bench.last_pick is None:
        await bench.step(everyone)
    assert bench.last_pick == ([0], 0) and bench.cycle - 1 - repeated == 8 + phase
    bench.all_released(everyone)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def ports_in_step_share_every_pick(dut):
    """Sums every six cycles leave every six cycles, each once for all ports, without end."""
    bench, everyone = await full(dut)
    window, shown = bench.window, []
    ready = [everyone] * 3 * window
    for vid in range(3 * window):
        for port in bench.members:
            bench.may_store(port, vid)
    stores = [(p, v) for v in range(3 * window) for p in bench.members]
    spacing, begun, at = max(6, 2 * len(everyone)), 0, None
    while begun < 3 * window:
        events = {}
        if bench.cycle % 2 == 0 and stores:
            port, vid = stores[0]
            if vid < bench.connections[port].next + window and bench.may_store(port, vid):
                events["store"] = stores.pop(0)
        if bench.may_begin() is not None and (at is None or bench.cycle >= at + spacing):
            events["begin"], at, begun = bench.may_begin(), bench.cycle, begun + 1
        await bench.step(everyone, **events)
        if bench.last_pick:
            shown.append((bench.cycle, bench.last_pick[0]))
    await bench.rest(everyone)
    assert {tuple(receivers) for _, receivers in shown} == {tuple(bench.members)}
    bench.all_released(everyone)
    assert bench.picks == len(ready)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def sums_behind_a_missing_one_leave_together(dut):
    """VID 0 is summed last: all others wait for it, but for rule 2; then they leave in order, a pick
    every four cycles for ports that are free."""
    bench, everyone = await full(dut)
    ports, window = bench.members, bench.window
    late = ports[-1]
    await contribute(bench, 0, ports[:-1], everyone)
    for vid in range(1, window):
        await contribute(bench, vid, None, everyone)
    await bench.rest(everyone)
    bench.all_released(everyone)
    expected = {p: [(1, 2)] if p == late and window > 1 else [] for p in ports}
    assert {p: c.released for p, c in bench.connections.items()} == expected
    await contribute(bench, 0, [late], everyone)
    began = bench.cycle
    while bench.connections[late].next < window:
        await bench.step(everyone)
    assert bench.cycle - began <= 6 + 6 * window
    assert all(c.next == window for c in bench.connections.values())


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_port_that_is_not_ready_delays_no_other(dut):
    """A port takes nothing for a long time, and its debts wait; the others' releases leave at once."""
    bench, everyone = await full(dut)
    stuck, others = bench.members[0], everyone - {bench.members[0]}
    await contribute(bench, 0, None, everyone)
    await bench.rest(everyone)
    if bench.cycle % 2:
        await bench.step(others)
    await bench.step(others, owe=(stuck, 0))
    for port in sorted(others):
        await bench.step(others)
        await bench.step(others, owe=(port, 0))
    for vid in range(1, bench.window + 1):
        await contribute(bench, vid, None, others)
    await bench.rest(others)
    bench.all_released(others)
    assert bench.connections[stuck].debts == [0] and bench.connections[stuck].next == 1
    await bench.rest(everyone)
    bench.all_released(everyone)
    assert bench.connections[stuck].released[1] == (0, 3), "debts go first"


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_port_that_repeats_without_end_delays_no_other(dut):
    """One port is owed results all the time, more than leave: the others' releases leave."""
    bench, everyone = await full(dut)
    greedy = bench.members[0]
    await contribute(bench, 0, None, everyone)
    await bench.rest(everyone)
    others = everyone - {greedy}
    for vid in range(1, bench.window):
        for port in bench.members:
            for event in ({"owe": (greedy, 0)}, {}, {"store": (port, vid)}, {}):
                while bench.cycle % 2 and event:
                    await bench.step(everyone)
                debts = bench.connections[greedy].debts
                if "owe" in event and len(debts) > bench.slots - 2:
                    event = {}
                await bench.step(everyone, **event)
        while bench.may_begin() is None:
            await bench.step(everyone)
        await bench.step(everyone, begin=vid)
    for _ in range(40 * bench.window):
        debts = bench.connections[greedy].debts
        owe = (greedy, 0) if bench.cycle % 2 == 0 and len(debts) < bench.slots - 1 else None
        await bench.step(everyone, owe=owe)
    assert all(bench.connections[p].next == bench.window for p in others)
    assert bench.connections[greedy].next < bench.window or bench.window == 1
    await bench.rest(everyone)
    bench.all_released(everyone)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def more_debts_than_slots_are_dropped(dut):
    bench, everyone = await full(dut)
    await contribute(bench, 0, None, everyone)
    await bench.rest(everyone)
    for _ in range(bench.slots + 3):
        await bench.step(set(), owe=(0, 0))
        await bench.step(set())
    room = 1 << len(dut.slot)
    assert len(bench.connections[0].debts) == bench.slots + 3
    bench.connections[0].debts = bench.connections[0].debts[:room]
    await bench.rest(everyone)
    bench.all_released(everyone)
    assert bench.connections[0].released == [(0, 1)] + [(0, 3)] * room


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_turned_over_sum_ends_its_connection_alone(dut):
    """Members claim sums that a port has not got: nothing of later VIDs is released to it, ever. The
    others get theirs."""
    bench, everyone = await full(dut)
    stuck, others = bench.members[0], everyone - {bench.members[0]}
    bench.may_store, honest = (lambda port, vid: honest(port, vid, False)), bench.may_store
    for vid in range(3 * bench.slots):
        await contribute(bench, vid, None, others)
        await bench.rest(others, SUMMED + 8)
    bench.all_released(others)
    connection = bench.connections[stuck]
    assert connection.lost[1] == 0 and connection.released == []
    await bench.rest(everyone)
    assert connection.released == []
    for vid in range(3 * bench.slots, 5 * bench.slots):
        await contribute(bench, vid, None, everyone)
        await bench.rest(everyone, SUMMED + 8)
    assert connection.released == []
    bench.all_released(others)
    assert all(bench.connections[p].next == 5 * bench.slots for p in others)


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(turns=[1, 2], ahead=["one", "most"], first=["waits", "missing"])
async def a_turnover_ahead_of_next_ends_the_connection(dut, turns, ahead, first):
    """A port has not got VID 0, and the slot of a later one turns over: the port gets nothing more. After two
    turnovers the slot has the generation of the sum that the port has not got."""
    bench, everyone = await full(dut)
    stuck, others = bench.members[0], everyone - {bench.members[0]}
    bench.may_store, honest = (lambda port, vid: honest(port, vid, False)), bench.may_store
    later = 1 if ahead == "one" else bench.slots - 1
    for vid in range(later + 1):
        await contribute(bench, vid, others if vid == 0 and first == "missing" else None, others)
        await bench.rest(others, SUMMED + 8)
    for turn in range(turns):
        await contribute(bench, later + (turn + 1) * bench.slots, None, others)
        await bench.rest(others, SUMMED + 8)
    connection = bench.connections[stuck]
    assert connection.lost[1] == later and connection.released == []
    if first == "missing":
        await contribute(bench, 0, [stuck], others)
    await bench.rest(everyone)
    assert connection.released == []
    expected = 0 if first == "missing" else later + 1
    assert all(bench.connections[p].next == expected for p in others)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def debts_of_a_lost_connection_are_forgotten(dut):
    """A port is owed VID 0, and claims VID 2 W - 1, which it has not got: it gets neither."""
    bench, everyone = await full(dut)
    stuck, others = bench.members[0], everyone - {bench.members[0]}
    bench.may_store, honest = (lambda port, vid: honest(port, vid, False)), bench.may_store
    await contribute(bench, 0, None, everyone)
    await bench.rest(everyone)
    for vid in range(1, bench.slots):
        await contribute(bench, vid, None, others)
        await bench.rest(others, SUMMED + 8)
    while bench.cycle % 2:
        await bench.step(others)
    await bench.step(others, owe=(stuck, 0))
    await contribute(bench, 2 * bench.slots - 1, None, others)
    await bench.rest(everyone)
    assert bench.connections[stuck].debts == [0] and bench.connections[stuck].released == [(0, 1)]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def an_end_of_the_job_forgets_all(dut):
    bench, everyone = await full(dut)
    await contribute(bench, 0, None, everyone)
    await bench.rest(everyone)
    await bench.step(set(), owe=(0, 0))
    await contribute(bench, 1, None, set())
    await bench.flush()
    await bench.rest(everyone)
    assert bench.picks == 0
    for vid in range(2):
        await contribute(bench, vid, None, everyone)
    await bench.rest(everyone)
    bench.all_released(everyone)
    assert bench.picks == 2


DIRECTED = [
    "ports_in_step_share_every_pick",
    "sums_behind_a_missing_one_leave_together",
    "a_port_that_is_not_ready_delays_no_other",
    "a_port_that_repeats_without_end_delays_no_other",
    "more_debts_than_slots_are_dropped",
    "a_turned_over_sum_ends_its_connection_alone",
    "debts_of_a_lost_connection_are_forgotten",
    "an_end_of_the_job_forgets_all",
]


@pytest.mark.parametrize("ports, slot_bits", [(1, 1), (3, 2), (5, 3), (2, 5)])
def test_agg_release(ports, slot_bits):
    run(
        "agg_release",
        [leaf("agg_release"), leaf("agg_ram")],
        parameters={"PORTS": ports, "PORT_BITS": max(1, (ports - 1).bit_length()), "SLOT_BITS": slot_bits},
        testcase=[
            f"every_connection_gets_its_sums_in_order/ready={r}/stall={s}"
            for r in ("all", "one_seldom", "any")
            for s in PATTERNS
        ]
        + [f"picks_come_at_once/phase={p}" for p in (0, 1)]
        + [
            f"a_turnover_ahead_of_next_ends_the_connection/turns={n}/ahead={a}/first={f}"
            for n in (1, 2)
            for a in ("one", "most")
            for f in ("waits", "missing")
        ]
        + DIRECTED,
    )
