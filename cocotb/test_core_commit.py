"""agg_commit, compared with the checks of section 5 of the specification.

The bench begins operations every second cycle at most, and drives the inputs of other cycles at
random.
"""

import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge

import zwire
from bench import joined, run, start

# Fields of a request, as in agg_ingress: name and width, lowest first.
REQUEST = [
    ("version", 4),
    ("kind", 4),
    ("ecn", 2),
    ("job", 8),
    ("format", 8),
    ("epoch", 16),
    ("rank", 8),
    ("vid", 32),
    ("length", 16),
    ("whole", 1),
    ("bad", 1),
    ("nonfinite", 1),
    ("writable", 1),
    ("entered", 1),
]


def pack_request(request):
    value = shift = 0
    for name, bits in REQUEST:
        value |= request[name] << shift
        shift += bits
    return value


def expected_code(request, jobs, port):
    """Returns the code of the specification's first failed check, or 0."""
    job = job_of(request, jobs)
    kinds = (zwire.KIND_DATA, zwire.KIND_ASK, zwire.KIND_FINISH)
    finish = request["kind"] == zwire.KIND_FINISH
    confirms = finish and job["complete"] and request["epoch"] == job["epoch"]
    data = request["kind"] == zwire.KIND_DATA
    checks = [
        (request["version"] == zwire.VERSION, zwire.CODE_BAD_VERSION),
        (request["kind"] in kinds, zwire.CODE_BAD_KIND),
        (request["job"] < len(jobs) and (job["valid"] or confirms), zwire.CODE_BAD_JOB),
        (request["epoch"] == job["epoch"], zwire.CODE_BAD_EPOCH),
        (job["ranks"].get(port) == request["rank"], zwire.CODE_BAD_RANK),
        (port not in job["evicted"], zwire.CODE_EVICTED),
        (not data or request["format"] == zwire.FORMAT_FP32, zwire.CODE_BAD_FORMAT),
        (not data or (request["length"] == job["chunk"] and request["whole"]), zwire.CODE_BAD_LENGTH),
        (not data or not request["bad"], zwire.CODE_PAYLOAD_CRC),
    ]
    return next((code for holds, code in checks if not holds), 0)


def job_of(request, jobs):
    return jobs[request["job"] % len(jobs)]


def random_job(rng, ports):
    """Returns a random job's configuration."""
    members = sorted(rng.sample(range(ports), rng.randint(1, ports)))
    window = rng.choice([1, 2, 4])
    return {
        "valid": rng.random() < 0.8,
        "complete": rng.random() < 0.5,
        "epoch": rng.getrandbits(16),
        "chunk": rng.getrandbits(16),
        "first": rng.getrandbits(32),
        "partial": rng.random() < 0.5,
        "window": window,
        "base": rng.randrange(0, 16, 2 * window),
        "ranks": {port: rank for rank, port in enumerate(members)},
        "evicted": {port for port in members if rng.random() < 0.1},
    }


def show_jobs(dut, jobs, ports):
    bits = len(dut.act_slot)
    for name in ("valid", "complete", "partial"):
        getattr(dut, f"job_{name}").value = joined(1, [job[name] for job in jobs])
    dut.job_epoch.value = joined(16, [job["epoch"] for job in jobs])
    dut.job_chunk.value = joined(16, [job["chunk"] for job in jobs])
    dut.job_first.value = joined(32, [job["first"] for job in jobs])
    dut.job_window.value = joined(bits, [job["window"] for job in jobs])
    dut.slot_mask.value = joined(bits, [2 * job["window"] - 1 for job in jobs])
    dut.slot_base.value = joined(bits, [job["base"] for job in jobs])
    dut.member.value = joined(1, [p in job["ranks"] for job in jobs for p in range(ports)])
    dut.evicted.value = joined(1, [p in job["evicted"] for job in jobs for p in range(ports)])
    dut.present.value = joined(ports, [present(job) for job in jobs])
    dut.rank_of_port.value = joined(8, [job["ranks"].get(p, 200) for job in jobs for p in range(ports)])


def present(job):
    return sum(1 << port for port in job["ranks"] if port not in job["evicted"])


