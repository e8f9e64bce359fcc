"""Jobs with deadlines: waiting ranks get notices or partial sums, and absent ranks are evicted.

One packet at a time, compared with the model. A card acts on deadlines by itself, so the bench
keeps the time. It knows when each slot turned over, or refused to. Before a step that would come
too close to a deadline, it waits for the deadline. Then it tells the model, and compares the
card's packets and their times.
"""

import itertools
import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, Combine

import model
import zwire
from bench import wait_cycles
from cards import BareCard, LinkCard, manifest, run_card, usual
from streams import PATTERNS
from traffic import TOKEN, Traffic, data_header, elements
from workers import Reduction, Worker, deliver

ACT_CYCLES = 13  # most cycles for each slot that is found overdue, as SPEC says

CARDS = {
    "one": ["-lanes", 2, "-workers", 3, "-chunk", 8, "-window", 4, "-shell", "none", "-registers", "bus"],
    "two": ["-jobs", 2, "-lanes", 2, "-workers", 3, "-chunk", 8, "-window", 4, "-shell", "none", "-registers", "bus"],
    "one_link": ["-lanes", 1, "-workers", 4, "-chunk", 12, "-window", 2, "-link", 32, "-shell", "stream"],
    "two_link": ["-jobs", 2, "-lanes", 1, "-workers", 3, "-chunk", 6, "-window", 2, "-shell", "stream"],
}

PARTIAL = 1 << 32
SLACK = 4  # cycles by which packets of different kinds may differ in delay
STALLED = 60  # the same with stalled sources and sinks


@pytest.mark.parametrize("card", usual(CARDS, "one_link", "two"))
def test_top_deadlines(card):
    run_card(f"deadlines_{card}", CARDS[card])


