"""The card on Ethernet, as hwgen emits it, by frames: packets, requests, and the faults of a bad network.

Sends frames, and compares all that leaves with the Python model (network_model.py), which is written from
driver/wire/NETWORK.md.
"""

import collections
import ipaddress
import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles

import zwire
from bench import wait_cycles
from cards import usual
from eth_frames import ARP_REQUEST, DROP, ECHO, FAULTS, REASONS
from eth_frames import arp_frame, datagram_frame, echo_frame, judge, some_frame
from network_model import LARGEST_FRAME
from streams import PATTERNS, Gate
from traffic import TOKEN, Contributions, Traffic, data_header, elements
from udp_card import UdpCard, host, run_udp_card
from workers import Reduction, deliver

CARDS = {
    "udp8": "-lanes 1 -workers 3 -chunk 3 -window 2 -link 8".split(),
    "udp64": "-lanes 2 -workers 4 -chunk 6 -window 4 -jobs 2 -link 64".split(),
    "udp512": "-lanes 16 -format int32 -workers 3 -chunk 32 -window 1 -link 512".split(),
}

PADDED = 300  # bytes of frames that are padded for no reason: an oversized one takes long


@pytest.mark.parametrize("card", usual(CARDS, "udp512"))
def test_top_udp(card):
    run_udp_card(card, CARDS[card])


@cocotb.test(timeout_time=100, timeout_unit="ms")
@cocotb.parametrize((("idle", "stall"), [("never", "never"), ("bursts", "mostly"), ("at_random", "bursts")]))
async def answers_like_the_model(dut, idle, stall):
    card = UdpCard(dut, PATTERNS[idle], PATTERNS[stall])
    await card.reset()
    traffic = Traffic(card, random.Random(f"{idle} {stall}"))
    for _ in range(30):
        await traffic.step()
    card.hurry()
    await card.check_registers()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def drops_and_counts_every_fault(dut):
    """A member's contribution comes with other elements and a fault, and then as it is."""
    rng = random.Random(3)
    card = UdpCard(dut, PATTERNS["bursts"], PATTERNS["bursts"])
    await card.reset()
    await card.set_up(epoch=7)
    for vid, fault in enumerate(FAULTS):
        for rank in range(card.ports):
            header = data_header(card, rank, vid, epoch=7)
            await card.transmit(*spoiled(rng, card, rank, header, [fault]))
            await card.exchange(rank, header, elements(rng, card.chunk, card.format))
    await card.check_registers()
    counted = [reason for reason in FAULTS.values() if isinstance(reason, str)]
    assert all(card.model.counters[reason] >= card.ports for reason in counted)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def refuses_a_host_of_version_1(dut):
    """The card drops and counts packets of every kind that hosts send, of members and of others."""
    rng = random.Random(8)
    card = UdpCard(dut)
    await card.reset()
    await card.set_up(epoch=7)
    sent = 0
    for kind, (*_, from_card) in zwire.KINDS.items():
        if from_card:
            continue
        payload = elements(rng, card.chunk, card.format) if kind == zwire.KIND_DATA else b""
        header = data_header(card, 0, 0, epoch=7) | {"kind": kind, "version": 1}
        for sender in (card.members[0], card.members[0]._replace(ip=card.members[0].ip ^ 1)):
            card.put(card.frame(sender, header | {"mask": 0}, payload))
            sent += 1
    await card.quiet()
    assert not card.sent and not card.answers and not card.replies
    assert sent == 10
    assert await counters(card, ["bad_version", "stored", "stranger"]) == {"bad_version": sent, "stored": 0, "stranger": 0}
    await work_on(card, rng, epoch=7)


def spoiled(rng, card, port, header, faults):
    """Returns a member's frame with faults, whose elements are not the member's, and whether its FCS is wrong."""
    message = card.message(header, elements(rng, header["length"], card.format))
    member = card.members[port]
    sender = str(ipaddress.ip_address(member.ip))
    return datagram_frame(rng, faults, message=message, sender=sender, port=member.port)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def answers_any_frame_like_the_model(dut):
    """Frames with any faults, padding, damage anywhere, and requests, beside a job."""
    rng = random.Random(4)
    card = UdpCard(dut, PATTERNS["bursts"], PATTERNS["at_random"])
    await card.reset()
    await card.set_up(epoch=7)
    for _ in range(100):
        await card.transmit(*some_frame(rng, PADDED))
    for size in (0, 1, 18, 19, 1472, 1473):
        await card.transmit(*echo_frame(rng, size))
    await card.check_registers()


