"""The card on Ethernet: its owner, the owner's lease, and the address table, as in driver/wire/NETWORK.md."""

import random

import cocotb
from cocotb.triggers import ClockCycles

import ethernet
import zwire
from bench import wait_cycles
from streams import PATTERNS, Gate
from traffic import TOKEN, Contributions, data_header, elements
from udp_card import UdpCard, host, run_udp_card


def test_top_udp_owner():
    flags = "-lanes 2 -format int32 -workers 4 -chunk 4 -window 2 -jobs 2 -link 64".split()
    run_udp_card("owner", flags)


# -- Registers ---------------------------------------------------------------------------------------


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(seed=range(2))
async def answers_every_host_like_the_model(dut, seed):
    """Accesses of three hosts in turn: takes and leaves the card, stages, commits, moves the card."""
    rng = random.Random(seed)
    card = UdpCard(dut, PATTERNS["bursts"], PATTERNS["bursts"])
    await card.reset()
    hosts = [host(100), host(100)._replace(port=7), host(100)._replace(ip=5, mac=6)]
    for _ in range(150):
        card.accessing = rng.choice(hosts) if rng.random() < 0.3 else card.accessing
        if rng.random() < 0.1:  # the MAC address does not count
            card.accessing = card.accessing._replace(mac=rng.getrandbits(46) << 1)
        await some_access(card, rng)
    await card.check_registers()


async def some_access(card, rng):
    """Makes a random access, which often is legal."""
    job, port = rng.randrange(card.jobs), rng.randrange(card.ports)
    token = rng.choice([TOKEN, TOKEN, 1])
    address, mac = rng.choice(card.members).address, rng.choice(card.members).mac
    junk = rng.getrandbits(8) << 56
    writes = {
        "OWNER": [token, TOKEN, 0],
        "RELEASE": [token],
        "RESET": [token],
        "LEASE": [0, 10**8, 1 << 40, (1 << 40) + 1, 1 << 41, 1 << 63],
        "SOURCE": [0],
        "CARD_ADDRESS": [0xFFFF << 48 | rng.getrandbits(48)],
        "CARD_MAC": [rng.getrandbits(56) | junk],
        "MEMBER_ADDRESS": [address, address | junk, 0, address % (1 << 32), rng.getrandbits(64)],
        "MEMBER_MAC": [mac, mac | junk, mac | 1 << 48],
        "JOB_ADDRESS": [1],
        "JOB_TOKEN": [TOKEN],
        "JOB_PORTS": [1 << port, 3],
        "JOB_CHUNK": [card.chunk],
        "JOB_WINDOW": [1],
        "JOB_COMMIT": [job << 48 | rng.randrange(40) << 32, 2 << 48],
        "stranger": [0],
    }
    name = rng.choice([*writes, "OWNER", "MEMBER_ADDRESS", "MEMBER_ADDRESS", "MEMBER_MAC", "JOB_COMMIT", "JOB_COMMIT"])
    if name in zwire.REGISTERS and name != "JOB_STATE" or rng.random() < 0.7:
        await card.write(name, rng.choice(writes[name]), *place(name, job, port))
    else:
        await card.read(name, *place(name, job, port))


def place(name, job, port):
    """Returns which of a register's places to access; zwire.REGISTERS that are written have one."""
    return (job, port) if name in zwire.NETWORK_REGISTERS else ()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def a_new_owner_finds_nothing_staged(dut):
    card = UdpCard(dut)
    await card.reset()
    for take in range(2):
        card.accessing = host(100 + take)
        await card.write("OWNER", TOKEN)
        for name in ("JOB_TOKEN", "JOB_PORTS", "JOB_CHUNK", "JOB_WINDOW", "JOB_DEADLINE"):
            assert await card.read(name) == 0
            await card.write(name, 5)
        await card.read("LEASE")
        for port in range(card.ports):
            assert await card.read("MEMBER_ADDRESS", 0, port) == await card.read("MEMBER_MAC", 0, port) == 0
            await card.write("MEMBER_ADDRESS", (1 << 64) - 1 - port, 0, port)
            await card.write("MEMBER_MAC", (1 << 64) - 1 - port, 0, port)
        await card.write("LEASE", 1 << 40)
        await card.write("RELEASE" if take == 0 else "RESET", TOKEN)
    await card.check_registers()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def a_card_that_moves_answers_at_its_new_address_alone(dut):
    """The reply to the move comes from the old address; UdpCard checks the sender of all frames."""
    card = UdpCard(dut)
    await card.reset()
    old = card.own
    await card.write("OWNER", TOKEN)
    await card.write("CARD_ADDRESS", old.address + 1)
    counts = card.model.counters
    read = {"kind": zwire.KIND_REGREAD, "vid": card.model.address_of("MAGIC"), "length": 0}
    new, card.own = card.own, old
    card.put(card.frame(card.owner, read))
    counts["ip_address"] += 1
    card.own = new
    await card.read("ip_address")
    await card.write("CARD_MAC", old.mac + 2)
    card.own = new
    card.put(card.frame(card.owner, read))  # for another MAC address: ignored
    card.own = new._replace(mac=old.mac + 2)
    await card.check_registers()
    ask = bytes.fromhex("0001 0800 06 04 0001") + bytes(6) + bytes([9, 9, 9, 9]) + bytes(6)
    for ip in (old.ip, new.ip):
        card.put(ethernet.ethernet(0x020000000099, (1 << 48) - 1, 0x0806, ask + ip.to_bytes(4, "big")))
    await card.quiet()
    (answer,) = card.answers
    assert answer[6:12] == answer[22:28] == card.own.mac.to_bytes(6, "big")
    assert answer[28:32] == new.ip.to_bytes(4, "big")


