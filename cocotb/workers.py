"""Concurrent workers that lose, repeat and ask, for one or several jobs, on either shell.

The order of events in the card is random. The checks hold for any order: every rank gets every sum of its own job,
correct in every bit, and marked as a replay if the rank was sent it before.
"""

import cocotb
from cocotb.triggers import Combine

import zwire
from bench import wait_cycles
from traffic import Contributions, data_header, elements


class Reduction:
    """One job and its workers, from its set-up to its end."""

    @property
    def worker(self):
        """Returns the class of the workers."""
        return Worker

    def __init__(self, card, rng, chunks, epoch, job=0, ports=None, chunk=None, window=None, first=0, deadline=0):
        """ports, chunk, window: by default the card's maximum. deadline: as in JOB_DEADLINE."""
        self.card, self.rng, self.epoch, self.job, self.first = card, rng, epoch, job, first
        self.ports = ports or (1 << card.ports) - 1
        self.chunk, self.window, self.deadline = chunk or card.chunk, window or card.window, deadline
        self.members = [port for port in range(card.ports) if self.ports >> port & 1]
        self.data = Contributions(card, rng, chunks, members=self.members, size=self.chunk)
        self.workers = [self.worker(self, rank) for rank in range(len(self.members))]
        self.ended = False  # otherwise than by its workers

    async def set_up(self, token):
        """Sets the job up; returns whether the card had slots for it."""
        sizes = {"ports": self.ports, "chunk": self.chunk, "window": self.window, "deadline": self.deadline}
        await self.card.set_up(self.epoch, **sizes, first=self.first, token=token, job=self.job)
        return self.card.model.blocks[self.job].last_epoch == self.epoch

    async def reduce(self):
        """Returns when all workers have all results, or the job has ended."""
        await Combine(*[cocotb.start_soon(worker.reduce()) for worker in self.workers])

    async def finish(self):
        """Returns when all workers have finished, or the job has ended otherwise."""
        await Combine(*[cocotb.start_soon(worker.finish()) for worker in self.workers])

    def late(self):
        """Sends a packet as if it had been delayed for long."""
        rank = self.rng.randrange(len(self.members))
        vid = self.first + self.rng.randrange(len(self.data))
        header = self.header(self.rng.choice([zwire.KIND_DATA, zwire.KIND_DATA, zwire.KIND_ASK, zwire.KIND_FINISH]), rank, vid)
        payload = b""
        if header["kind"] == zwire.KIND_DATA:
            payload = elements(self.rng, self.chunk, self.card.format)
        self.card.send(self.members[rank], header, payload)

    def header(self, kind, rank, vid):
        """Returns the header of a packet of the rank."""
        if kind == zwire.KIND_DATA:
            return data_header(self.card, rank, vid, self.epoch, self.job) | {"length": self.chunk}
        return {"kind": kind, "job": self.job, "epoch": self.epoch, "rank": rank, "vid": vid % 2**32}

    def take(self, header, payload, port):
        """Checks a packet with the job's number and epoch, even after the job has ended."""
        if header["kind"] == zwire.KIND_STATUS:
            return self.workers[header["rank"]].take_status(header, port)
        workers = [self.workers[rank] for rank in self.card.receivers(self.members, header, port)]
        chunk = (header["vid"] - self.first) % 2**32
        assert all(chunk < worker.next for worker in workers), f"a result for chunk {chunk}, which was not sent"
        assert payload == self.data.sum(chunk), f"job {self.job}: wrong bits in chunk {chunk} at port {port}"
        assert header["flags"] == self.data.flags(chunk)
        assert header["mask"] == (1 << len(self.members)) - 1
        assert header["length"] == self.chunk and header["format"] == self.card.result.number
        if any(chunk in worker.sent for worker in workers):
            assert header["kind"] == zwire.KIND_REPLAY, f"chunk {chunk} came again as a result"
        elif port is None:  # else it may be a replay for what another port, or host, had been sent
            assert header["kind"] == zwire.KIND_RESULT, f"chunk {chunk} came as a replay at first"
        for worker in workers:
            worker.take_result(chunk)

    def counts(self):
        """Returns the job's expected register counts if every chunk was summed once."""
        chunks = range(len(self.data))
        out, over = map(sum, zip(*map(self.data.strange_sums, chunks)))
        strange = sum(sum(self.data.strange(chunk)) for chunk in chunks)
        return {"JOB_NONFINITE_IN": strange, "JOB_NONFINITE_OUT": out, "JOB_OVERFLOW": over}