class Clocked:
    """Adds the tracking of deadlines to a bench of either shell."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.came = []  # (cycle, packet) of all packets from the card
        self.beside = {}  # job: handler of its packets, in place of the model
        self.due = {}  # (job, epoch, VID, state) of each waiting slot: cycles of detection
        self.paths = {}  # kind: cycles from its cause's last beat to the packet's last beat
        self.slack = SLACK  # tolerance of these delays, in cycles

    def arrived(self, packet):
        self.came.append((self.cycle, packet))
        if packet[0]["job"] in self.beside:
            self.beside[packet[0]["job"]](*packet)
        else:
            super().arrived(packet)

    async def measure(self):
        """Measures the delays of statuses and results."""
        await self.set_up(1, token=TOKEN)
        await self.data(0, 0)
        await self.send_kind(zwire.KIND_ASK, 0, 0)
        self.paths[zwire.KIND_STATUS] = self.came[-1][0] - self.entered(self.blocks[0].members[0])
        for rank in range(1, self.ports):
            await self.data(rank, 0)
        self.paths[zwire.KIND_RESULT] = self.came[-1][0] - self.entered(self.blocks[0].members[-1])
        await self.write("JOB_ABORT", 1 << 32)

    @property
    def blocks(self):
        return self.model.blocks

    @property
    def cycles_given(self):
        """Returns a deadline that leaves time for several packets between the slots' deadlines."""
        return 30 * self.calm()

    def entered(self, port):
        """Returns the cycle in which the port's last beat entered."""
        return (self.rx if self.model.shared else self.sources[port]).accepted_at[-1]

    async def drained(self, port):
        """Waits until all queued packets are in; returns the cycle in which the last beat
        entered."""
        while self.busy():
            await ClockCycles(self.dut.clk, 1)
        return self.entered(port)

    # One packet at a time

    async def data(self, rank, vid, job=0):
        """Sends the rank's contribution with random elements."""
        block = self.blocks[job]
        chunk = block.job.chunk if block.job else self.chunk
        header = data_header(self, rank, vid, block.last_epoch, job) | {"length": chunk}
        header["flags"] = self.rng.choice(model.ECN_ORDER)
        await self.exchange(block.members[rank], header, elements(self.rng, chunk, self.format))

    async def send_kind(self, kind, rank, vid, job=0):
        """Sends an ask or a finish of the rank."""
        block = self.blocks[job]
        header = {"kind": kind, "job": job, "epoch": block.last_epoch, "rank": rank, "vid": vid % 2**32}
        await self.exchange(block.members[rank], header)

    async def exchange(self, port, header, payload=b"", bad=False):
        await self.pass_deadlines()
        await super().exchange(port, header, payload, bad)
        if port is not None:
            self.follow(self.entered(port))

    async def access(self, header):
        await self.pass_deadlines()
        value = await super().access(header)
        self.follow(self.cycle)
        return value

    # Deadlines

    def follow(self, cycle):
        """Updates the waiting slots, given the cycle in which the last packet entered."""
        due = {}
        for block in self.blocks:
            for slot in block.job.slots if block.job else []:
                if block.may_be_overdue(slot):
                    key = (block.number, block.last_epoch, slot.vid, slot.state)
                    due[key] = self.due.get(key) or self.next_due(block, cycle, cycle)
        self.due = due

    def next_due(self, block, earliest, latest):
        """Returns the first and the last cycle in which the card may find the slot overdue.

        The slot began to wait between the cycles earliest and latest.
        """
        return earliest + block.job.deadline, latest + block.job.deadline + 2 * self.window

    @property
    def meanwhile(self):
        """Returns after how many cycles a packet or register access is certainly answered."""
        return 3 * self.calm()

    async def pass_deadlines(self):
        """Waits for deadlines that would pass during the next step, and compares the card's
        actions with the model."""
        while any(first < self.cycle + self.meanwhile for first, _ in self.due.values()):
            await self.pass_deadline()

    async def pass_deadline(self):
        """Waits for the next deadline, and for all that follow too closely to tell their packets
        apart."""
        found, end = [], None
        for key, (first, last) in sorted(self.due.items(), key=lambda item: item[1]):
            if found and first > end + self.meanwhile:
                break
            found.append(key)
            end = last + ACT_CYCLES * len(found)
        if end > self.cycle:
            await wait_cycles(self.dut, end - self.cycle)
        await self.quiet()
        expected = []
        for key in found:
            first, last = self.due[key]
            job, _, vid, state = key
            block = self.blocks[job]
            if block.job is None or not block.may_be_overdue(block.job.slot(vid)):
                continue  # the slot only waited for ranks that another slot's eviction removed
            packets = self.model.overdue(job, vid)
            expected += packets
            acted = self.check_time(packets, first, last + ACT_CYCLES * len(found))
            if block.job and not block.job.partial_sums:
                self.due[key] = self.next_due(block, first, acted)
        await self.expect(expected)
        self.follow(self.cycle)

    def check_time(self, packets, first, last):
        """Checks the time of a slot's packets against its deadline; returns the latest cycle in
        which the card can have acted."""
        ways = [self.first_came(packet) - self.path(packet) for packet in self.expand(packets)]
        assert min(ways) >= first - self.slack, f"acted in cycle {min(ways)}, before {first}: {packets[0][0]}"
        assert min(ways) <= last + self.slack, f"acted in cycle {min(ways)}, after {last}: {packets[0][0]}"
        return min(ways) + self.slack

    def path(self, packet):
        """Returns the packet's delay; a result of a short chunk takes less than the measured
        one."""
        header, payload, _ = packet
        if header["kind"] == zwire.KIND_STATUS:
            return self.paths[zwire.KIND_STATUS]
        lacks = self.result.bytes * self.chunk - len(payload)
        return self.paths[zwire.KIND_RESULT] - lacks // (self.word if self.model.shared else self.lanes * self.result.bytes)

    def first_came(self, packet):
        """Returns the cycle in which the packet arrived, among those not yet compared."""
        at = [cycle for cycle, came in self.came[-200:] if came == packet and came in self.sent]
        assert at, f"not sent at the deadline: {packet[0]}"
        return at[-1]

    async def nothing_is_due(self):
        """Checks that no slot waits and that the card stays silent."""
        assert not self.due
        await wait_cycles(self.dut, 3 * self.cycles_given)
        await self.expect([])
        for counter in ("overdue", "partial", "evictions"):
            await self.read(counter)

    async def evict_last(self, vid):
        """Evicts the last rank of job 0, which contributes one more chunk and then stops; returns
        the VID of the eviction.

        The rank had contributed to all earlier chunks. The other ranks advance as far as the
        slots allow.
        """
        job, last = self.blocks[0].job, self.ports - 1
        await self.data(last, vid)
        stuck = max(vid - job.window + 1, job.parameters[3])  # its first unproven chunk
        for chunk in range(vid, stuck + 2 * job.window):
            for rank in range(last):
                await self.data(rank, chunk)
            while self.due:
                await self.pass_deadline()
        await self.data(0, stuck + 2 * job.window)
        while self.due:
            await self.pass_deadline()
        assert self.blocks[0].evicted == {last}
        return stuck

    async def holds(self, name, job=0):
        """Returns the value of a register that the model does not follow."""
        reply = await self.register({"kind": zwire.KIND_REGREAD, "vid": model.address_of(name, job), "length": 0})
        return reply["mask"]

    async def lags(self, rank, job=0):
        """Returns the rank's histogram."""
        places = [model.lag_address(job, rank, bucket) for bucket in range(model.LAG_BUCKETS)]
        return [await self.access({"kind": zwire.KIND_REGREAD, "vid": place, "length": 0}) for place in places]

    # The card's packets

    def came_partial(self, vid, mask, began):
        """Checks that all results since packet number began are the chunk's partial sum of these
        ranks."""
        headers = [header for _, (header, _, _) in self.came[began:] if header["kind"] != zwire.KIND_STATUS]
        assert headers and all((h["vid"], h["mask"]) == (vid % 2**32, mask) for h in headers)
        assert all(h["flags"] & zwire.FLAG_PARTIAL for h in headers)

    def notices(self, code, began=0):
        """Returns rank, VID and mask of each notice with that code since packet number began."""
        headers = [header for _, (header, _, _) in self.came[began:] if header["kind"] == zwire.KIND_STATUS]
        return sorted((h["rank"], h["vid"], h["mask"]) for h in headers if h["code"] == code and h["mask"])


