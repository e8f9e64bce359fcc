"""A model of a card with an up port, written from driver/wire/TREES.md alone: what it adds to model.py.

The up port is the port after the members': packets from the parent arrive at port number ports, and the masks of ports
of what the card sends have this bit for what leaves for the parent.

The card may choose whether it ignores a repeat, within bounds of time. The model has no clock: the bench sets span,
the first and last cycle in which the next packet can take effect, and tells the model what the card chose.
"""

from typing import NamedTuple

import model
import zwire

WAITING = "waiting"

# JOB_PARENT
TREE_JOB = 1
RANK_LSB, RANK_BITS = 8, 8

STAGED = ["JOB_PARENT", "JOB_REPEAT", "TREE_RANKS"]

# With shell none, which has no addresses.
REGISTERS = {name: row for name, row in zwire.TREE_REGISTERS.items() if not name.startswith("PARENT_")}


class Setup(NamedTuple):
    """What is staged of a tree, and copied into a job."""

    parent: int = 0  # JOB_PARENT
    repeat: int = 0  # JOB_REPEAT
    ranks: int = 0  # TREE_RANKS
    members: tuple = ()  # MEMBER_RANKS by port, 0 for a port that is no member

    @property
    def tree(self):
        """Returns whether the job is a tree job."""
        return bool(self.parent & TREE_JOB)

    @property
    def rank(self):
        """Returns the card's rank at its parent."""
        return self.parent >> RANK_LSB & (1 << RANK_BITS) - 1


class Debt:
    """An own sum or a finish that is owed to the parent, once and for its repeats.

    Times are spans: the first and last cycle in which something may have happened.
    """

    def __init__(self):
        self.owed = True
        self.sent = None  # when last
        self.ignored = None  # the first repeat that the card was not bound to ignore, and did

    def leaves(self, span):
        """It is sent."""
        self.owed, self.sent, self.ignored = False, span, None

    def ignores(self, span, repeat):
        """The card ignored a repeat that it might have taken."""
        if self.ignored is None and span[0] - self.sent[1] > 2 * repeat:
            self.ignored = span

    def due(self, span, repeat):
        """Returns whether a repeat owes it again; None if the card may choose."""
        if self.owed or span[1] - self.sent[0] < repeat:
            return False
        if self.ignored is not None and span[0] - self.ignored[1] >= 2 * repeat:
            return True
        return None


class Choice(NamedTuple):
    """A packet that the card may send."""

    debt: Debt
    packet: tuple
    repeat: int  # JOB_REPEAT


