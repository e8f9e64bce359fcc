"""The small leaves of the byte-stream shell: CRC, byte FIFO, routing, registers, session."""

import random
from binascii import crc_hqx

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, Timer

import model
import zwire
from bench import run, start
from streams import PATTERNS, StreamSink, StreamSource


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def crc_of_the_counted_bytes(dut):
    """agg_crc16: Python's own CRC-CCITT over the first count bytes, from any start."""
    rng = random.Random(1)
    size = len(dut.data) // 8
    for _ in range(500):
        data, count, before = rng.randbytes(size), rng.randint(0, size), rng.randrange(1 << 16)
        dut.data.value = int.from_bytes(data, "little")
        dut.count.value = count
        dut.crc_in.value = before
        await Timer(1, "ns")
        assert int(dut.crc_out.value) == crc_hqx(data[:count], before)


@pytest.mark.parametrize("size", [1, 4, 8])
def test_agg_crc16(size):
    run("agg_crc16", parameters={"BYTES": size}, testcase=["crc_of_the_counted_bytes"])


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS))
async def fifo_keeps_what_is_not_committed(dut, idle):
    """agg_byte_fifo: shows the same bytes as a list, under any takes, commits and rewinds."""
    rng = random.Random(idle)
    width = len(dut.s_axis_tkeep)
    dut.take.value = dut.commit.value = dut.rewind.value = 0
    source = StreamSource(dut, "s_axis", PATTERNS[idle]())
    await start(dut)
    sync = zwire.SYNC.to_bytes(4, "little")
    data = bytes(rng.choice([rng.randrange(256), *sync]) for _ in range(1500))
    sent = 0
    while sent < len(data):
        word = data[sent : sent + rng.randint(1, width)]
        source.put({"tdata": int.from_bytes(word, "little"), "tkeep": (1 << len(word)) - 1})
        sent += len(word)
    base = read = rewinds = 0
    while base < len(data):
        # The window depends only on registers: decide in the middle of the cycle.
        await FallingEdge(dut.clk)
        valid = int(dut.valid.value)
        count = valid.bit_length()
        assert valid == (1 << count) - 1
        bits = str(dut.window.value)[::-1]
        for i in range(count):
            assert int(bits[8 * i : 8 * i + 8][::-1], 2) == data[read + i]
        sync_bytes = int(dut.sync_bytes.value)
        for i in range(4):
            assert sync_bytes >> i & 1 == (i < count and data[read + i] == sync[i])
        rewind = base < read and rng.random() < 0.05
        # Without a commit the FIFO fills up and stalls; the limit here is lower.
        commit = not rewind and (rng.random() < 0.4 or read - base > 24)
        take = 0 if rewind else rng.randint(0, count)
        dut.take.value, dut.commit.value, dut.rewind.value = take, int(commit), int(rewind)
        if rewind:
            base = read = base + 1
            rewinds += 1
        else:
            read += take
            base = read if commit else base
    assert rewinds > 5


@pytest.mark.parametrize("link, window", [(1, 4), (2, 4), (4, 4), (8, 8)])
def test_agg_byte_fifo(link, window):
    run(
        "agg_byte_fifo",
        parameters={"LINK_BYTES": link, "WINDOW": window},
        testcase=[f"fifo_keeps_what_is_not_committed/idle={idle}" for idle in PATTERNS],
    )


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def routes_by_rank(dut):
    """agg_route: dest is the job's member with that rank, else port 0; ready is that of tdest."""
    rng = random.Random(2)
    ports, jobs = len(dut.m_axis_tvalid), int(dut.JOBS.value)
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    await FallingEdge(dut.clk)
    for _ in range(400 if ports < 64 else 3000):  # hit each port in each job
        members = [rng.randrange(1 << ports) for _ in range(jobs)]
        maps = [ranks_of(rng, member, ports) for member in members]
        job = rng.randrange(256)
        member, ranks = members[job % jobs], maps[job % jobs]
        rank = rng.choice([*ranks, rng.randrange(256)])
        port, ready, valid = rng.randrange(ports), rng.randrange(1 << ports), rng.randrange(2)
        dut.member.value = sum(member << ports * j for j, member in enumerate(members))
        dut.rank_of_port.value = int.from_bytes(bytes(sum(maps, [])), "little")
        dut.job.value, dut.rank.value = job, rank
        dut.s_axis_tdest.value = 1 << port
        dut.s_axis_tvalid.value = valid
        dut.m_axis_tready.value = ready
        await FallingEdge(dut.clk)
        want = next((p for p in range(ports) if member >> p & 1 and ranks[p] == rank), 0)
        assert int(dut.dest.value) == 1 << want
        assert int(dut.m_axis_tvalid.value) == valid << port
        assert int(dut.s_axis_tready.value) == ready >> port & 1