class Network:
    """Sends frames of others while a reduction runs, and counts what the card must count."""

    def __init__(self, card, rng, reduction):
        self.card, self.rng, self.reduction = card, rng, reduction
        self.shadow = card.MODEL(card.lanes, card.ports, card.chunk, card.window, card.ident(), True, card.arithmetic)
        self.counts = collections.Counter()
        self.answers = []  # that are due; any of them may be dropped
        self.done = False

    async def run(self):
        """Sends a frame now and then until self.done."""
        while not self.done:
            frame, bad = self.rng.choice([self.fault, self.forgery, self.any, self.request])()
            verdict = judge(frame, bad, LARGEST_FRAME)
            if verdict.kind == DROP:
                self.counts[verdict.reason] += 1
            elif verdict.kind in (ARP_REQUEST, ECHO):
                self.answers += self.shadow.frame(frame, bad)[1]
            self.card.put(frame, bad)
            await wait_cycles(self.card.dut, self.rng.randint(1, 2 + 8 * len(frame) // self.card.word))

    def fault(self):
        """Returns a frame of a member with a fault or several."""
        faults = self.rng.sample([fault for fault in FAULTS if fault != "oversize"], self.rng.choice([1, 1, 2]))
        return spoiled(self.rng, self.card, *self.some_data(), faults)

    def forgery(self):
        """Returns a faultless contribution from a stranger, or with the rank of another member."""
        port, header = self.some_data()
        member = self.card.members[port]
        other = self.card.members[(port + 1) % self.card.ports]
        stranger = self.rng.choice([member._replace(ip=member.ip ^ 0x100), member._replace(port=member.port ^ 1), other])
        return self.card.frame(stranger, header, elements(self.rng, header["length"], self.card.format)), False

    def any(self):
        return some_frame(self.rng, PADDED)

    def request(self):
        return self.rng.choice([arp_frame(self.rng), echo_frame(self.rng, self.rng.randrange(100))])

    def some_data(self):
        """Returns a port and the header of a chunk that its member may send now."""
        worker = self.rng.choice(self.reduction.workers)
        return worker.port, self.reduction.header(zwire.KIND_DATA, worker.rank, self.reduction.first + worker.next)


@cocotb.test(timeout_time=100, timeout_unit="ms")
@cocotb.parametrize(stall=["never", "bursts"])
async def a_reduction_ends_with_its_sums_on_a_bad_network(dut, stall):
    rng = random.Random(stall)
    card = UdpCard(dut, PATTERNS["bursts"], PATTERNS[stall])
    await card.reset()
    reduction = Reduction(card, rng, chunks=16, epoch=5)
    await reduction.set_up(token=TOKEN)
    before = dict(card.model.counters)
    others = Network(card, rng, reduction)
    deliverer = cocotb.start_soon(deliver(card, [reduction]))
    sender = cocotb.start_soon(others.run())
    await reduction.reduce()
    others.done = True
    await sender
    await card.quiet()
    deliverer.cancel()
    found = await counters(card, ["chunks", "payload_crc", "dropped", *REASONS[1:]])
    bad = sum(worker.bad for worker in reduction.workers)
    assert found["chunks"] == before["chunks"] + len(reduction.data)
    assert found["payload_crc"] == 0 and others.counts.total() > 10, others.counts
    for reason in REASONS[1:]:
        assert found[reason] == others.counts[reason] + (bad if reason == "datagram_crc" else 0), reason
    for answer in card.answers:
        others.answers.remove(answer)  # raises an error for one that is not due
    assert len(others.answers) <= found["dropped"] and card.answers


async def counters(card, names):
    """Returns the values of counters, without comparison with the model."""
    found = {}
    for name in names:
        reply = await card.register({"kind": zwire.KIND_REGREAD, "vid": card.model.address_of(name)})
        found[name] = reply["mask"]
    return found


# -- Full queues -------------------------------------------------------------------------------------


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def a_full_queue_of_accesses_drops_and_counts(dut):
    """The MAC takes nothing while many accesses come: those that are not dropped are answered in order."""
    card = UdpCard(dut)
    card.tx.stall = gate = Gate()
    await card.reset()
    gate.closed = True
    asked = 60
    for tag in range(asked):
        read = {"kind": zwire.KIND_REGREAD, "vid": card.model.address_of("SOURCE"), "length": tag}
        card.put(card.frame(host(tag), read))
    while card.busy():
        await ClockCycles(dut.clk, 1)
    await wait_cycles(dut, 100)
    gate.closed = False
    await card.quiet()
    tags = [header["length"] for header, _, _ in card.replies]
    assert tags == sorted(set(tags)) and 16 <= len(tags) < asked
    assert all((header["mask"], to) == (to.address, host(header["length"])) for header, _, to in card.replies)
    card.replies.clear()
    card.model.counters["frames"] += asked
    card.model.counters["dropped"] += asked - len(tags)
    await card.check_registers()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def a_full_queue_of_packets_drops_whole_packets(dut):
    """A commit waits for a result that the MAC does not take, and packets wait for the commit.

    While the commit changes the table, the number has no entries: its packets are strangers'.
    """
    rng = random.Random(9)
    card = UdpCard(dut)
    card.tx.stall = gate = Gate()
    await card.reset()
    await card.set_up(epoch=1)
    gate.closed = True
    for vid in range(card.window):
        for rank in range(card.ports):
            card.send(rank, data_header(card, rank, vid, epoch=1), elements(rng, card.chunk, card.format))
    commit = {"kind": zwire.KIND_REGWRITE, "vid": card.model.address_of("JOB_COMMIT"), "mask": 2 << 32}
    card.put(card.frame(card.owner, commit))
    sent = 80
    for vid in range(sent):
        card.send(0, data_header(card, 0, vid, epoch=1), elements(rng, card.chunk, card.format))
    while card.busy():
        await ClockCycles(dut.clk, 1)
    await wait_cycles(dut, 100)
    gate.closed = False
    await card.quiet()
    refusals = ["bad_epoch", "bad_job", "early", "not_ready", "late", "duplicate"]
    found = await counters(card, ["stored", "dropped", "stranger", *refusals])
    assert (found["dropped"] or card.word == 1) and sum(found.values()) == sent + card.window * card.ports, found
    card.sent.clear(), card.replies.clear()
    await work_on(card, rng, epoch=2)


async def work_on(card, rng, epoch):
    """Checks that a job which is set up sums a chunk."""
    data = Contributions(card, rng, 1)
    for rank in range(card.ports):
        card.send(rank, data_header(card, rank, 0, epoch) | {"flags": data.ecn[0][rank]}, data.payloads[0][rank])
    await card.quiet()
    results = [(to, header["flags"], payload) for header, payload, to in card.sent]
    assert results == [(member, data.flags(0), data.sum(0)) for member in card.members]
