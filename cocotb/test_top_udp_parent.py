"""A card with an up port on Ethernet: members, and a parent at the upward UDP ports of its jobs.

First one frame at a time, compared with the Python model (network_tree_model.py). Then workers and the parent act at
once.
"""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles

import ethernet
import zwire
from bench import wait_cycles
from cards import usual
from network_tree_model import upward_port
from streams import PATTERNS, Gate
from traffic import data_header, elements
from tree_workers import held, reduce_in_a_tree
from udp_card import host, run_udp_card
from udp_tree_card import UdpTreeCard, UdpTreeTraffic

CARDS = {
    "bytes": "-lanes 1 -workers 2 -chunk 3 -window 2 -link 8".split(),
    "in_path": "-lanes 2 -workers 3 -chunk 6 -window 4 -jobs 2 -ethernet 4 -link 64".split(),
    "wide": "-lanes 16 -format int32 -workers 3 -chunk 32 -window 2 -jobs 2 -link 512".split(),
}


@pytest.mark.parametrize("card", usual(CARDS, "bytes"))
def test_top_udp_parent(card):
    run_udp_card(f"parent_{card}", [*CARDS[card], "-parent"])


@cocotb.test(timeout_time=100, timeout_unit="ms")
@cocotb.parametrize((("idle", "stall"), [("never", "never"), ("bursts", "at_random")]))
async def answers_like_the_model(dut, idle, stall):
    card = UdpTreeCard(dut, PATTERNS[idle], PATTERNS[stall])
    await card.reset()
    calm = card.calm()
    traffic = UdpTreeTraffic(card, random.Random(f"{idle} {stall}"), repeats=(1, calm, 3 * calm))
    for _ in range(80):
        await traffic.step()
    card.hurry()
    await card.check_registers()


@cocotb.test(timeout_time=100, timeout_unit="ms")
@cocotb.parametrize((("idle", "stall"), [("at_random", "never"), ("bursts", "at_random")]))
async def sums_through_a_tree(dut, idle, stall):
    """The MACs leave the card time: a queue that is full would drop final sums."""
    card = UdpTreeCard(dut, PATTERNS[idle], PATTERNS[stall])
    await card.reset()
    await reduce_in_a_tree(card, random.Random(f"{idle} {stall}"), lives=3)
    assert await held(card, "dropped") == 0


# -- Two jobs and their upward UDP ports -------------------------------------------------------------------


async def two_jobs(card, repeat=10_000):
    """Sets up a tree job under each number, in epoch 1."""
    for job in range(card.jobs):
        await card.set_up(1, job=job, window=1, parent=1, repeat=repeat)


async def waiting(card, job):
    """Has all members send VID 0 of a job, and checks that its own sum leaves for the parent."""
    for rank in range(card.ports):
        await card.exchange(rank, data_header(card, rank, 0, 1, job), elements(card.rng, card.chunk, card.format))


def final_sum(card, job, **change):
    """Returns header and payload of the final sum of VID 0."""
    header = data_header(card, 0, 0, 1, job) | {"kind": zwire.KIND_RESULT, "mask": card.model.setups[job].ranks}
    return header | change, elements(card.rng, card.chunk, card.format)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def each_job_has_a_port_of_its_own(dut):
    """A second job with the port of the first is refused. Packets with the other job's number are dropped, and so are
    those to a port whose job has ended."""
    card = UdpTreeCard(dut, PATTERNS["bursts"])
    await card.reset()
    if card.jobs < 2:
        return
    await two_jobs(card)
    first, second = (upward_port(setup.parent) for setup in card.model.setups)
    assert first != second
    for port in [first, card.own.port, 0, second]:
        await card.write("JOB_PARENT", 1 | port << 16)
        await card.write("JOB_COMMIT", 1 << 48 | 2 << 32)
        taken = card.model.blocks[1].last_epoch == 2
        assert taken == (port == second) and card.model.last_code == (0 if taken else zwire.CODE_BAD_PARENT)
    await card.write("JOB_COMMIT", 1 << 48 | 2 << 32)  # again, which changes nothing
    await card.write("PARENT_MAC", card.members[card.ports].place ^ 1)
    await card.write("JOB_COMMIT", 1 << 48 | 2 << 32)
    assert card.model.last_code == zwire.CODE_EPOCH_IN_USE

    await waiting(card, 0)
    for card.upward, dropped in ((1, "up_dropped"), (0, "up_taken")):
        before = card.model.counters[dropped]
        await card.exchange(card.ports, *final_sum(card, 0))
        assert card.model.counters[dropped] == before + 1
    assert card.model.counters["up_repeats"] == 0

    await card.write("JOB_ABORT", 1 << 32)
    before = card.model.counters["udp_port"]
    card.upward = 0
    await card.exchange(card.ports, *final_sum(card, 0))
    assert card.model.counters["udp_port"] == before + 1
    await card.check_registers()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def only_the_parent_counts(dut):
    """The final sum comes from everybody else before it comes from the parent, whose MAC address does not count. It is
    lost, asked for and repeated."""
    card = UdpTreeCard(dut, PATTERNS["bursts"], PATTERNS["at_random"])
    await card.reset()
    await card.set_up(1, window=1, parent=1, repeat=1)
    await waiting(card, 0)
    parent = card.members[card.ports]
    strangers = [card.members[0], card.owner, parent._replace(ip=parent.ip ^ 1), parent._replace(port=parent.port ^ 1)]
    if card.ethernet > 1:
        strangers.append(parent._replace(ethernet=0))
    for card.disguise in strangers:
        await card.exchange(card.ports, *final_sum(card, 0))
    assert card.model.counters["stranger"] == len(strangers) and card.model.counters["up_taken"] == 0
    card.disguise = None
    await card.exchange(card.ports, *final_sum(card, 0), bad=True)
    for rank in range(card.ports):
        await card.exchange(rank, {"kind": zwire.KIND_ASK, "job": 0, "epoch": 1, "rank": rank, "vid": 0})
    assert card.model.counters["up_repeats"] > 0
    card.disguise = parent._replace(mac=parent.mac ^ 2)
    header, payload = final_sum(card, 0)
    await card.exchange(card.ports, header, payload)
    assert card.model.counters["up_taken"] == 1
    await card.exchange(card.ports, header | {"kind": zwire.KIND_REPLAY}, payload)
    assert card.model.counters["up_taken"] == 1 and card.model.counters["up_dropped"] == 1
    await card.check_registers()


