"""Whole cards with bare ports whose cores have agg_release: the order of results at every port, by
section 5 of driver/wire/ROCE.md; their values; rates."""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge
from test_top_rate import chunks_follow_without_a_bubble, the_latency_is_the_manifests, without_bubble  # noqa: F401: tests

import model
import zwire
from bench import number
from cards import BareCard, run_card, usual
from streams import PATTERNS
from traffic import Contributions, data_header

EPOCH = 7
CHUNKS = 40

RATES = ["the_latency_is_the_manifests", "chunks_follow_without_a_bubble"]

CARDS = {
    "three_ports": (["-lanes", 2, "-workers", 3, "-chunk", 16, "-window", 16], RATES),
    "one_port": (["-lanes", 1, "-workers", 1, "-chunk", 6, "-window", 16], RATES),
    "six_ports": (["-lanes", 1, "-workers", 6, "-chunk", 12, "-window", 16], RATES),
    "two_jobs": (["-lanes", 2, "-workers", 3, "-chunk", 16, "-window", 16, "-jobs", 2], ["two_jobs_share_the_core"]),
    "short": (["-lanes", 4, "-workers", 3, "-chunk", 4, "-window", 4], []),
}
ORDER = [f"every_port_gets_its_results_in_order/idle={i}/stall={s}" for i in PATTERNS for s in ("never", "at_random", "bursts")]
DIRECTED = ["a_lost_contribution_is_missed_by_its_port_alone"]


@pytest.mark.parametrize("card", usual(CARDS, "three_ports", "short"))
def test_top_release(card):
    flags, tests = CARDS[card]
    run_card(
        f"release_{card}",
        [*flags, "-shell", "none", "-registers", "bus"],
        testcase=[*tests, *ORDER, *DIRECTED],
        generator=("go", "run", "./verify/gateware/releasing"),
    )


class Job:
    """What the specification says of a job's connections, as far as the order of events is known."""

    def __init__(self, card, number, rng):
        self.number, self.data = number, Contributions(card, rng, CHUNKS)
        self.next = [0] * card.ports
        self.jumped = [False] * card.ports
        self.has = [set() for _ in range(card.ports)]  # VIDs that were sent to the card, by port
        self.debts = [[] for _ in range(card.ports)]  # VIDs sent again
        self.rules = [0] * 4