# -- The lease ---------------------------------------------------------------------------------------


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def only_the_owners_accesses_restart_the_lease(dut):
    lease = 4000
    card = UdpCard(dut)
    await card.reset()
    await card.set_up(epoch=1)
    await card.write("LEASE", lease)
    for _ in range(5):
        await wait_cycles(dut, lease * 3 // 4)
        assert await card.read("OWNER") == TOKEN
    heard = card.cycle
    card.accessing = host(101)
    while card.cycle < heard + lease - 1000:  # a stranger's accesses, and a member's packets
        assert await card.read("OWNER") == TOKEN
        await card.exchange(0, {"kind": zwire.KIND_ASK, "epoch": 1})
        assert await card.write("LEASE", lease) == 0
    await wait_cycles(dut, heard + lease - card.cycle + 100)
    card.model.lease_ends()
    await card.check_registers()


@cocotb.test(timeout_time=50, timeout_unit="ms")
@cocotb.parametrize(running=[False, True])
async def a_lease_may_end_in_any_cycle_of_a_commit(dut, running):
    """A commit sets its job up or does not; in both cases, the lease then ends it. Another host takes the card."""
    rng = random.Random(5)
    card = UdpCard(dut)
    await card.reset()
    codes = []
    epoch, last = 0, None
    for lease in range(1, 240, 7):
        card.owner = card.accessing = host(200 + lease)
        if running:
            epoch += 1
            card.members = [host(rng.randrange(50)) for _ in card.members]
            await card.set_up(epoch)
            last = epoch, card.members
            for rank in range(card.ports):
                card.send(rank, data_header(card, rank, 0, epoch), elements(rng, card.chunk, card.format))
        else:
            await card.write("OWNER", TOKEN)
        epoch += 1
        card.members = [host(50 + rng.randrange(50)) for _ in card.members]
        for name, value in {"JOB_TOKEN": TOKEN, "JOB_PORTS": 15, "JOB_CHUNK": card.chunk, "JOB_WINDOW": 1}.items():
            await card.write(name, value)
        await card.stage_members()
        code, last = await commit_at_the_end(card, lease, epoch, last)
        codes.append(code)
        card.sent.clear()
    assert codes[0] == zwire.CODE_BUSY and codes[-1] == zwire.CODE_DONE, codes
    card.owner = card.accessing = host(99)
    await card.read("lease")
    await card.set_up(epoch + 1)
    await check_sum(card, rng, epoch + 1)


async def commit_at_the_end(card, lease, epoch, last):
    """Commits an epoch within so short a lease; returns the code, and the last job's epoch and members.

    last: those before.
    """
    begin = await raw(card, "lease")
    for name, value in (("LEASE", lease), ("JOB_COMMIT", epoch << 32)):
        header = {"kind": zwire.KIND_REGWRITE, "vid": card.model.address_of(name), "mask": value}
        card.put(card.frame(card.owner, header))
    await card.quiet()
    await wait_cycles(card.dut, lease)
    (_, _, _), (reply, _, _) = card.replies
    card.replies.clear()
    assert await raw(card, "OWNER") == 0 and await raw(card, "lease") == begin + 1
    state = await raw(card, "JOB_STATE")
    assert state & 1 == 0, "a job without an owner"
    assert reply["code"] in (zwire.CODE_BUSY, zwire.CODE_DONE)
    used = state == 2 | epoch << 16
    assert used or reply["code"] == zwire.CODE_BUSY
    if used:  # the commit may be cancelled after it used the epoch up: the table is the epoch's then
        last = epoch, card.members
    assert state == (2 | last[0] << 16 if last else 0)
    for port in range(card.ports):
        entry = last[1][port] if last else host(0)._replace(mac=0, ip=0, port=0)
        assert (await raw(card, "JOB_ADDRESS", 0, port), await raw(card, "JOB_MAC", 0, port)) == (entry.address, entry.mac)
    adopt(card, last, reply["code"])
    return reply["code"], last


def adopt(card, last, code):
    """Brings the model to where the card is, whose epoch may be used up by a commit that was cancelled."""
    m = card.model
    m.lease_ends()
    m.last_code = code
    if last:
        m.blocks[0].last_epoch, members = last
        m.tables[0] = [(member.address, member.mac) for member in members]


async def raw(card, name, *at):
    """Returns a register's value, without comparison with the model."""
    reply = await card.register({"kind": zwire.KIND_REGREAD, "vid": card.model.address_of(name, *at)})
    return reply["mask"]


async def check_sum(card, rng, epoch):
    """Checks that a job which is set up sums a chunk, and that each member gets it."""
    data = Contributions(card, rng, 1)
    card.sent.clear()
    for rank in range(card.ports):
        card.send(rank, data_header(card, rank, 0, epoch) | {"flags": data.ecn[0][rank]}, data.payloads[0][rank])
    await card.quiet()
    results = [(to, header["flags"], payload) for header, payload, to in card.sent]
    assert results == [(member, data.flags(0), data.sum(0)) for member in dict.fromkeys(card.members)]


# -- The address table -------------------------------------------------------------------------------


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def a_commit_checks_its_members(dut):
    """bad_member, and epoch_in_use for other members, their MAC addresses included."""
    card = UdpCard(dut)
    await card.reset()
    await card.set_up(epoch=1, ports=0b1011)
    good = card.members[1]
    bad = [
        ("MEMBER_ADDRESS", good.address % (1 << 32), good.address),  # no UDP port
        ("MEMBER_ADDRESS", good.address >> 32 << 32, good.address),  # no IPv4 address
        ("MEMBER_MAC", good.mac | 1 << 48, good.mac),  # no such Ethernet port
        ("MEMBER_MAC", good.mac ^ 1 << 47, good.mac),  # another MAC address: no refusal in a new epoch
        ("MEMBER_ADDRESS", good.address ^ 1, good.address),
    ]
    for n, (name, wrong, right) in enumerate(bad):
        await card.write(name, wrong, 0, 1)
        await card.write("JOB_COMMIT", 1 << 32)  # of the running epoch
        assert await card.read("LAST_CODE") == zwire.CODE_EPOCH_IN_USE
        if n < 3:
            await card.write("JOB_COMMIT", 2 << 32)
            assert await card.read("LAST_CODE") == zwire.CODE_BAD_MEMBER
        await card.write(name, right | 0xFF << 56, 0, 1)  # bits without a meaning
        await card.write("JOB_COMMIT", 1 << 32)
        assert await card.read("LAST_CODE") == zwire.CODE_DONE
    await card.write("MEMBER_ADDRESS", 0, 0, 2)  # no member of this job
    await card.write("JOB_COMMIT", 1 << 32)
    assert await card.read("LAST_CODE") == zwire.CODE_DONE
    await card.check_registers()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def strangers_are_counted_and_not_heard(dut):
    """Data, asks and finishes from a wrong address or port; a member's MAC address does not count."""
    rng = random.Random(6)
    card = UdpCard(dut, PATTERNS["bursts"])
    await card.reset()
    for kind in (zwire.KIND_DATA, zwire.KIND_ASK, zwire.KIND_FINISH):  # before the first commit
        await card.exchange(0, data_header(card, 0, 0, 1) | {"kind": kind}, payload_of(card, rng, kind))
    for job, ports in ((0, 0b1011), (1, 0b0110)):
        await card.set_up(epoch=1, ports=ports, window=1, job=job)
    for kind in (zwire.KIND_ASK, zwire.KIND_DATA, zwire.KIND_FINISH):
        for job in (0, 1, 2, 255):
            for rank in (0, 1, 2, 3, 255):
                for at in range(card.ports):
                    header = data_header(card, rank, 0, 1, job) | {"kind": kind}
                    if kind == zwire.KIND_FINISH and rng.random() < 0.5:
                        continue
                    for member in (card.members[at], moved(rng, card.members[at])):
                        await card.transmit(card.frame(member, header, payload_of(card, rng, kind)))
    await card.check_registers()
    assert card.model.counters["stranger"] > 300 and card.model.counters["chunks"]


def moved(rng, member):
    """Returns a member's address with a change."""
    return rng.choice(
        [
            member._replace(mac=member.mac ^ 4),
            member._replace(ip=member.ip ^ 1 << rng.randrange(32)),
            member._replace(port=member.port ^ 1 << rng.randrange(16)),
        ]
    )


def payload_of(card, rng, kind):
    return elements(rng, card.chunk, card.format) if kind == zwire.KIND_DATA else b""


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def ranks_with_one_address_share_a_copy(dut):
    """Copies leave in the order of the lowest rank at each address; receivers names all; statuses go to each rank."""
    rng = random.Random(7)
    card = UdpCard(dut, stall=PATTERNS["bursts"])
    await card.reset()
    shapes = [(0, 0, 1, 2), (0, 1, 0, 1), (1, 0, 0, 0), (2, 1, 1, 0), (0, 0, 0, 0), (0, 1, 2, 0), (3, 2, 1, 0)]
    for epoch, shape in enumerate(shapes, 1):
        card.members = [host(n) for n in shape]
        await card.set_up(epoch)
        await check_sum(card, rng, epoch)
        assert {header["receivers"] for header, _, _ in card.sent} == {0b1111}
        card.sent.clear()
        for rank in rng.sample(range(card.ports), 3):  # replays: for their rank alone
            card.send(rank, data_header(card, rank, 0, epoch), elements(rng, card.chunk, card.format))
            await card.quiet()
            ((header, _, to),) = card.sent
            assert (header["kind"], header["receivers"], to) == (zwire.KIND_REPLAY, 1 << rank, card.members[rank])
            card.sent.clear()
        for rank in range(card.ports):
            card.send(rank, {"kind": zwire.KIND_ASK, "epoch": epoch, "rank": rank, "vid": 2 * card.window})
        await card.quiet()
        told = sorted((header["rank"], to) for header, _, to in card.sent)
        assert told == [(rank, member) for rank, member in enumerate(card.members)]
        card.sent.clear()


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(delay=range(0, 160, 40))
async def results_of_an_epoch_go_to_its_addresses(dut, delay):
    """The next epoch swaps two members while results of the last wait for the MAC: none goes to the other."""
    rng = random.Random(delay)
    card = UdpCard(dut)
    card.tx.stall = gate = Gate()
    await card.reset()
    of_epoch = {}
    await card.set_up(1)
    for epoch in range(1, 6):
        of_epoch[epoch] = list(card.members)
        card.members[0], card.members[3] = card.members[3], card.members[0]
        card.members[1] = host(60 + epoch)
        await card.stage_members()  # now: later, their replies would wait for the MAC
        gate.closed = True
        for vid in range(card.window):
            for rank, member in enumerate(of_epoch[epoch]):
                header = data_header(card, rank, vid, epoch)
                card.put(card.frame(member, header, elements(rng, card.chunk, card.format)))
        while card.busy():
            await ClockCycles(dut.clk, 1)
        await wait_cycles(dut, delay)
        commit = {"kind": zwire.KIND_REGWRITE, "vid": card.model.address_of("JOB_COMMIT"), "mask": (epoch + 1) << 32}
        card.put(card.frame(card.owner, commit))
        await wait_cycles(dut, 400)
        assert not card.replies, "the commit was answered, but the results of the last epoch have not left"
        gate.closed = False
        await card.quiet()
        ((reply, _, _),) = card.replies
        assert reply["code"] == zwire.CODE_DONE
        card.replies.clear()
    seen = {epoch: [] for epoch in of_epoch}
    for header, _, to in card.sent:
        assert to in of_epoch[header["epoch"]], f"epoch {header['epoch']} to {to}"
        if header["kind"] == zwire.KIND_STATUS:
            assert to == of_epoch[header["epoch"]][header["rank"]]
        else:
            seen[header["epoch"]].append((header["vid"], to))
    for epoch, copies in seen.items():  # whole, or not at all
        chunks = len(copies) // card.ports
        assert copies == [(vid, member) for vid in range(chunks) for member in of_epoch[epoch]]
    assert any(seen.values())
    await check_sum(card, rng, 6)