def ranks_of(rng, member, ports):
    """Returns every port's rank: ranks number the members; other ports hold arbitrary values."""
    ranks = [bin(member & ((1 << p) - 1)).count("1") for p in range(ports)]
    return [r if member >> p & 1 else rng.randrange(ports) for p, r in enumerate(ranks)]


@pytest.mark.parametrize("ports, jobs, job_bits", [(1, 1, 1), (5, 4, 2), (64, 2, 1)])
def test_agg_route(ports, jobs, job_bits):
    run("agg_route", parameters={"PORTS": ports, "JOBS": jobs, "JOB_BITS": job_bits}, testcase=["routes_by_rank"])


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def carries_accesses_and_replies(dut, idle, stall):
    """agg_register_link: forwards accesses in order; each reply precedes the next access."""
    rng = random.Random(f"{idle} {stall}")
    dut.hold.value = dut.link_down.value = 0
    fields = ("write", "addr", "tag", "wdata")
    accesses = StreamSource(dut, "s_register", PATTERNS[idle](), fields, "valid", "ready")
    core = StreamSink(dut, "m_reg", PATTERNS[stall](), ("write", "addr", "wdata"), "valid", "ready")
    answers = StreamSource(dut, "s_reg", PATTERNS[idle](), ("code", "value"), "valid", "ready")
    replies = StreamSink(dut, "m_reply", PATTERNS[stall](), ("header",), "valid", "ready")
    await start(dut)
    for _ in range(12):
        access = {
            "write": rng.randrange(2),
            "addr": rng.randrange(1 << 32),
            "tag": rng.randrange(1 << 16),
            "wdata": rng.getrandbits(64),
        }
        answer = {"code": rng.randrange(256), "value": rng.getrandbits(64)}
        accesses.put(access)
        (seen,) = await core.take(1)
        assert seen == {f: access[f] for f in ("write", "addr", "wdata")}
        await answers.send(answer)
        await accesses.drained()
        if rng.randrange(2):  # otherwise the next access arrives while this reply may still wait
            await ClockCycles(dut.clk, 20)
        (reply,) = await replies.take(1)
        assert model.unpack(reply["header"].to_bytes(22, "little")) == {
            **{f: 0 for f in zwire.FIELDS if f != "receivers"},
            "version": zwire.VERSION,
            "kind": zwire.KIND_REPLY,
            "vid": access["addr"],
            "length": access["tag"],
            "code": answer["code"],
            "mask": answer["value"],
        }


