"""A window of 128 chunks: later chunks, and the jobs that follow, use its 256 slots again.

The other benches of whole cards have short windows. Here the VIDs of a job pass all slots twice.
Then the job ends, and others begin in the same slots. Meanwhile a port sends packets to a job that
is not set up. Their verdicts show for how long the commit pauses.
"""

import random

import cocotb
from cocotb.triggers import RisingEdge

import zwire
from bench import wait_cycles
from cards import BareCard, run_card
from traffic import TOKEN, data_header
from workers import Reduction, deliver

EPOCH = 5
STRANGER = 3  # the number of a job that is not set up
RUN = 900  # cycles after which a running job is ended


def test_top_long_window():
    run_card("long_window", "-jobs 4 -lanes 1 -workers 3 -chunk 2 -window 128 -shell none -registers bus".split())


class Bench(BareCard):
    """The card, and jobs that use all its slots."""

    def __init__(self, dut):
        super().__init__(dut)
        self.data = random.Random(1)
        self.slots = self.manifest["slots"]
        self.reductions = []

    async def reset(self):
        await super().reset()
        cocotb.start_soon(deliver(self, self.reductions))

    async def begin(self, job, epoch, chunks):
        """Sets up a job of all ports, with the largest window."""
        reduction = Reduction(self, self.data, chunks, epoch, job, first=2**32 - self.slots - 7)
        assert await reduction.set_up(TOKEN)
        assert await self.read("JOB_SLOTS", job) == self.slots << 16
        self.reductions.append(reduction)
        return reduction

    async def finish(self, reduction):
        """All ranks finish, which ends the job."""
        await reduction.finish()
        for rank, port in enumerate(reduction.members):
            self.model.packet(port, reduction.header(zwire.KIND_FINISH, rank, 0) | {"version": zwire.VERSION})

    async def check_pause(self, ending):
        """Awaits the coroutine, which ends a job, and returns its result.

        Checks that the commit pauses for the clearing of the slots, and for no longer than the
        manifest allows. After the pause, each port has its turn.
        """
        judged_at = []
        tasks = [cocotb.start_soon(self._send_to_stranger()), cocotb.start_soon(self._watch(judged_at))]
        result = await ending
        await wait_cycles(self.dut, 2 * self.slots)  # the end may only begin now
        for task in tasks:
            task.cancel()
        cost = self.manifest["throughput"]
        longest = max(later - at for at, later in zip(judged_at, judged_at[1:]))
        most = cost["clear_cycles"] + cost["commit_spacing"] * self.ports
        assert self.slots <= longest <= most, f"the commit pauses for {longest} cycles"
        return result

    async def _send_to_stranger(self):
        """Sends packets without end from one port.

        The rank is another port's, so the card refuses them without an answer.
        """
        header = data_header(self, 1, 0, EPOCH, STRANGER)
        while True:
            while len(self.sources[0].queue) < 8:
                self.send(0, header, bytes(self.format.bytes * self.chunk))
            await RisingEdge(self.dut.clk)

    async def _watch(self, judged_at):
        """Notes the cycles of all verdicts."""
        while True:
            await RisingEdge(self.dut.verdict_valid)
            judged_at.append(self.cycle)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def later_chunks_and_jobs_use_all_slots_again(dut):
    card = Bench(dut)
    await card.reset()
    first = await card.begin(0, EPOCH, chunks=2 * card.slots + 9)
    await first.reduce()
    await card.check_pause(card.finish(first))

    second = await card.begin(1, EPOCH, chunks=2 * card.slots)
    running = cocotb.start_soon(second.reduce())
    await wait_cycles(dut, RUN)
    second.ended = True
    await card.check_pause(card.write("JOB_ABORT", 1 << 48 | EPOCH << 32))
    await running

    third = await card.begin(2, EPOCH, chunks=2 * card.slots)
    running = cocotb.start_soon(third.reduce())
    await wait_cycles(dut, RUN)
    third.ended = True
    fourth = await card.check_pause(card.begin(2, EPOCH + 1, chunks=card.slots + 9))
    await running
    await fourth.reduce()
    await card.finish(fourth)
    await card.quiet()
