"""The bench of test_top_parent.py, on the Python model in place of the gateware: a right card passes, and cards with a
fault do not."""

import collections
import random

import cocotb
import pytest

import model
import tree_model
import zwire
from arithmetic import Arithmetic
from bench import run, start, wait_cycles
from cards import REFUSAL_CYCLES, CardBench, is_refusal, whole
from tree_model import WAITING
from tree_traffic import TreeBench, TreeTraffic
from tree_workers import reduce_in_a_tree

SIZES = {"lanes": 1, "ports": 3, "chunk": 2, "window": 4}
JOBS = 2


def test_tree_bench():
    run("agg_delay")  # which has a clock


class ModelCard(TreeBench, CardBench):
    """A card that is a second model. Packets wait at its ports, and what it sends leaves some time later."""

    SETTLE = 60

    def __init__(self, dut, rng, core):
        """core: the class of the second model."""
        self.dut, self.rng = dut, rng
        self.arithmetic = Arithmetic()
        self.format = self.result = self.arithmetic.format
        for name, value in {**SIZES, "jobs": JOBS}.items():
            setattr(self, name, value)
        self.manifest = {"undecided": {"element_cycles": 0}}
        self.model, self.core = (
            of(*SIZES.values(), {"LINK": 0, "LATENCY": 0}, False, self.arithmetic, JOBS) for of in (self.MODEL, core)
        )
        self.sent, self.moved, self.refused, self.statuses_left_out = [], 0, -(10**9), 0
        self.queues = [collections.deque() for _ in range(self.ports + 1)]
        self.leaving = [collections.deque() for _ in range(self.ports + 1)]
        self.answered = -REFUSAL_CYCLES  # when the last refusal left
        self.verdicts, self.sources = [], self.queues
        cocotb.start_soon(self._run())

    async def _run(self):
        """Processes packets in any order of the ports, and sends in any order of the ports."""
        while True:
            await wait_cycles(self.dut, self.rng.randint(1, 4))
            entering = [port for port, queue in enumerate(self.queues) if queue]
            if entering and self.rng.random() < 0.7:
                self._take(self.rng.choice(entering))
            ready = [queue for queue in self.leaving if queue]
            if ready:
                self.sent.append(self.rng.choice(ready).popleft())
                self.moved = self.cycle

    def _take(self, port):
        self.core.span = self.cycle, self.cycle
        packets = self.core.packet(port, *self.queues[port].popleft())
        for choice in self.core.choices:
            taken = self.rng.random() < 0.7 or choice.debt.ignored is not None
            self.core.choose(choice, taken)
            packets += [choice.packet] * taken
        for packet in self.expand(packets):
            if is_refusal(packet[0]):
                if self.cycle - self.answered < REFUSAL_CYCLES:
                    self.core.counters["statuses"] -= 1
                    continue
                self.answered = self.cycle
            self.leaving[packet[2]].append(packet)
        self.moved = self.cycle

    def calm(self):
        return self.SETTLE

    def busy(self):
        return any(self.queues) or any(self.leaving)

    def idle(self, port):
        return not self.queues[port]

    def receivers(self, members, header, port):
        return [members.index(port)]

    def count_access(self):
        """Counts no frame: there is no link."""

    async def register(self, header):
        reply, _, _ = self.core.register(header)
        await wait_cycles(self.dut, 2)
        return {"code": reply["code"], "mask": reply["mask"]}

    def expand(self, expected):
        return [
            ({"mask": 0} | whole(header, False), payload, port)
            for header, payload, ports in expected
            for port in range(self.ports + 1)
            if ports >> port & 1
        ]

    def send(self, port, header, payload=b"", bad=False):
        header = {**dict.fromkeys(zwire.FIELDS, 0), "version": zwire.VERSION, **header}
        self.queues[port].append((header, payload, bad))

    def check_verdict(self, port, header):
        """It reports none."""


class Leaks(tree_model.TreeCard):
    """Sends the own sum to the members, too."""

    def _reduce(self, block, slot):
        super()._reduce(block, slot)
        if slot.state == WAITING:
            slot.owed = {0}


class Trusts(tree_model.TreeCard):
    """Takes finals of any mask."""

    def _final_sum(self, block, header, payload):
        return super()._final_sum(block, header | {"mask": self.setups[block.number].ranks}, payload)