class Operation:
    """A request, or an overdue slot."""

    def __init__(self, rng, jobs, ports):
        self.age, self.is_act = 2, rng.random() < 0.1
        self.number, self.port = rng.randrange(len(jobs)), rng.randrange(ports)
        job = jobs[self.number]
        kinds = [zwire.KIND_DATA, zwire.KIND_DATA, zwire.KIND_ASK, zwire.KIND_FINISH]
        self.request = {
            "version": zwire.VERSION,
            "kind": rng.choice(kinds),
            "job": self.number,
            "format": zwire.FORMAT_FP32,
            "epoch": job["epoch"],
            "rank": job["ranks"].get(self.port, 0),
            "length": job["chunk"],
            "whole": 1,
            "bad": 0,
        }
        for name, bits in REQUEST:
            if name not in self.request or rng.random() < 0.07:
                self.request[name] = rng.getrandbits(bits)
        if not self.is_act:
            self.number, job = self.request["job"] % len(jobs), job_of(self.request, jobs)
        self.job = job
        place = rng.getrandbits(4) if self.is_act else self.request["vid"]
        self.slot = job["base"] | place & (2 * job["window"] - 1)
        self.code = expected_code(self.request, jobs, self.port)
        self.placed = self.request["job"] < len(jobs) and job["valid"]

    def drive(self, dut):
        dut.valid.value, dut.act.value = int(not self.is_act), int(self.is_act)
        dut.ports.value, dut.port.value = 1 << self.port, self.port
        dut.request.value = 0 if self.is_act else pack_request(self.request)
        dut.act_slot.value, dut.act_job.value = (self.slot, self.number) if self.is_act else (0, 0)

    def check(self, dut):
        """Checks the outputs of this cycle."""

        def shows(*names):
            return tuple(int(getattr(dut, name).value) for name in names)

        job, request = self.job, self.request
        accepted = not self.is_act and self.code == 0
        if self.age == 2:
            assert shows("read_row") == (job["base"] // 2 + self.slot % job["window"],)
        if self.age in (3, 4):
            assert shows("read_slot", "read_other") == (self.slot, self.slot ^ job["window"])
            assert shows("read_window", "read_mask") == (job["window"], 2 * job["window"] - 1)
            assert shows("read_first") == (job["first"],)
            assert self.is_act or shows("read_vid") == (request["vid"],)
        if self.age == 5:
            assert shows("acts", "refused") == (self.is_act, not self.is_act and self.code != 0)
            kinds = (zwire.KIND_DATA, zwire.KIND_ASK, zwire.KIND_FINISH)
            assert shows("data", "ask", "finish") == tuple(accepted and request["kind"] == kind for kind in kinds)
        if self.age in (5, 6):
            assert shows("index", "partial") == (self.number, job["partial"])
            assert shows("waits_for", "gone") == (present(job), joined(1, self.ports_gone(len(dut.ports))))
        if self.age in (5, 6) and not self.is_act:
            ended = self.code == zwire.CODE_BAD_JOB and request["entered"]
            belongs = job["ranks"].get(self.port) == request["rank"]
            assert shows("code", "belongs", "placed") == (self.code, belongs, self.placed)
            assert shows("of_data", "ended") == (request["kind"] == zwire.KIND_DATA, ended)
            assert shows("from_port", "from_ports") == (self.port, 1 << self.port)
            for name in ("ecn", "job", "epoch", "rank", "nonfinite", "writable"):
                assert shows(name) == (request[name],), name

    def ports_gone(self, ports):
        return [port in self.job["evicted"] for port in range(ports)]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def the_first_check_that_fails_is_the_refusal(dut):
    """The jobs' configuration changes when no operation is under way."""
    rng = random.Random(3)
    count, ports = len(dut.job_valid), len(dut.ports)
    dut.valid.value = dut.act.value = 0
    await start(dut)
    seen, under_way, rests = [], [], 0
    while len(seen) < 3000:
        if not under_way:
            jobs = [random_job(rng, ports) for _ in range(count)]
            show_jobs(dut, jobs, ports)
        dut.valid.value = dut.act.value = 0
        dut.request.value, dut.ports.value = rng.getrandbits(103), rng.getrandbits(ports)
        if rests == 0 and rng.random() < 0.9:
            under_way.append(Operation(rng, jobs, ports))
            under_way[-1].drive(dut)
            rests = rng.choice([1, 1, 1, 2, 5])
        else:
            rests = max(0, rests - 1)
        await FallingEdge(dut.clk)
        ages = {operation.age for operation in under_way}
        assert int(dut.read.value) == int(2 in ages)
        if 5 not in ages:
            assert not any(int(getattr(dut, name).value) for name in ("acts", "refused", "data", "ask", "finish"))
        for operation in under_way:
            operation.check(dut)
            operation.age += 1
        seen += [operation.code for operation in under_way if operation.age == 7 and not operation.is_act]
        under_way = [operation for operation in under_way if operation.age < 7]
        await RisingEdge(dut.clk)
    assert len(set(seen)) == 10, "not every check was tried"


@pytest.mark.parametrize("jobs, job_bits", [(1, 1), (4, 2)])
def test_agg_commit(jobs, job_bits):
    run(
        "agg_commit",
        parameters={
            "PORTS": 5,
            "PORT_BITS": 3,
            "JOBS": jobs,
            "JOB_BITS": job_bits,
            "SLOT_BITS": 4,
            "ROW_BITS": 3,
        },
        testcase=["the_first_check_that_fails_is_the_refusal"],
    )