# -- A commit that changes all addresses -------------------------------------------------------------------


async def stage_others(card, epoch):
    """Stages other members, another parent and another upward UDP port; returns the commit, and its hosts: members and
    parent."""
    hosts = [host(300 + 16 * epoch + port, port % card.ethernet) for port in range(card.ports)]
    hosts.append(host(300 + 16 * epoch + 15, card.ethernet - 1))
    card.members = hosts
    await card.stage_members()
    await card.write("JOB_PARENT", 1 | upward_of(epoch) << 16)
    return {"kind": zwire.KIND_REGWRITE, "vid": card.model.address_of("JOB_COMMIT"), "mask": epoch << 32, "length": 0}


def upward_of(epoch):
    """Returns an upward UDP port for an epoch."""
    return 0x6000 + epoch


def committed(card, commit):
    """The card has answered the commit: so does the model."""
    assert [header["code"] for header, _, _ in card.replies] == [zwire.CODE_DONE]
    card.replies.clear()
    card.count_access()
    card.model.sender = card.owner
    reply, _, _ = card.model.register(commit)
    assert reply["code"] == zwire.CODE_DONE


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def own_sums_leave_for_the_parent_of_their_epoch(dut):
    """The MACs take nothing while own sums leave and the job gets another parent and another UDP port."""
    card = UdpTreeCard(dut)
    await card.reset()
    await card.set_up(1, parent=1, repeat=10_000)
    parent = card.members[card.ports]
    others = card.members
    commit = await stage_others(card, 2)
    gates = [Gate() for _ in card.lines]
    for line, gate in zip(card.lines, gates):
        line.tx.stall, gate.closed = gate, True
    card.members = others
    for vid in range(card.window):
        for rank in range(card.ports):
            card.send(rank, data_header(card, rank, vid, 1), elements(card.rng, card.chunk, card.format))
    while card.busy():
        await ClockCycles(dut.clk, 1)
    await wait_cycles(dut, card.calm())
    card.put(card.frame(card.owner, commit))
    await wait_cycles(dut, card.calm())
    for gate in gates:
        gate.closed = False
    await card.quiet()
    targets = [to for _, _, to in card.sent]
    assert len(targets) >= 2 and set(targets) == {parent}, targets
    committed(card, commit)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def notices_leave_for_the_members_of_their_epoch(dut):
    """The new parent sends a notice at every moment around a commit: the members of the new epoch get it, or nobody."""
    card = UdpTreeCard(dut)
    await card.reset()
    await card.set_up(1, parent=1)
    outcomes = []
    for epoch in range(2, 42):
        commit = await stage_others(card, epoch)
        status = {"kind": zwire.KIND_STATUS, "version": zwire.VERSION, "epoch": epoch, "code": zwire.CODE_OVERDUE, "vid": 7, "mask": 1}
        card.put(card.frame(card.owner, commit))
        while card.busy():
            await ClockCycles(dut.clk, 1)
        await wait_cycles(dut, 6 * (epoch - 2))
        *members, parent = card.members
        frame = ethernet.udp_frame(parent, card.own._replace(port=upward_of(epoch)), ethernet.datagram(status))
        card.put(frame, ethernet=parent.ethernet)
        await card.quiet()
        outcomes.append([to for _, _, to in card.sent])
        assert sorted(outcomes[-1]) in ([], sorted(members)), f"epoch {epoch}: notices to {outcomes[-1]}"
        card.sent.clear()
        committed(card, commit)
    assert not outcomes[0] and outcomes[-1]