class TakesDamaged(tree_model.TreeCard):
    """Takes finals whose payload is damaged."""

    def _from_parent(self, header, payload, bad):
        return super()._from_parent(header, payload, False)


class TakesOld(tree_model.TreeCard):
    """Takes finals of other epochs."""

    def _from_parent(self, header, payload, bad):
        epoch = self.blocks[header["job"] % JOBS].last_epoch or 0
        return super()._from_parent(header | {"epoch": epoch}, payload, bad)


class TakesAny(tree_model.TreeCard):
    """Takes another final sum for a slot that has one."""

    def _final_sum(self, block, header, payload):
        slot = block.job.slot(header["vid"])
        if slot.vid == header["vid"] and slot.state == model.REDUCED:
            slot.state = WAITING
        return super()._final_sum(block, header, payload)


class Hurries(tree_model.TreeCard):
    """Sends own sums before everything up to v - W is here: an own sum of v is evidence then that it is not."""

    def _may_leave(self, job, slot):
        return True


class Forgets(tree_model.TreeCard):
    """Loses the marks of the final sum."""

    def _final_sum(self, block, header, payload):
        return super()._final_sum(block, header | {"flags": zwire.ECN_ECT1}, payload)


class NamesLocal(tree_model.TreeCard):
    """Names local ranks in statuses."""

    def _mask(self, block, ranks):
        return model.mask_of(ranks)


class Answers(tree_model.TreeCard):
    """Answers the last finish itself."""

    def _finish(self, block, header, payload):
        refusal, sent = super()._finish(block, header, payload)
        return refusal, sent or [self._status(header, zwire.CODE_DONE)]


class Repeats(tree_model.TreeCard):
    """Repeats own sums at any time."""

    def _repeat(self, block, debt, packet):
        debt.owed = True
        self.counters["up_repeats"] += 1


class Miscounts(tree_model.TreeCard):
    """Counts no refusals of the parent."""

    def _status_of_parent(self, block, header):
        before = self.counters["up_refused"]
        known = super()._status_of_parent(block, header)
        self.counters["up_refused"] = before
        return known


class MergesTwice(tree_model.TreeCard):
    """Sends its own sum after the final one."""

    def _own_sum(self, block, slot):
        header, payload, ports = super()._own_sum(block, slot)
        return header | {"flags": header["flags"] ^ zwire.FLAG_NONFINITE}, payload, ports


FAULTS = [Leaks, Trusts, TakesDamaged, TakesOld, TakesAny, Forgets, NamesLocal, Answers, Miscounts, MergesTwice, Hurries, Repeats]

# Workers do not see these: the order of their packets is the rule's, and time differs.
UNSEEN = [Hurries, Repeats]


@cocotb.test(timeout_time=40, timeout_unit="ms")
@cocotb.parametrize(seed=range(3))
async def a_right_card_passes(dut, seed):
    await start(dut)
    card = ModelCard(dut, random.Random(seed), tree_model.TreeCard)
    await reduce_in_a_tree(card, random.Random(seed), lives=4)


@cocotb.test(timeout_time=40, timeout_unit="ms")
async def a_right_card_answers_like_the_model(dut):
    await start(dut)
    rng = random.Random(4)
    card = ModelCard(dut, rng, tree_model.TreeCard)
    traffic = TreeTraffic(card, rng, repeats=(1, 60, 200, 1000))
    for _ in range(200):
        await traffic.step()
    await card.check_registers()


@cocotb.test(timeout_time=40, timeout_unit="ms")
@cocotb.parametrize(fault=[fault.__name__ for fault in FAULTS])
async def a_fault_is_noticed_one_packet_at_a_time(dut, fault):
    await start(dut)
    rng = random.Random(5)
    card = ModelCard(dut, rng, globals()[fault])
    traffic = TreeTraffic(card, rng, repeats=(1, 60, 200, 1000))
    with pytest.raises(AssertionError):
        for _ in range(3000):
            await traffic.step()
        await card.check_registers()


@cocotb.test(timeout_time=40, timeout_unit="ms", expect_fail=True)  # the check is a task of its own
@cocotb.parametrize(fault=[fault.__name__ for fault in FAULTS if fault not in UNSEEN])
async def a_fault_is_noticed_by_workers(dut, fault):
    await start(dut)
    card = ModelCard(dut, random.Random(6), globals()[fault])
    await reduce_in_a_tree(card, random.Random(6), lives=12)
