"""Concurrent workers of a tree job, and the parent of their card: it loses, repeats, waits and lies.

The order of events in the card is random. The checks hold for any order: the parent gets each own sum, correct in every
bit, never before it is due; each worker gets each final sum as the parent sent it; nothing else has any effect.
"""

import cocotb
from cocotb.triggers import Combine

import model
import tree_model
import zwire
from bench import wait_cycles
from traffic import TOKEN, elements
from workers import Reduction, Worker, deliver

RANK = 2  # the card's, at its parent
BROTHERS = 3  # members of the parent, the card included
PARENT_PORTS = 4

WORDS = 64  # of a mask


class TreeReduction(Reduction):
    """A tree job on one card, with its workers and its parent."""

    @property
    def worker(self):
        return TreeWorker

    def __init__(self, card, rng, chunks, epoch, repeat, rogue=0.5, **sizes):
        """repeat: JOB_REPEAT. rogue: probability that the parent sends a wrong packet beside each right one."""
        super().__init__(card, rng, chunks, epoch, **sizes)
        self.repeat = repeat
        shuffled = rng.sample(range(WORDS), WORDS)
        self.ranks = [1 << shuffled[port] | 1 << shuffled[port - 32] for port in range(card.ports)]  # of each port
        self.tree = sum(self.ranks[port] for port in self.members) | 1 << shuffled[31]
        self.parent = Parent(self, rogue)

    async def set_up(self, token):
        sizes = {"ports": self.ports, "chunk": self.chunk, "window": self.window, "deadline": self.deadline}
        tree = {"parent": RANK << 8 | tree_model.TREE_JOB, "repeat": self.repeat, "ranks": self.tree, "members": self.ranks}
        await self.card.set_up(self.epoch, **sizes, **tree, first=self.first, token=token, job=self.job)
        return self.card.model.blocks[self.job].last_epoch == self.epoch

    def take(self, header, payload, port):
        if header["kind"] in (zwire.KIND_DATA, zwire.KIND_FINISH):
            assert port == self.card.place(self.card.ports)
            return self.parent.take(header, payload)
        if header["kind"] == zwire.KIND_STATUS:
            return self.workers[header["rank"]].take_status(header, port)
        workers = [self.workers[rank] for rank in self.card.receivers(self.members, header, port)]
        chunk = (header["vid"] - self.first) % 2**32
        assert chunk in self.parent.finals, f"a result for chunk {chunk}, which has no final sum"
        flags, total = self.parent.finals[chunk]
        assert payload == total, f"job {self.job}: wrong bits in chunk {chunk} at port {port}"
        own = self.data.flags(chunk)
        assert header["flags"] == model.merge_ecn([flags & 3, own & 3]) | (flags | own) & zwire.FLAG_NONFINITE
        assert header["mask"] == self.tree
        assert header["length"] == self.chunk and header["format"] == self.card.format.number
        if any(chunk in worker.sent for worker in workers):
            assert header["kind"] == zwire.KIND_REPLAY, f"chunk {chunk} came again as a result"
        for worker in workers:
            worker.take_result(chunk)

    def global_ranks(self, ranks):
        """Returns the mask that names the local ranks."""
        return sum(self.ranks[self.members[rank]] for rank in ranks)


class TreeWorker(Worker):
    """A worker of a tree job: the masks of statuses name global ranks."""

    def __init__(self, reduction, rank):
        super().__init__(reduction, rank)
        self.notified = []  # VIDs of done

    def take_status(self, header, port):
        assert port == self.card.place(self.port), f"a status at port {port}: {header}"
        reduction, code, mask = self.reduction, header["code"], header["mask"]
        own = reduction.global_ranks([self.rank])
        everyone = reduction.global_ranks(range(len(reduction.members)))
        if code == zwire.CODE_DONE:
            assert mask == 0
            self.finished = True
            self.notified.append(header["vid"])
        elif code == zwire.CODE_OVERDUE:
            assert (header["vid"], mask) in reduction.parent.overdue, f"a notice that the parent did not send: {header}"
        elif reduction.ended:
            return
        elif code == zwire.CODE_SEND:
            assert mask & own == own and not mask & ~everyone, f"a mask of other ranks: {header}"
            self.contribute((header["vid"] - reduction.first) % 2**32)
        elif code == zwire.CODE_WAIT:
            assert not mask & own and not mask & ~everyone, f"a mask of other ranks: {header}"