class TreeCard(model.Card):
    """A card with shell none and an up port."""

    KNOWN_PARENT = TREE_JOB | (1 << RANK_BITS) - 1 << RANK_LSB  # bits of JOB_PARENT

    def __init__(self, lanes, ports, chunk, window, ident, shared, arithmetic=None, jobs=1):
        super().__init__(lanes, ports, chunk, window, ident, shared, arithmetic, jobs)
        assert self.arithmetic.format.number == self.arithmetic.result.number
        self.up = ports  # the up port's number
        self.values["SHELL"] |= zwire.SHELL_PARENT
        self.values["CONFIG_HASH"] = model.config_hash(self.values)
        self.counters |= dict.fromkeys(zwire.UP_COUNTER_NAMES, 0)
        self._clear()
        self.setups = [Setup(members=(0,) * ports) for _ in range(jobs)]  # of the current or last job
        self.refusals = [0] * jobs  # JOB_UP_REFUSAL
        self.span = 0, 0
        self.choices = []  # open ones; the bench calls choose() for each

    def _clear(self):
        """Clears what is staged of trees."""
        self.staged |= dict.fromkeys(STAGED, 0)
        self.staged_ranks = [0] * self.ports  # MEMBER_RANKS

    # Registers (section 3)

    def address_of(self, name, job=0, *port):
        if name in zwire.UP_COUNTER_NAMES:
            return zwire.REG_UP_COUNTERS + 8 * zwire.UP_COUNTER_NAMES.index(name)
        if name not in REGISTERS:
            return super().address_of(name, job, *port)
        address, _, _ = REGISTERS[name]
        (port,) = port or (0,)
        if name == "MEMBER_RANKS":
            return address + zwire.REG_RANKS_STRIDE * port
        if name == "JOB_RANKS":
            return address + zwire.REG_RANKS_TABLE_STRIDE * job + zwire.REG_RANKS_STRIDE * port
        return address + (zwire.REG_JOB_STRIDE * job if of_a_job(name) else 0)

    def _register_at(self, address):
        for name in REGISTERS:
            for job in range(len(self.blocks) if of_a_job(name) else 1):
                for port in range(self.ports if name.endswith("_RANKS") and name != "TREE_RANKS" else 1):
                    if address == self.address_of(name, job, port):
                        return name, (job, port)
        return super()._register_at(address)

    def _read(self, name, at):
        if name not in REGISTERS:
            return super()._read(name, at)
        job, port = at
        if name in self.staged:
            return self.staged[name]
        if name == "MEMBER_RANKS":
            return self.staged_ranks[port]
        setup = self.setups[job]
        return {
            "JOB_RANKS": setup.members[port],
            "JOB_UP": setup.parent,
            "JOB_TREE": setup.ranks,
            "JOB_UP_REFUSAL": self.refusals[job],
        }[name]

    def _write(self, name, value, at):
        if name == "MEMBER_RANKS":
            self.staged_ranks[at[1]] = value
            return zwire.CODE_DONE
        taken = name == "OWNER" and value and not self.owner
        code = super()._write(name, value, at)
        if taken:
            self._clear()
        return code

    def _reset(self, token):
        code = super()._reset(token)
        if code == zwire.CODE_DONE:
            self._clear()
        return code

    def _staged_setup(self, ports):
        """Returns what is staged, for a job with these ports."""
        members = (ranks if ports >> port & 1 else 0 for port, ranks in enumerate(self.staged_ranks))
        return Setup(*(self.staged[name] for name in STAGED), tuple(members))

    def _members_same(self, number, ports):
        return super()._members_same(number, ports) and self._staged_setup(ports) == self.setups[number]

    def _tree_refusal(self, ports, deadline):
        setup = self._staged_setup(ports)
        if self._bad_parent(setup):
            return zwire.CODE_BAD_PARENT
        ranks = [setup.members[port] for port in range(self.ports) if ports >> port & 1]
        if setup.tree or any(ranks):
            union = 0
            for some in ranks:
                if some == 0 or some & union:
                    return zwire.CODE_BAD_RANKS
                union |= some
            if setup.tree and union & ~setup.ranks:
                return zwire.CODE_BAD_RANKS
        if deadline >> 32 & 1 and (setup.tree or any(some.bit_count() > 1 for some in ranks)):
            return zwire.CODE_BAD_DEADLINE
        return None

    def _bad_parent(self, setup):
        """Returns whether JOB_PARENT and what goes with it cannot be a job's."""
        return bool(setup.parent & ~self.KNOWN_PARENT or setup.tree and not 1 <= setup.repeat <= zwire.MAX_REPEAT)

    def _set_up(self, block, epoch, job):
        super()._set_up(block, epoch, job)
        self.setups[block.number] = self._staged_setup(self.staged["JOB_PORTS"])
        self.refusals[block.number] = 0
        job.up_finish = None  # the Debt of the card's finish, when all members are finished

    # Packets (section 4)

    def packet(self, port, header, payload=b"", bad=False):
        self.choices = []
        if port != self.up:
            return super().packet(port, header, payload, bad)
        if not self._from_parent(header, payload, bad):
            self.counters["up_dropped"] += 1
            return []
        return self.sent_down + self._send_owed()

    def choose(self, choice, sent):
        """The card sent the packet, or ignored the repeat."""
        if sent:
            self._leaves(choice.debt)
            self.counters["up_repeats"] += 1
        else:
            choice.debt.ignores(self.span, choice.repeat)

    def _mask(self, block, ranks):
        """Returns the mask of global ranks, if the job has any."""
        setup = self.setups[block.number]
        if not any(setup.members):
            return super()._mask(block, ranks)
        return sum(setup.members[block.members[rank]] for rank in ranks)

    def _result_mask(self, block, slot):
        setup = self.setups[block.number]
        return setup.ranks if setup.tree else super()._result_mask(block, slot)

    def _reduce(self, block, slot):
        super()._reduce(block, slot)
        if self.setups[block.number].tree:
            slot.state, slot.owed = WAITING, set()
            slot.up = Debt()

    def _data_at(self, block, slot, header, payload):
        waiting = slot.state == WAITING
        outcome = super()._data_at(block, slot, header, payload)
        if waiting:
            self._repeat(block, slot.up, self._own_sum(block, slot))
        return outcome

    def _ask(self, block, header, _):
        slot = block.job.slot(header["vid"])
        if slot.state == WAITING and slot.vid == header["vid"]:
            self.counters["asks"] += 1
            self._repeat(block, slot.up, self._own_sum(block, slot))
            return None, [self._status(header, zwire.CODE_WAIT)]
        return super()._ask(block, header, _)

    def _finish(self, block, header, _):
        job = block.job
        if job is None or not self.setups[block.number].tree:
            return super()._finish(block, header, _)
        self.counters["finishes"] += 1
        job.finished.add(header["rank"])
        if not block.left <= job.finished:
            return None, [self._status(header, zwire.CODE_DONE)]
        job.finish = self._upward(block, {"kind": zwire.KIND_FINISH, "vid": header["vid"]})
        if job.up_finish is None:
            job.up_finish = Debt()
        else:
            self._repeat(block, job.up_finish, job.finish)
        return None, []

    # Upwards

    def _send_owed(self):
        sent = super()._send_owed()
        for block in self.blocks:
            if block.job is None or not self.setups[block.number].tree:
                continue
            if block.job.up_finish is not None and block.job.up_finish.owed:
                self._leaves(block.job.up_finish)
                sent.append(block.job.finish)
            for slot in block.job.slots:
                if slot.state == WAITING and slot.up.owed and self._may_leave(block.job, slot):
                    self._leaves(slot.up)
                    sent.append(self._own_sum(block, slot))
        return sent

    def _may_leave(self, job, slot):
        """Returns whether everything up to VID v - W is here."""
        vid = (slot.vid - job.window) % 2**32
        before = job.slot(vid)
        if before.vid == vid:
            return before.state in (model.REDUCED, model.EMPTY)
        return (before.vid - vid) % 2**32 < 1 << 31

    def _leaves(self, debt):
        debt.leaves(self.span)
        self.counters["up_sent"] += 1

    def _repeat(self, block, debt, packet):
        """Processes a repeat of what was owed to the parent before."""
        repeat = self.setups[block.number].repeat
        due = debt.due(self.span, repeat)
        if due is None:
            self.choices.append(Choice(debt, packet, repeat))
        elif due:
            debt.owed = True
            self.counters["up_repeats"] += 1

    def _own_sum(self, block, slot):
        flags, payload = slot.result
        header = {
            "kind": zwire.KIND_DATA,
            "flags": flags,
            "format": self.arithmetic.format.number,
            "vid": slot.vid,
            "length": block.job.chunk,
        }
        return self._upward(block, header, payload)

    def _upward(self, block, header, payload=b""):
        """Returns a packet for the parent."""
        of = {"job": block.number, "epoch": block.last_epoch, "rank": self.setups[block.number].rank}
        return of | header, payload, 1 << self.up

    # From the parent

    def _from_parent(self, header, payload, bad):
        """Processes a packet of the parent into sent_down; returns whether it was taken."""
        self.sent_down = []
        if header["job"] >= len(self.blocks) or header["version"] != zwire.VERSION:
            return False
        block = self.blocks[header["job"]]
        setup = self.setups[block.number]
        if block.job is None or not setup.tree or header["epoch"] != block.last_epoch:
            return False
        if header["kind"] in (zwire.KIND_RESULT, zwire.KIND_REPLAY):
            return not bad and self._final_sum(block, header, payload)
        if header["kind"] == zwire.KIND_STATUS and header["rank"] == setup.rank:
            return self._status_of_parent(block, header)
        return False

    def _final_sum(self, block, header, payload):
        chunk, format = block.job.chunk, self.arithmetic.format
        if (header["format"], header["length"], len(payload)) != (format.number, chunk, format.bytes * chunk):
            return False
        slot = block.job.slot(header["vid"])
        if header["mask"] != self.setups[block.number].ranks or slot.vid != header["vid"] or slot.state != WAITING:
            return False
        total, _ = self.arithmetic.sum([format.elements(payload), *[None] * (self.ports - 1)])
        own, _ = slot.result
        ecn = model.merge_ecn([own & 3, header["flags"] & 3])
        nonfinite = (own | header["flags"]) & zwire.FLAG_NONFINITE
        slot.result = ecn | nonfinite, format.payload(total)
        slot.state, slot.owed = model.REDUCED, set(block.left)
        self.counters["chunks"] += 1
        self.counters["beats"] += chunk // self.lanes
        self._count(block, "nonfinite_out", "OUT", int(format.nonfinite(total).sum()), slot.vid)
        self.counters["up_taken"] += 1
        return True

    def _status_of_parent(self, block, header):
        code, vid = header["code"], header["vid"]
        if code == zwire.CODE_DONE:
            if not block.left <= block.job.finished:
                return False
            self.sent_down = self._notices(block, vid, code, block.left, 0)
            block.end_when_all_finished()
        elif code == zwire.CODE_OVERDUE:
            self.sent_down = self._notices(block, vid, code, block.left, header["mask"])
        elif code >= zwire.CODE_BAD_VERSION:
            self.refusals[block.number] = code | vid << 32
            self.counters["up_refused"] += 1
        elif code not in (zwire.CODE_WAIT, zwire.CODE_SEND):
            return False
        return True


def of_a_job(name):
    """Returns whether each job has a register of this name."""
    return name in REGISTERS and REGISTERS[name][0] >= zwire.REG_JOBS_BASE