class ClockedBareCard(Clocked, BareCard):
    pass


class ClockedLinkCard(Clocked, LinkCard):
    pass


async def connect(dut, idle="never", stall="never"):
    shell = ClockedBareCard if manifest()["shell"] == "none" else ClockedLinkCard
    card = shell(dut, PATTERNS[idle], PATTERNS[stall])
    if idle != "never" or stall != "never":
        card.slack = STALLED
    await card.reset()
    await card.measure()
    return card


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def who_waits_is_told_for_whom(dut):
    card = await connect(dut)
    window, last = card.window // card.jobs, card.ports - 1
    rest = range(last)
    first = 2**32 - 1
    await card.set_up(2, window=window, first=first, token=TOKEN, deadline=card.cycles_given)
    began = len(card.came)
    for rank in rest:
        await card.data(rank, first)
    for times in (1, 2, 3):
        await card.pass_deadline()
        told = sorted([(rank, first, 1 << last) for rank in rest] * times)
        assert card.notices(zwire.CODE_OVERDUE, began) == told
        assert await card.read("overdue") == times
    await card.data(last, first)
    await card.nothing_is_due()
    # A slot that has refused to turn over waits for the members that are not done with it.
    began = len(card.came)
    await card.data(0, first + 2 * window)
    assert await card.read("not_ready") == 1
    await card.pass_deadline()
    assert card.notices(zwire.CODE_OVERDUE, began) == [(0, first, (1 << card.ports) - 2)]
    began = len(card.came)
    for rank in rest:
        await card.data(rank, first + window)  # proves that the rank holds the first chunk
    await card.pass_deadline()
    told = [notice for notice in card.notices(zwire.CODE_OVERDUE, began) if notice[1] == first]
    assert told == [(rank, first, 1 << last) for rank in rest]
    await card.data(last, first + window)
    await card.nothing_is_due()
    for rank in range(card.ports):
        await card.data(rank, first + 2 * window)
    await card.write("JOB_ABORT", 2 << 32)
    await card.check_registers()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def who_is_late_is_left_out_and_who_stays_away_is_evicted(dut):
    card = await connect(dut)
    window, last = card.window // card.jobs, card.ports - 1
    rest, everyone = range(last), (1 << card.ports) - 1
    await card.set_up(2, window=window, first=5, token=TOKEN, deadline=PARTIAL | card.cycles_given)
    vid = 5

    async def without_the_last():
        nonlocal vid
        began = len(card.came)
        for rank in rest:
            await card.data(rank, vid)
        await card.pass_deadline()
        card.came_partial(vid, everyone ^ 1 << last, began)
        vid += 1

    # A little late: the contribution is answered with the sum that lacks it.
    await without_the_last()
    began = len(card.came)
    await card.data(last, vid - 1)
    card.came_partial(vid - 1, everyone ^ 1 << last, began)
    for rank in range(card.ports):
        await card.data(rank, vid)
    assert card.came[-1][1][0]["mask"] == everyone and not card.came[-1][1][0]["flags"] & zwire.FLAG_PARTIAL
    vid += 1
    # Late by a window, which blocks nobody.
    for _ in range(window):
        await without_the_last()
    for behind in range(vid - window, vid):
        await card.data(last, behind)
    assert await card.read("partial") == window + 1
    # Late forever: the other ranks advance as far as the slots allow.
    began = len(card.came)
    stuck = await card.evict_last(vid)
    vid = stuck + 2 * window
    assert card.notices(zwire.CODE_EVICTED, began) == [(rank, stuck, 1 << last) for rank in range(card.ports)]
    assert await card.read("JOB_EVICTED") == 1 << last
    await card.nothing_is_due()
    # Each of its packets is refused, and answered if the last answer is long ago.
    before = await card.read("evicted")
    for kind in (zwire.KIND_DATA, zwire.KIND_ASK, zwire.KIND_FINISH):
        await wait_cycles(dut, 1100)
        if kind == zwire.KIND_DATA:
            await card.data(last, vid)
        else:
            await card.send_kind(kind, last, vid)
        header = card.came[-1][1][0]
        assert (header["kind"], header["code"], header["rank"]) == (zwire.KIND_STATUS, zwire.CODE_EVICTED, last)
    assert await card.read("evicted") == before + 3
    # The remaining ranks go on without waiting.
    for vid in range(vid, vid + 3 * window):
        for rank in rest:
            assert not card.due or rank
            await card.data(rank, vid)
        card.came_partial(vid, everyone ^ 1 << last, len(card.came) - (1 if card.model.shared else last))
    for rank in rest:
        await card.send_kind(zwire.KIND_FINISH, rank, vid + 1)
    assert await card.read("JOB_STATE") & 1 == 0
    await card.read("JOB_EVICTED")
    await card.send_kind(zwire.KIND_FINISH, last, vid + 1)
    await card.send_kind(zwire.KIND_FINISH, 0, vid + 1)
    # All ranks return in a new epoch.
    await card.set_up(3, window=window, first=vid + 1, token=TOKEN, deadline=PARTIAL | card.cycles_given)
    assert await card.read("JOB_EVICTED") == 0
    for rank in range(card.ports):
        await card.data(rank, vid + 1)
    assert card.came[-1][1][0]["mask"] == everyone
    await card.write("JOB_ABORT", 3 << 32)
    await card.check_registers()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def sums_hold_what_the_evicted_gave(dut):
    """A rank is evicted while chunks with its contributions are collected, before or after the
    others finish."""
    card = await connect(dut)
    window, last = card.window // card.jobs, card.ports - 1
    rest, everyone = range(last), (1 << card.ports) - 1
    for epoch in (2, 3):
        finish_first = epoch == 3
        await card.set_up(epoch, window=window, token=TOKEN, deadline=PARTIAL | 2 * card.cycles_given)
        for rank in range(card.ports):
            await card.data(rank, 0)
        await card.data(0, 2 * window)  # refused
        for rank in rest:
            await card.data(rank, window)  # proves that the rank holds the first chunk
        if finish_first:
            for rank in rest:
                await card.send_kind(zwire.KIND_FINISH, rank, window)
        elif window > 1:
            await card.data(last, window - 1)
        await card.pass_deadline()
        while card.due:
            await card.pass_deadline()
        assert await card.read("JOB_EVICTED") == 1 << last
        assert await card.read("JOB_STATE") & 1 == (not finish_first)
        if not finish_first and window > 1:
            assert card.blocks[0].job.slot(window - 1).held.keys() == {last}
    await card.check_registers()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def the_rest_goes_on_at_full_rate(dut):
    """As fast as a job that never included the evicted member."""
    card = await connect(dut)
    window, last = card.window // card.jobs, card.ports - 1
    rest = range(last)

    async def cycles_of(count, first):
        """Returns the cycles that the remaining ranks need for count chunks, each sent as soon
        as the window allows; checks the sums."""
        block, got, began = card.blocks[0], {rank: {first - 1} for rank in rest}, card.cycle
        payloads = [[elements(card.rng, card.chunk, card.format) for _ in rest] for _ in range(count)]

        def take(header, payload, port):
            assert header["kind"] == zwire.KIND_RESULT and header["mask"] == (1 << last) - 1
            bits = [card.format.elements(p) for p in payloads[header["vid"] - first]]
            assert payload == card.result.payload(card.arithmetic.sum([*bits, None])[0])
            for rank in card.receivers(block.members, header, port):
                got[rank].add(header["vid"])

        async def run(rank):
            for vid in range(first, first + count):
                while vid - window >= first and vid - window not in got[rank]:
                    await ClockCycles(dut.clk, 1)
                card.send(block.members[rank], data_header(card, rank, vid, block.last_epoch), payloads[vid - first][rank])
            while first + count - 1 not in got[rank]:
                await ClockCycles(dut.clk, 1)

        card.beside[0] = take
        await Combine(*[cocotb.start_soon(run(rank)) for rank in rest])
        del card.beside[0]
        return card.cycle - began

    await card.set_up(2, ports=(1 << last) - 1, window=window, token=TOKEN)
    alone = await cycles_of(40, 0)
    await card.set_up(3, window=window, token=TOKEN, deadline=PARTIAL | card.cycles_given)
    stuck = await card.evict_last(0)
    assert await card.read("JOB_EVICTED") == 1 << last
    assert await cycles_of(40, stuck + 2 * window) <= alone + 8


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(partial=[0, PARTIAL])
async def a_job_beside_it_is_not_disturbed(dut, partial):
    """The workers of a job without a deadline lose and repeat packets, while members of another
    job are absent."""
    card = await connect(dut)
    if card.jobs == 1:
        return
    window, last, everyone = card.window // 2, card.ports - 1, (1 << card.ports) - 1
    D = 400
    beside = Reduction(card, card.rng, 60, 9, 1, window=window, first=2**32 - 9)
    await card.set_up(2, window=window, token=TOKEN, deadline=partial | D)
    assert await beside.set_up(TOKEN)
    came = []
    card.beside = {0: lambda *packet: came.append(packet), 1: beside.take}
    running = cocotb.start_soon(beside.reduce())
    job, payload = card.blocks[0].job, elements(card.rng, card.chunk, card.format)
    for vid in range(2 * window + 1):
        for rank in range(last):
            card.send(job.members[rank], data_header(card, rank, vid, 2), payload)
        if vid == 0:
            card.send(job.members[last], data_header(card, last, vid, 2), payload)
        await wait_cycles(dut, 2 * D)
    await running
    await beside.finish()
    await card.quiet()
    headers = [packet[0] for packet in came]
    assert {h["mask"] for h in headers if h["kind"] == zwire.KIND_RESULT} == ({everyone, everyone ^ 1 << last} if partial else {everyone})
    codes = [h["code"] for h in headers if h["kind"] == zwire.KIND_STATUS and h["mask"]]
    if partial:
        assert codes == [zwire.CODE_EVICTED] * card.ports
    else:
        assert len(codes) > 4 and set(codes) == {zwire.CODE_OVERDUE}
    for name, value in beside.counts().items():
        assert await card.holds(name, 1) == value
    for rank in range(card.ports):
        assert sum(await card.lags(rank, 1)) == 60


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def lags_are_counted_by_powers_of_four(dut):
    """Contributions arrive at given distances, including both sides of each bucket's bounds."""
    card = await connect(dut)
    # On a link, a frame takes longer than the shorter of these.
    gaps = [gap for power in range(7) for gap in (4**power - 1, 4**power) if gap > (card.calm() if card.model.shared else 0)]
    await card.set_up(2, window=1, token=TOKEN)
    block = card.blocks[0]
    want = {rank: [0] * model.LAG_BUCKETS for rank in range(card.ports)}
    for vid, (gap, again) in enumerate([*itertools.product(gaps[-1:], gaps[:4]), *zip(gaps, [*gaps[1:], gaps[0]])]):
        ranks = card.rng.sample(range(card.ports), card.ports)
        entered, expected = {}, []
        for rank, cycles in zip(ranks, [0, gap, *[again] * card.ports]):
            await wait_cycles(dut, cycles)
            header = {"version": zwire.VERSION, "flags": 0} | data_header(card, rank, vid, 2)
            payload = elements(card.rng, card.chunk, card.format)
            card.send(block.members[rank], header, payload)
            expected += card.model.packet(block.members[rank], header, payload)
            if card.model.shared:
                entered[rank] = await card.drained(block.members[rank])
        await card.expect(expected)
        for rank in ranks:
            entered[rank] = entered.get(rank) or card.entered(block.members[rank])
            want[rank][model.lag_bucket(entered[rank] - entered[ranks[0]])] += 1
    for rank in range(card.ports):
        assert await card.lags(rank) == want[rank]
        assert sum(want[rank]) == block.stored[rank]
    # Repeats are not counted. The histogram survives the job's end; a new set-up clears it.
    await card.data(0, vid)
    await card.write("JOB_ABORT", 2 << 32)
    for rank in range(card.ports):
        assert await card.lags(rank) == want[rank]
    await card.set_up(3, token=TOKEN)
    for rank in range(card.ports):
        assert await card.lags(rank) == [0] * model.LAG_BUCKETS