@cocotb.test(timeout_time=100, timeout_unit="us")
async def loses_no_reply(dut):
    """agg_register_link: no access begins during hold or before a reply has left; reset drops
    it."""
    dut.hold.value, dut.link_down.value = 1, 0
    fields = ("write", "addr", "tag", "wdata")
    accesses = StreamSource(dut, "s_register", None, fields, "valid", "ready")
    answers = StreamSource(dut, "s_reg", None, ("code", "value"), "valid", "ready")
    dut.m_reply_ready.value = 0
    dut.m_reg_ready.value = 1
    await start(dut)
    accesses.put([{"addr": n, "tag": n} for n in range(2)])
    answers.put([{"value": 70 + n} for n in range(2)])
    for _ in range(10):
        await RisingEdge(dut.clk)
        assert not int(dut.m_reg_valid.value)
    dut.hold.value = 0
    await ClockCycles(dut.clk, 20)
    assert int(dut.m_reply_valid.value)
    assert len(accesses.queue) == 1, "the second access waits for the first reply to leave"
    dut.m_reply_ready.value = 1
    await RisingEdge(dut.clk)
    dut.m_reply_ready.value = 0
    await ClockCycles(dut.clk, 20)
    assert not accesses.queue and int(dut.m_reply_valid.value)
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    assert not int(dut.m_reply_valid.value)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def no_reply_reaches_the_next_host(dut):
    """agg_register_link: the link falls at any moment of an access. The core, which may take longer
    than the link is down, is answered for every access that it accepted; the host is not."""
    dut.hold.value = dut.link_down.value = 0
    fields = ("write", "addr", "tag", "wdata")
    core = StreamSink(dut, "m_reg", None, ("write", "addr", "wdata"), "valid", "ready")
    answers = StreamSource(dut, "s_reg", None, ("code", "value"), "valid", "ready")
    replies = StreamSink(dut, "m_reply", None, ("header",), "valid", "ready")
    for signal in fields:
        getattr(dut, f"s_register_{signal}").value = 0
    dut.s_register_valid.value = 0
    await start(dut)
    late = set()
    for moment in range(12):
        for host in ("last", "next"):
            dut.s_register_valid.value, dut.s_register_tag.value = 1, 2 * moment + (host == "next")
            for cycle in range(40):
                dut.link_down.value = down = int(host == "last" and cycle >= moment and cycle < moment + 2)
                if core.beats and cycle >= 8:
                    core.beats.clear()
                    answers.put({"value": 2 * moment + (host == "next")})
                await FallingEdge(dut.clk)
                taken = int(dut.s_register_ready.value)
                late |= {moment} if int(dut.s_reg_valid.value) and not taken else set()
                await RisingEdge(dut.clk)
                if taken or down:
                    dut.s_register_valid.value = 0
            assert not answers.queue and not core.beats
        headers = [model.unpack(beat["header"].to_bytes(22, "little")) for beat in replies.beats]
        replies.beats.clear()
        last = [header for header in headers if header["length"] == 2 * moment]
        assert headers[len(last) :] == headers[-1:] and len(last) <= 1
        assert (headers[-1]["length"], headers[-1]["mask"]) == (2 * moment + 1,) * 2
    assert late, "no answer came after its host"


def test_agg_register_link():
    patterns = [f"/idle={idle}/stall={stall}" for idle in PATTERNS for stall in PATTERNS]
    run(
        "agg_register_link",
        testcase=[f"carries_accesses_and_replies{p}" for p in patterns]
        + ["loses_no_reply", "no_reply_reaches_the_next_host"],
    )


@cocotb.test(timeout_time=100, timeout_unit="us")
async def stays_down_until_all_is_quiet(dut):
    """agg_link_session: stays down after a fall of link_up until link_up and SETTLE idle cycles."""
    settle = int(dut.SETTLE.value)
    dut.link_up.value = 1
    dut.busy.value = 0
    await start(dut)

    async def down_for():
        cycles = 0
        while int(dut.down.value):
            cycles += 1
            await RisingEdge(dut.clk)
        return cycles

    assert settle <= await down_for() <= settle + 3
    await ClockCycles(dut.clk, 50)
    assert not int(dut.down.value)
    for busy in (0, 5, settle - 1, 3 * settle):
        dut.link_up.value = 0
        dut.busy.value = int(busy > 0)
        await RisingEdge(dut.clk)
        await RisingEdge(dut.clk)
        assert int(dut.down.value)
        dut.link_up.value = 1
        await ClockCycles(dut.clk, busy)
        assert int(dut.down.value)
        dut.busy.value = 0
        assert settle <= await down_for() <= settle + 3
    # A new interruption restarts the settling.
    dut.link_up.value = 0
    await RisingEdge(dut.clk)
    dut.link_up.value = 1
    await ClockCycles(dut.clk, settle - 1)
    dut.link_up.value = 0
    await ClockCycles(dut.clk, 100)
    assert int(dut.down.value)


def test_agg_link_session():
    run("agg_link_session", testcase=["stays_down_until_all_is_quiet"])