class Parent:
    """The card's parent: it adds the sums of the card's brothers to each own sum."""

    def __init__(self, reduction, rogue):
        self.reduction, self.rng, self.card, self.rogue = reduction, reduction.rng, reduction.card, rogue
        self.finals = {}  # by chunk: flags and payload of the final sum
        self.seen = {}  # by chunk: own sums that came
        self.taken, self.dropped, self.refused = 0, 0, 0  # what the card's counters will have
        self.packets = 0  # that came
        self.finishes = 0
        self.overdue = []  # VIDs and masks of the notices sent
        self.done = False  # the finish was answered

    def take(self, header, payload):
        """Checks a packet for the parent, even after the job has ended."""
        self.packets += 1
        assert header["rank"] == RANK and header["code"] == 0 and not header.get("mask"), header
        if header["kind"] == zwire.KIND_FINISH:
            return self._finish(header, payload)
        assert header["kind"] == zwire.KIND_DATA, header
        data, window = self.reduction.data, self.reduction.window
        chunk = (header["vid"] - self.reduction.first) % 2**32
        assert all(chunk < worker.next for worker in self.reduction.workers), f"an own sum of chunk {chunk}, not yet sent"
        assert payload == data.sum(chunk), f"wrong bits in the own sum of chunk {chunk}"
        assert header["flags"] == data.flags(chunk)
        assert header["length"] == self.reduction.chunk and header["format"] == self.card.format.number
        assert chunk < window or chunk - window in self.finals, f"own sum {chunk} before final sum {chunk - window}"
        self.seen[chunk] = self.seen.get(chunk, 0) + 1
        if self.rng.random() < 0.75:
            cocotb.start_soon(self._answer(chunk, payload, header["flags"]))

    def _finish(self, header, payload):
        count = len(self.reduction.data)
        assert payload == b"" and header["flags"] == header["length"] == 0
        assert header["vid"] == (self.reduction.first + count) % 2**32
        assert all(len(worker.got) == count for worker in self.reduction.workers), "a finish before the last result"
        self.finishes += 1
        if self.finishes > 1 and not self.done:
            self.done = True
            self._status(zwire.CODE_DONE, header["vid"])

    async def _answer(self, chunk, payload, flags):
        """Answers an own sum after a while, not always, and sometimes with more than the answer."""
        rng = self.rng
        await wait_cycles(self.card.dut, rng.choice([1, rng.randint(1, 40), rng.randint(1, 300)]))
        if self.reduction.ended or self.done:
            return
        if rng.random() < self.rogue:
            self._lie(chunk)
        if rng.random() < 0.15:
            if rng.random() < 0.5:
                self._status(zwire.CODE_DUPLICATE, self.reduction.first + chunk)
                self.refused += 1
            return
        first = chunk not in self.finals
        if first:
            self.finals[chunk] = self._add(payload, flags)
            self.taken += 1
        else:
            self.dropped += 1
        flags, total = self.finals[chunk]
        # The first copy that is taken decides: marks of a later one differ.
        flags = flags if first else rng.getrandbits(8)
        self._send(zwire.KIND_RESULT if first else zwire.KIND_REPLAY, chunk, flags, total)

    def _add(self, own, flags):
        """Returns flags and payload of the final sum: arithmetic of the next level."""
        format = self.card.format
        contributions = [None] * PARENT_PORTS
        for rank in range(BROTHERS):
            payload = own if rank == RANK else elements(self.rng, self.reduction.chunk, format, special=0.05)
            contributions[rank] = format.elements(payload)
        strange = any(format.nonfinite(bits).any() for bits in contributions if bits is not None)
        total, _ = self.card.arithmetic.sum(contributions)
        ecn = model.merge_ecn([flags & 3, self.rng.choice(model.ECN_ORDER)])
        other = self.rng.getrandbits(4) << 4  # bits without a meaning
        return other | ecn | (zwire.FLAG_NONFINITE if strange else 0), format.payload(total)

    def _lie(self, chunk):
        """Sends a packet that the card drops, or that has no effect."""
        rng, reduction = self.rng, self.reduction
        # Chunks that no member can have sent when this arrives: finals arrive in order.
        ahead = max(worker.next for worker in reduction.workers) + reduction.window
        lies = {
            "early": {"vid": reduction.first + ahead + rng.choice([0, 0, 1, reduction.window])},
            "epoch": {"epoch": (reduction.epoch - 1) % 2**16},
            "number": {"job": len(self.card.model.blocks)},
            "mask": {"mask": reduction.tree ^ 1 << rng.randrange(WORDS)},
            "format": {"format": self.card.format.number ^ 1},
            "length": {"length": reduction.chunk + self.card.lanes},
            "version": {"version": 3},
            "kind": {"kind": rng.choice([zwire.KIND_DATA, zwire.KIND_REPLY, 0, 15])},
            "bad": {},
            "status": None,
        }
        lie = rng.choice(list(lies))
        if lie == "status":
            return self._strange_status(chunk)
        length = reduction.chunk + self.card.lanes * (lie == "length")
        header = self._header(zwire.KIND_RESULT, chunk) | {"flags": rng.getrandbits(8)} | lies[lie]
        header["vid"] %= 2**32
        payload = elements(rng, length, self.card.format)
        self.dropped += self.card.counts_as_up_dropped(header, payload, bad=lie == "bad")
        self.card.send(self.card.ports, header, payload, bad=lie == "bad")

    def _strange_status(self, chunk):
        rng, vid = self.rng, self.reduction.first + chunk
        code = rng.choice([zwire.CODE_OVERDUE, zwire.CODE_WAIT, zwire.CODE_SEND, zwire.CODE_BUSY, zwire.CODE_DONE, zwire.CODE_EARLY])
        if rng.random() < 0.2:
            self.dropped += 1
            return self._status(code, vid, rank=RANK + 1)
        mask = rng.getrandbits(WORDS)
        if code == zwire.CODE_OVERDUE:
            self.overdue.append((vid % 2**32, mask))
        # All members have not finished: a chunk is on its way. But a late answer may come after the last result.
        if code == zwire.CODE_DONE and len(self.finals) == len(self.reduction.data):
            code = zwire.CODE_WAIT
        self.dropped += code in (zwire.CODE_BUSY, zwire.CODE_DONE)
        self.refused += code == zwire.CODE_EARLY
        self._status(code, vid, mask=mask)

    def _header(self, kind, chunk):
        reduction = self.reduction
        return {
            "kind": kind,
            "job": reduction.job,
            "format": self.card.format.number,
            "epoch": reduction.epoch,
            "rank": 0,
            "vid": (reduction.first + chunk) % 2**32,
            "length": reduction.chunk,
            "mask": reduction.tree,
        }

    def _send(self, kind, chunk, flags, payload):
        self.card.send(self.card.ports, self._header(kind, chunk) | {"flags": flags}, payload)

    def _status(self, code, vid, rank=RANK, mask=0):
        reduction = self.reduction
        status = {"kind": zwire.KIND_STATUS, "job": reduction.job, "epoch": reduction.epoch, "vid": vid % 2**32}
        self.card.send(self.card.ports, status | {"rank": rank, "code": code, "mask": mask})


