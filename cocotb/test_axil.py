"""The AXI4-Lite register port, alone and in front of a card, by the master of cocotbext-axi."""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiResp

import model
import zwire
from bench import run, start
from cards import BareCard, axil_master, run_card
from streams import PATTERNS, StreamSink, StreamSource
from traffic import Traffic

RESPONSES = {zwire.CODE_DONE: AxiResp.OKAY, zwire.CODE_BAD_ADDRESS: AxiResp.DECERR}  # others: SLVERR


class Core:
    """Stands in for the core's register port: it answers at random."""

    def __init__(self, dut, idle, stall, rng):
        self.rng, self.writes, self.reads = rng, [], []
        self.accesses = StreamSink(
            dut, "m_reg", stall(), ("write", "addr", "wdata", "partial"), "valid", "ready", self.answer
        )
        self.answers = StreamSource(dut, "s_reg", idle(), ("code", "value"), "valid", "ready")

    def answer(self, access):
        code = self.rng.choice([zwire.CODE_DONE, zwire.CODE_BAD_ADDRESS, zwire.CODE_BUSY, zwire.CODE_READ_ONLY])
        value = self.rng.getrandbits(64)
        (self.writes if access["write"] else self.reads).append((access, code, value))
        self.answers.put({"code": code, "value": value})


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(idle=list(PATTERNS), stall=list(PATTERNS))
async def every_access_has_its_response(dut, idle, stall):
    """Reads and writes at the same time, whole and partial, while the link goes up and down."""
    rng = random.Random(f"{idle} {stall}")
    dut.link_down.value = 1
    core = Core(dut, PATTERNS[idle], PATTERNS[stall], rng)
    master = axil_master(dut, PATTERNS[idle], PATTERNS[stall])
    await start(dut)

    async def write():
        for _ in range(15):
            address, size = 8 * rng.getrandbits(29), rng.choice([8, 8, 8, 4])
            data = rng.randbytes(size)
            response = await master.write(address, data)
            access, code, _ = core.writes.pop()
            assert not core.writes
            assert (access["addr"], access["partial"]) == (address, size < 8)
            assert access["wdata"].to_bytes(8, "little")[:size] == data
            assert response.resp == RESPONSES.get(code, AxiResp.SLVERR)

    async def read():
        for _ in range(15):
            address = 8 * rng.getrandbits(29)
            response = await master.read(address, 8)
            access, code, value = core.reads.pop()
            assert not core.reads and (access["addr"], access["partial"]) == (address, 0)
            assert response.resp == RESPONSES.get(code, AxiResp.SLVERR)
            assert int.from_bytes(response.data, "little") == value

    tasks = [cocotb.start_soon(write()), cocotb.start_soon(read())]
    await ClockCycles(dut.clk, 60)
    assert not core.writes and not core.reads, "an access was accepted while the link was down"
    while not all(task.done() for task in tasks):
        dut.link_down.value = int(rng.random() < 0.2)
        await ClockCycles(dut.clk, rng.randint(1, 30))
    for task in tasks:
        task.result()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reads_and_writes_take_turns(dut):
    """Of a stream of reads and a stream of writes, neither starves the other; a write whose response
    is not taken does not hold up reads."""
    dut.link_down.value = 0
    order = []
    core = Core(dut, PATTERNS["never"], PATTERNS["never"], random.Random(1))
    core.accesses.to = lambda access: (order.append(access["write"]), core.answer(access))
    master = axil_master(dut)
    await start(dut)
    pending = [cocotb.start_soon(master.write(8 * i, bytes(8))) for i in range(6)]
    pending += [cocotb.start_soon(master.read(8 * i, 8)) for i in range(6)]
    for task in pending:
        await task
    assert order in ([0, 1] * 6, [1, 0] * 6), order
    master.write_if.b_channel.clear_pause_generator()
    master.write_if.b_channel.pause = True
    blocked = cocotb.start_soon(master.write(0, bytes(8)))
    await ClockCycles(dut.clk, 30)
    for _ in range(3):
        await master.read(0, 8)
    assert not blocked.done() and int(dut.s_axil_bvalid.value)
    master.write_if.b_channel.pause = False
    await blocked


def test_agg_axil():
    run(
        "agg_axil",
        testcase=[f"every_access_has_its_response/idle={i}/stall={s}" for i in PATTERNS for s in PATTERNS]
        + ["reads_and_writes_take_turns"],
    )