class Card(BareCard):
    """A card whose results are checked as they leave; the model of SPEC has another order."""

    def __init__(self, dut, idle=PATTERNS["never"], stall=PATTERNS["never"], seed=1):
        super().__init__(dut, idle, stall)
        self.work = [Job(self, job, random.Random(seed + job)) for job in range(self.jobs)]
        self.early = 0
        self.unslotted = 0

    async def reset(self):
        await super().reset()
        for job in range(self.jobs):
            await self.set_up(EPOCH, job=job, window=self.window // self.jobs)
        self.base = [block.job.base for block in self.model.blocks]
        cocotb.start_soon(self._watch())

    async def _judge(self):
        """Verdicts are checked elsewhere."""

    async def quiet(self):
        self.unjudged = [[] for _ in self.sources]
        await super().quiet()

    async def _watch(self):
        """Checks the slot beside every beat of a result, and counts releases of rule 2."""
        dut = self.dut
        while True:
            await RisingEdge(dut.clk)
            self.early += number(dut.unused_released_early)
            if number(dut.out_tdest) and number(dut.out_tkeep):
                header = model.unpack(number(dut.out_tuser).to_bytes(30, "little")[:22])
                slots = 2 * self.window // self.jobs
                slot = self.base[header["job"]] + header["vid"] % slots
                assert number(dut.unused_m_axis_tslot) == slot, f"slot of VID {header['vid']}"
                self.unslotted += 1

    def arrived(self, packet):
        """Checks a packet as it leaves: next, or next + 1 once, or one that is owed again."""
        header, payload, port = packet
        self.sent.append(packet)
        if header["kind"] == zwire.KIND_STATUS:
            return
        job, vid = self.work[header["job"]], header["vid"]
        assert payload == job.data.sum(vid), f"VID {vid} at port {port}"
        assert header["flags"] == job.data.flags(vid)
        if header["kind"] == zwire.KIND_REPLAY:
            assert vid < job.next[port], "a replay of what was not released"
            job.debts[port].remove(vid)
            rule = 3
        elif vid == job.next[port]:
            job.next[port], job.jumped[port], rule = vid + 1, False, 1
        else:
            assert vid == job.next[port] + 1 and not job.jumped[port], f"VID {vid} at port {port}, next is {job.next[port]}"
            job.jumped[port], rule = True, 2
        job.rules[rule] += 1

    def contribute(self, job, port, vid):
        """Sends a contribution, once more if the card has it."""
        if vid in job.has[port]:
            job.debts[port].append(vid)
        job.has[port].add(vid)
        header = data_header(self, port, vid, EPOCH, job.number) | {"flags": job.data.ecn[vid][port]}
        self.send(port, header, job.data.payloads[vid][port])


def fits(card, job, port, vid):
    """Whether a worker may send a VID: it has VID - window, and so have all by their next VIDs."""
    window = card.window // card.jobs
    return vid < CHUNKS and vid - window < job.next[port] and all(n > vid - 2 * window for n in job.next)


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=["never", "at_random", "bursts"])
async def every_port_gets_its_results_in_order(dut, idle, stall):
    """Contributions lost and repeated, by go-back-N: each port gets every sum once by rule 1.

    Only what may be sent is lost. A port that went back for other VIDs, too, would repeat for ever: its
    replays, which go first, would take all of its output.
    """
    rng = random.Random(f"{idle} {stall}")
    card = Card(dut, PATTERNS[idle], PATTERNS[stall])
    await card.reset()
    at = {(job.number, port): 0 for job in card.work for port in range(card.ports)}
    dark = set()  # VIDs lost for now
    while any(n < CHUNKS for job in card.work for n in job.next):
        job, port = rng.choice(card.work), rng.randrange(card.ports)
        key, vid = (job.number, port), at[job.number, port]
        if card.queued[port] - len(card.sources[port].accepted_at) > 2 * card.manifest["beats"]:
            await ClockCycles(dut.clk, 4)
        elif fits(card, job, port, vid):
            if vid not in job.has[port] and rng.random() < 0.1:
                dark.add((*key, vid))
            else:
                card.contribute(job, port, vid)
            at[key] += 1
        else:  # back to the first that was lost, or to one that is still in its slot
            lost = [v for j, p, v in dark if (j, p) == key and v not in job.has[port]]
            oldest = max(0, max(job.next) - card.window // card.jobs)
            if lost or rng.random() < 0.02:
                at[key] = min([*lost, max(oldest, vid - rng.randint(1, 3))])
            await ClockCycles(dut.clk, 4)
    await card.quiet()
    for job in card.work:
        assert job.next == [CHUNKS] * card.ports
        assert job.rules[1] == CHUNKS * card.ports
    assert card.early == sum(job.rules[2] for job in card.work)
    assert card.unslotted


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def a_lost_contribution_is_missed_by_its_port_alone(dut):
    """VID 1 of the last port is lost: that port gets VID 2 early, once; the others wait for VID 1."""
    card = Card(dut)
    await card.reset()
    job, late = card.work[0], card.ports - 1
    for vid in range(min(4, card.window // card.jobs)):
        for port in range(card.ports):
            if (port, vid) != (late, 1):
                card.contribute(job, port, vid)
    await card.quiet()
    assert [(p, h["vid"]) for h, _, p in card.sent if h["vid"]] == [(late, 2)]
    assert card.early == 1
    card.contribute(job, late, 1)
    await card.quiet()
    assert job.next == [min(4, card.window // card.jobs)] * card.ports and card.early == 1
    for port in range(card.ports):
        card.contribute(job, port, 3)
    await card.quiet()
    assert job.rules[3] == card.ports and not any(job.debts)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def two_jobs_share_the_core(dut):
    """Both jobs saturated: a beat a cycle enters and leaves every port, and neither job gets ahead.

    agg_turns may once let a job pick whose sum is the later one: that costs the beats of a result.
    """
    card = Card(dut)
    await card.reset()

    async def work(port):
        for vid in range(CHUNKS):
            for job in card.work:
                while not fits(card, job, port, vid):
                    await ClockCycles(dut.clk, 1)
                card.contribute(job, port, vid)

    for port in range(card.ports):
        cocotb.start_soon(work(port))
    while any(n < CHUNKS for job in card.work for n in job.next):
        await ClockCycles(dut.clk, 4)
    await card.quiet()
    beats = card.manifest["beats"]
    count = CHUNKS * card.jobs * beats
    for port in range(card.ports):
        assert without_bubble(card.sources[port].accepted_at, count), f"bubbles into port {port}"
        assert without_bubble(card.sinks[port].taken_at, count, beats), f"bubbles out of port {port}"
        ahead = 0  # results of job 1 more than of job 0
        for header, _, to in card.sent:
            if to == port:
                ahead += 2 * header["job"] - 1
                assert abs(ahead) <= 2, f"job {header['job']} gets ahead at port {port}"