async def reduce_in_a_tree(card, rng, lives):
    """Runs tree jobs one after another, beside an ordinary one if the card has room, and checks every packet and the
    counters."""
    reductions, epoch = [], rng.getrandbits(16)
    cocotb.start_soon(deliver(card, reductions))
    for life in range(lives):
        epoch = (epoch + 1) % 2**16
        window = max(1, min(card.window >> (card.jobs > 1), 1 << rng.randrange(3)))
        sizes = {"window": window, "chunk": card.lanes * rng.randint(1, card.chunk // card.lanes)}
        first = rng.choice([0, 2**32 - 3, rng.getrandbits(32)])
        tree = TreeReduction(card, rng, 8, epoch, repeat=rng.choice([1, 60, 200]), first=first, **sizes)
        running = [tree]
        if card.jobs > 1:
            running.append(Reduction(card, rng, 6, epoch, job=1, **sizes))
        before = {name: await held(card, name) for name in ["chunks", "results", *zwire.UP_COUNTER_NAMES]}
        for reduction in running:
            assert await reduction.set_up(TOKEN)
            reductions.append(reduction)
        await Combine(*[cocotb.start_soon(reduction.reduce()) for reduction in running])
        await Combine(*[cocotb.start_soon(reduction.finish()) for reduction in running])
        await card.quiet()
        await check_end(card, tree)
        counts = {name: await held(card, name) - value for name, value in before.items()}
        check_counts(counts, tree, running[1:])
        for reduction in running:
            reduction.ended = True
            card.model.blocks[reduction.job].job = None  # all have finished


async def check_end(card, tree):
    """The parent has answered the finish: every member was told, and the job has ended."""
    last = (tree.first + len(tree.data)) % 2**32
    for worker in tree.workers:
        assert worker.notified and set(worker.notified) == {last}
    assert not await held(card, "JOB_STATE", tree.job) & 1
    counts = {"JOB_NONFINITE_OUT": 0, **tree.counts()}
    format = card.format
    counts["JOB_NONFINITE_OUT"] += sum(int(format.nonfinite(format.elements(p)).sum()) for _, p in tree.parent.finals.values())
    assert {name: await held(card, name, tree.job) for name in counts} == counts


def check_counts(counts, tree, others):
    """counts: how far the counters advanced."""
    parent, chunks = tree.parent, len(tree.data)
    assert parent.taken == len(parent.finals) == chunks and parent.done
    assert counts["up_sent"] == parent.packets
    assert counts["up_taken"] == chunks
    assert counts["up_dropped"] == parent.dropped
    assert counts["up_refused"] == parent.refused
    again = parent.packets - chunks - 1
    assert counts["up_repeats"] >= again, f"{counts['up_repeats']} repeats, but {again} more own sums and finishes"
    assert counts["chunks"] == 2 * chunks + sum(len(other.data) for other in others)


async def held(card, name, job=0):
    """Returns the value of a register that the model does not follow."""
    reply = await card.register({"kind": zwire.KIND_REGREAD, "vid": card.model.address_of(name, job), "length": 0})
    return reply["mask"]