class LateTraffic(Traffic):
    """Random packets, where some ranks of each job send little, and deadlines pass more often
    than usual."""

    def __init__(self, card, rng):
        given = [card.cycles_given, *(PARTIAL | times * card.cycles_given for times in (1, 1, 2)), 0]
        super().__init__(card, rng, given)
        self.present = {}  # by job and epoch: the ranks that send

    async def step(self):
        if self.card.due and self.rng.random() < 0.1:
            await self.card.pass_deadline()
        else:
            await super().step()

    async def progress(self):
        """Sends data of an active rank, for a slot that lacks it, or the next chunk of the
        oldest slot."""
        rng, job = self.rng, self.job
        if job is None:
            return await self.near()
        key = (self.block.number, self.epoch)
        if key not in self.present or rng.random() < 0.03:
            self.present[key] = rng.sample(range(job.ranks), rng.randint(1, job.ranks))
        rank = rng.choice(self.present[key])
        lacking = [slot for slot in job.slots if slot.state == model.COLLECTING and rank not in slot.held]
        if lacking and rng.random() < 0.7:
            return await self.data(rank, rng.choice(lacking).vid)
        slot = min(job.slots, key=lambda s: (s.vid - job.parameters[3] + 2 * len(job.slots)) % 2**32)
        await self.data(rank, slot.vid + len(job.slots))

    async def end_job(self):
        if self.rng.random() < 0.5:
            await super().end_job()