TOKEN = 0x1122_3344_5566_7788
PAIRS = [("never", "never"), ("bursts", "at_random"), ("at_random", "mostly")]


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize((("idle", "stall"), PAIRS))
async def jobs_run_by_axil_alone(dut, idle, stall):
    card = BareCard(dut, PATTERNS[idle], PATTERNS[stall])
    await card.reset()
    traffic = Traffic(card, random.Random(f"{idle} {stall}"))
    for _ in range(40):
        await traffic.step()
    await card.check_registers()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def a_refusal_leaves_its_reason(dut):
    card = BareCard(dut)
    await card.reset()
    master = card.registers.master

    async def write(register, value, response, code, size=8):
        address = register if isinstance(register, int) else model.address_of(register)
        answer = await master.write(address, (value % 2 ** (8 * size)).to_bytes(size, "little"))
        assert answer.resp == response, register
        assert await read("LAST_CODE") == code, register

    async def read(register, response=AxiResp.OKAY):
        address = register if isinstance(register, int) else model.address_of(register)
        answer = await master.read(address, 8)
        assert answer.resp == response, register
        return int.from_bytes(answer.data, "little")

    beyond = model.address_of("JOB_STATE", card.jobs)
    assert await read("LAST_CODE") == zwire.CODE_DONE
    await write("MAGIC", 1, AxiResp.SLVERR, zwire.CODE_READ_ONLY)
    await write("LAST_CODE", 1, AxiResp.SLVERR, zwire.CODE_READ_ONLY)
    await write(0x0F8, 1, AxiResp.DECERR, zwire.CODE_BAD_ADDRESS)
    await write("JOB_COMMIT", 1 << 32, AxiResp.SLVERR, zwire.CODE_BUSY)
    await write("OWNER", TOKEN, AxiResp.OKAY, zwire.CODE_DONE)
    await write("OWNER", 5, AxiResp.OKAY, zwire.CODE_DONE)
    assert await read("OWNER") == TOKEN, "OWNER tells whose the card is"
    await write("RELEASE", 5, AxiResp.SLVERR, zwire.CODE_BUSY)
    await write("JOB_TOKEN", TOKEN, AxiResp.OKAY, zwire.CODE_DONE)
    await write("JOB_TOKEN", 0, AxiResp.SLVERR, zwire.CODE_BAD_LENGTH, size=4)
    assert await read("JOB_TOKEN") == TOKEN, "a write without all bytes has no effect"
    await write(0x0F8, 1, AxiResp.DECERR, zwire.CODE_BAD_ADDRESS, size=2)
    await write("JOB_PORTS", 0, AxiResp.OKAY, zwire.CODE_DONE)
    await write("JOB_COMMIT", 1 << 32, AxiResp.SLVERR, zwire.CODE_BAD_PORTS)
    for address in (0x0F8, beyond, model.address_of("JOB_EVICTED") + 8, 1 << 31):
        assert await read(address, AxiResp.DECERR) == 0
    assert await read("LAST_CODE") == zwire.CODE_BAD_PORTS, "reads leave LAST_CODE"
    await write("JOB_PORTS", 1, AxiResp.OKAY, zwire.CODE_DONE)
    await write("JOB_CHUNK", card.chunk, AxiResp.OKAY, zwire.CODE_DONE)
    await write("JOB_WINDOW", card.window, AxiResp.OKAY, zwire.CODE_DONE)
    await write("JOB_COMMIT", 1 << 32, AxiResp.OKAY, zwire.CODE_DONE)
    assert await read("JOB_STATE") & 1, "the job is set up when the write is answered"
    await write("JOB_ABORT", 1 << 32, AxiResp.OKAY, zwire.CODE_DONE)
    assert not await read("JOB_STATE") & 1


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def a_falling_link_leaves_no_access_without_response(dut):
    """The link falls for a cycle at any moment of a write and a read. Both get one response; a
    write that has no effect is refused as busy."""
    card = BareCard(dut)
    await card.reset()
    master = card.registers.master
    seen = set()

    async def value(register):
        return int.from_bytes((await master.read(model.address_of(register), 8)).data, "little")

    for moment in range(36):
        epoch = moment + 1
        await card.set_up(epoch=2 * epoch, token=TOKEN)
        commits = moment % 2 == 1
        register = "JOB_COMMIT" if commits else "JOB_DEADLINE"
        data = (2 * epoch + 1) << 32 if commits else epoch
        write = cocotb.start_soon(master.write(model.address_of(register), data.to_bytes(8, "little")))
        read = cocotb.start_soon(master.read(model.address_of("MAGIC"), 8))
        await ClockCycles(dut.clk, moment // 2 * (7 if commits else 1) + 1)  # a commit takes longer
        dut.link_up.value = 0
        await ClockCycles(dut.clk, 1)
        dut.link_up.value = 1
        card.model.link_down()
        response = (await write).resp
        assert int.from_bytes((await read).data, "little") == zwire.MAGIC
        # A commit that was accepted after the fall finds no owner.
        code = await value("LAST_CODE")
        assert code == (zwire.CODE_DONE if response == AxiResp.OKAY else zwire.CODE_BUSY)
        assert response in (AxiResp.OKAY, AxiResp.SLVERR)
        seen.add((register, response))
        assert await value("OWNER") == 0 and not await value("JOB_STATE") & 1
        if not commits:
            assert await value("JOB_DEADLINE") == (epoch if response == AxiResp.OKAY else 0)
        card.model.staged["JOB_DEADLINE"] = await value("JOB_DEADLINE")
        card.model.last_code = code
        # The next host's set-up and its epoch do not depend on it.
        await card.write("JOB_DEADLINE", 0)
        await RisingEdge(dut.clk)
    assert seen == {(name, resp) for name in ("JOB_COMMIT", "JOB_DEADLINE") for resp in (AxiResp.OKAY, AxiResp.SLVERR)}


@pytest.mark.parametrize("card", ["one_job", "two_jobs"])
def test_top_axil(card):
    jobs = ["-jobs", 2] if card == "two_jobs" else []
    flags = ["-lanes", 2, "-workers", 3, "-chunk", 8, "-window", 4, *jobs, "-shell", "none", "-registers", "axil"]
    tests = ["a_refusal_leaves_its_reason", "a_falling_link_leaves_no_access_without_response"]
    tests += [f"jobs_run_by_axil_alone/idle={idle}/stall={stall}" for idle, stall in PAIRS]
    run_card(f"axil_{card}", flags, tests)