class Worker:
    """A worker as in section 8 of the specification, but impatient, repetitive, and sometimes unlucky."""

    def __init__(self, reduction, rank):
        self.reduction, self.rank, self.rng = reduction, rank, reduction.rng
        self.card, self.port, self.data = reduction.card, reduction.members[rank], reduction.data
        self.next = 0  # chunk to be sent next
        self.sent = set()  # chunks whose result has come
        self.got = set()  # and was not lost
        self.bad = 0  # payloads sent with a wrong CRC
        self.finished = False

    async def reduce(self):
        most = 2 * self.reduction.chunk // self.card.lanes
        while len(self.got) < len(self.data) and not self.reduction.ended:
            self.act()
            await wait_cycles(self.card.dut, self.rng.randint(1, most))

    async def finish(self):
        while not self.finished and not self.reduction.ended:
            self.send(zwire.KIND_FINISH, len(self.data))
            await wait_cycles(self.card.dut, 200)

    def act(self):
        window = self.reduction.window
        overdue = [c for c in range(self.next) if c not in self.got]
        chance = self.rng.random()
        if self.next < len(self.data) and all(c in self.got for c in range(self.next - window + 1)):
            if chance < 0.1:
                self.bad += 1
                return self.contribute(self.next, bad=True)
            self.next += 1
            return self.contribute(self.next - 1)
        if not overdue or not self.card.idle(self.port):
            return
        if chance < 0.2:
            self.contribute(self.rng.choice(overdue))
        elif chance < 0.4:
            self.send(zwire.KIND_ASK, self.rng.choice(overdue))
        elif chance < 0.5 and self.next > window:
            self.contribute(self.rng.randrange(self.next - window, self.next))

    def contribute(self, chunk, bad=False):
        header = self.reduction.header(zwire.KIND_DATA, self.rank, self.reduction.first + chunk)
        header["flags"] = self.data.ecn[chunk][self.rank]
        self.card.send(self.port, header, self.data.payloads[chunk][self.rank], bad)

    def send(self, kind, chunk):
        self.card.send(self.port, self.reduction.header(kind, self.rank, self.reduction.first + chunk))

    def take_status(self, header, port):
        assert port in (None, self.card.place(self.port)), f"a status at port {port}: {header}"
        self.finished |= header["code"] == zwire.CODE_DONE
        if self.reduction.ended:
            return
        if header["code"] == zwire.CODE_SEND:
            assert header["mask"] >> self.rank & 1
            self.contribute((header["vid"] - self.reduction.first) % 2**32)
        if header["code"] == zwire.CODE_WAIT:
            assert header["mask"] and not header["mask"] >> self.rank & 1

    def take_result(self, chunk):
        self.sent.add(chunk)
        if self.rng.random() < 0.9:
            self.got.add(chunk)


async def deliver(card, reductions):
    """Forever passes the card's packets to their reductions; a packet for none of them is an error."""
    while True:
        await wait_cycles(card.dut, 4)
        for header, payload, port in card.sent:
            of = [r for r in reductions if (r.job, r.epoch) == (header["job"], header["epoch"])]
            assert len(of) == 1, f"sent to port {port}, for no job that was: {header}"
            of[0].take(header, payload, port)
        card.sent.clear()