@cocotb.test(timeout_time=40, timeout_unit="ms")
@cocotb.parametrize((("idle", "stall"), [("never", "never"), ("bursts", "at_random")]))
async def answers_like_the_model(dut, idle, stall):
    """Random packets of jobs with and without deadlines and partial sums."""
    card = await connect(dut, idle, stall)
    traffic = LateTraffic(card, random.Random(f"{idle} {stall}"))
    most = dict.fromkeys(["overdue", "partial", "evictions", "evicted"], 0)  # a reset clears the counters
    for steps in range(3000):
        await traffic.step()
        most = {name: max(value, card.model.counters[name]) for name, value in most.items()}
        if steps >= 250 and all(most.values()):
            break
    assert all(most.values()), f"not met: {most}"
    await card.check_registers()
    for block in card.blocks:
        for rank in range(len(block.members)):
            assert sum(await card.lags(rank, block.number)) == block.stored[rank]


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def slots_that_fall_due_together_are_all_found(dut):
    """One rank contributes to every slot's chunk, as fast as it can."""
    card = await connect(dut)
    window = card.window // card.jobs
    await card.set_up(2, window=window, token=TOKEN, deadline=PARTIAL | card.cycles_given)
    block, expected = card.blocks[0], []
    for vid in range(2 * window):
        header = {"version": zwire.VERSION, "flags": 0} | data_header(card, 0, vid, 2)
        payload = elements(card.rng, card.chunk, card.format)
        card.send(0, header, payload)
        expected += card.model.packet(0, header, payload)
    entered = await card.drained(0)
    assert await card.holds("partial") == 0
    began = len(card.came)
    await wait_cycles(dut, card.cycles_given - (card.cycle - entered))
    for vid in range(2 * window):
        expected += card.model.overdue(0, vid)
    await card.expect(expected)
    # Each slot is found and summed after the ones before it, and its result follows theirs.
    frame = card.paths[zwire.KIND_RESULT]
    latest = entered + card.cycles_given + 2 * card.window + 4 * 2 * window + 2 * window * frame
    assert card.came[began][0] < card.came[-1][0] <= latest + SLACK
    assert block.stored[0] == 2 * window == sum(await card.lags(0))
    assert await card.read("overdue") == await card.read("partial") == 2 * window


class LateReduction(Reduction):
    """A reduction whose workers are sometimes absent for longer than the deadline."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.workers = [LateWorker(self, rank) for rank in range(len(self.members))]
        self.sums = {}  # by chunk: its mask, flags and payload

    async def run(self):
        """Returns when all ranks that were not evicted have finished."""
        await Combine(*[cocotb.start_soon(worker.run()) for worker in self.workers])

    def take(self, header, payload, port):
        if header["kind"] == zwire.KIND_STATUS:
            return self.workers[header["rank"]].take_status(header, port)
        chunk, mask = (header["vid"] - self.first) % 2**32, header["mask"]
        if chunk not in self.sums:
            self.sums[chunk] = self.sum_of(chunk, mask)
            assert self.deadline & PARTIAL or mask == (1 << len(self.members)) - 1
        assert (mask, header["flags"], payload) == self.sums[chunk]
        workers = [self.workers[rank] for rank in self.card.receivers(self.members, header, port)]
        if any(chunk in worker.sent for worker in workers):
            assert header["kind"] == zwire.KIND_REPLAY, f"chunk {chunk} came again as a result"
        for worker in workers:
            worker.take_result(chunk)

    def sum_of(self, chunk, mask):
        """Returns mask, flags and payload of the chunk's result for the sum of these ranks."""
        ranks = [rank for rank in range(len(self.members)) if mask >> rank & 1]
        inputs, format = [None] * self.card.ports, self.card.format
        for rank in ranks:
            inputs[self.members[rank]] = format.elements(self.data.payloads[chunk][rank])
        total, _ = self.card.arithmetic.sum(inputs)
        strange = self.data.strange(chunk)
        flags = model.merge_ecn([self.data.ecn[chunk][rank] for rank in ranks])
        flags |= zwire.FLAG_NONFINITE if any(strange[rank] for rank in ranks) else 0
        flags |= zwire.FLAG_PARTIAL if len(ranks) < len(self.members) else 0
        return mask, flags, self.card.result.payload(total)


class LateWorker(Worker):
    """A worker that is sometimes absent, and stops after its eviction."""

    def __init__(self, *args):
        super().__init__(*args)
        self.evicted = False

    async def run(self):
        most, deadline = 2 * self.reduction.chunk // self.card.lanes, self.reduction.deadline % PARTIAL
        while len(self.got) < len(self.data) and not self.evicted:
            self.act()
            away = self.rng.choice([0, 1, 4]) * deadline if self.rng.random() < 0.05 else 0
            await wait_cycles(self.card.dut, away + self.rng.randint(1, most))
        while not self.finished and not self.evicted:
            self.send(zwire.KIND_FINISH, len(self.data))
            await wait_cycles(self.card.dut, 200)

    def take_status(self, header, port):
        if header["code"] == zwire.CODE_EVICTED:
            self.evicted |= header["mask"] in (0, header["mask"] | 1 << self.rank)
        elif header["code"] == zwire.CODE_BAD_JOB and len(self.got) < len(self.data):
            self.evicted = True  # the job ended without its finish, and it missed the notice
        elif header["code"] == zwire.CODE_OVERDUE:
            assert header["mask"] and not header["mask"] >> self.rank & 1
        elif header["code"] != zwire.CODE_WAIT:
            super().take_status(header, port)

    def take_result(self, chunk):
        if chunk < self.next:
            super().take_result(chunk)
        self.sent.add(chunk)


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize((("deadline", "stall"), [(1, "never"), (60, "at_random"), (300, "never")]))
async def workers_that_stay_away_at_times(dut, deadline, stall):
    """All jobs at once: contributions meet deadlines in every way, and each sum matches the
    ranks in its mask."""
    card = await connect(dut, stall=stall)
    card.rng = random.Random(f"{deadline} {stall}")
    reductions = []
    cocotb.start_soon(deliver(card, reductions))
    partial = evicted = 0
    for epoch in range(2, 20):
        fresh = []
        for job in range(card.jobs):
            given = deadline | (PARTIAL if job == 0 else 0)
            window = card.window // card.jobs
            fresh.append(LateReduction(card, card.rng, 20, epoch, job, window=window, first=2**32 - 7, deadline=given))
            assert await fresh[-1].set_up(TOKEN)
        reductions += fresh
        await Combine(*[cocotb.start_soon(reduction.run()) for reduction in fresh])
        await card.quiet()
        for reduction in fresh:
            assert await card.holds("JOB_STATE", reduction.job) & 1 == 0
            gone = model.mask_of(worker.rank for worker in reduction.workers if worker.evicted)
            assert await card.holds("JOB_EVICTED", reduction.job) == gone
            assert len(reduction.sums) == len(reduction.data)
            masks = [mask for mask, _, _ in reduction.sums.values()]
            for rank in range(card.ports):
                assert sum(await card.lags(rank, reduction.job)) == sum(mask >> rank & 1 for mask in masks)
            partial += sum(mask != (1 << card.ports) - 1 for mask in masks)
            evicted += gone.bit_count()
        if epoch > 3 and partial and evicted:
            break
    assert partial and evicted
    assert await card.holds("partial") == partial
