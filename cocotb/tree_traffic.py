"""Random packets and register accesses for a card with an up port, and what its benches have in common."""

import model
import tree_model
import zwire
from tree_model import WAITING
from traffic import TOKEN, Traffic, elements

REPEAT = 40  # JOB_REPEAT, in cycles

# What a parent sends: results, replays and statuses. The rest is for nobody at an up port.
DOWN = [zwire.KIND_RESULT, zwire.KIND_REPLAY, zwire.KIND_STATUS]


class TreeBench:
    """Adds an up port to a bench of a card (CardBench)."""

    MODEL = tree_model.TreeCard

    async def set_up(self, epoch, ports=None, token=TOKEN, job=0, parent=0, repeat=REPEAT, ranks=None, members=None, **sizes):
        """parent: JOB_PARENT. ranks: TREE_RANKS, by default those of the members and one more. members: MEMBER_RANKS
        by port, by default the port's own number, in a tree job."""
        await self.write("OWNER", token)  # which clears what is staged
        ports = (1 << self.ports) - 1 if ports is None else ports
        if members is None:
            members = [1 << port if parent & tree_model.TREE_JOB else 0 for port in range(self.ports)]
        if ranks is None:
            ranks = sum(members) | 1 << self.ports
        for name, value in {"JOB_PARENT": parent, "JOB_REPEAT": repeat, "TREE_RANKS": ranks}.items():
            await self.write(name, value)
        for port, value in enumerate(members):
            await self.write("MEMBER_RANKS", value, 0, port)
        await super().set_up(epoch, ports=ports, token=token, job=job, **sizes)

    def counts_as_up_dropped(self, header, payload, bad):
        """Returns whether a wrong packet of the parent counts as up_dropped: no check in front of the up port drops it."""
        return True

    async def check_registers(self):
        """Compares all registers with the model."""
        await super().check_registers()
        for name in zwire.UP_COUNTER_NAMES:
            await self.read(name)
        for name in tree_model.REGISTERS:
            of_a_port = name in ("MEMBER_RANKS", "JOB_RANKS")
            for job in range(self.jobs if tree_model.of_a_job(name) else 1):
                for port in range(self.ports if of_a_port else 1):
                    await self.read(name, job, port)
        await self.access({"kind": zwire.KIND_REGREAD, "vid": zwire.REG_PARENT_ADDRESS, "length": 0})

    async def exchange(self, port, header, payload=b"", bad=False):
        """Sends a packet and compares the outcome with the model, which allows for the time that the card took."""
        header = {**dict.fromkeys(zwire.FIELDS, 0), "version": zwire.VERSION, **header}
        self.verdicts.clear()
        began = self.cycle
        self.send(port, header, payload, bad)
        await self.quiet()
        self.model.span = began, self.cycle
        expected = self.model.packet(port, header, payload, bad)
        for packet in self.chosen(self.sent):
            self.sent.remove(packet)
        await self.expect(expected)
        self.check_verdict(port, header)

    def chosen(self, sent):
        """Tells the model, by the packets that the card sent, what it chose; returns those among them that it was free
        to send."""
        found = []
        for choice in self.model.choices:
            (packet,) = self.expand([choice.packet])
            self.model.choose(choice, packet in sent)
            if packet in sent:
                found.append(packet)
        self.model.choices = []
        return found


class TreeTraffic(Traffic):
    """Adds the parent's packets, honest and wrong, and jobs of trees."""

    def __init__(self, card, rng, deadlines=(0,), repeats=(1, 3, REPEAT, 3 * REPEAT)):
        """repeats: values for JOB_REPEAT."""
        super().__init__(card, rng, deadlines)
        self.repeats = repeats

    async def step(self):
        rng = self.rng
        self.block = rng.choice(self.model.blocks)
        slots = self.job.slots if self.is_tree() else []
        waiting, reduced = ([slot for slot in slots if slot.state == state] for state in (WAITING, model.REDUCED))
        chance = rng.random()
        if waiting and chance < 0.15:
            return await self.final_sum(rng.choice(waiting))
        if waiting and chance < 0.25:
            return await self.wrong_sum(rng.choice(waiting))
        if waiting and chance < 0.35:
            return await self.repeat(rng.choice(waiting))
        if chance < 0.45:
            return await self.from_parent()
        if self.is_tree() and chance < 0.48:
            return await self.finish_all()
        if reduced and 0.48 <= chance < 0.52:
            return await self.final_sum(rng.choice(reduced))
        await super().step()

    def is_tree(self):
        """Returns whether the running job, if any, is a tree job."""
        return self.job is not None and self.setup().tree

    def setup(self):
        """Returns what is set up of trees under the number whose turn it is."""
        return self.model.setups[self.block.number]

    # Packets

    async def repeat(self, slot):
        """Repeats what makes a member's card send its own sum again."""
        rank = self.rng.randrange(self.job.ranks)
        if self.rng.random() < 0.5:
            await self.data(rank, slot.vid)
        else:
            await self.ask(rank, slot.vid)

    async def finish_all(self):
        """Sends the finishes of all ranks, the last one several times."""
        rng, ranks = self.rng, list(range(self.job.ranks))
        rng.shuffle(ranks)
        vid = rng.getrandbits(32)
        for rank in [*ranks, *rng.choices(ranks, k=rng.randint(0, 3))]:
            await self.header_alone(zwire.KIND_FINISH, rank, vid + rng.choice([0, 0, 1]) & 0xFFFFFFFF)
        if rng.random() < 0.7:
            await self.down(zwire.KIND_STATUS, vid, {"code": zwire.CODE_DONE})

    async def final_sum(self, slot, change=None, bad=False):
        """Sends a final sum of a slot: the first, if it is waiting; another, if it is reduced."""
        kind = self.rng.choice([zwire.KIND_RESULT, zwire.KIND_RESULT, zwire.KIND_REPLAY])
        await self.down(kind, slot.vid, change, bad)

    async def wrong_sum(self, slot):
        """Sends the final sum of a waiting slot, wrong in one way."""
        wrong = self.wrong_fields()
        name = self.rng.choice([*(name for name in wrong if name != "rank"), "bad"])
        await self.final_sum(slot, {name: wrong[name]} if name in wrong else {}, bad=name == "bad")

    async def from_parent(self):
        """Sends a packet of the parent's that is often wrong, or not for now."""
        rng = self.rng
        slots = self.job.slots if self.job else [model.Slot(7, 1)]
        near = rng.choice(slots).vid + rng.choice([0, 0, 0, 1, -1, 2, -2]) * len(slots)
        kind = rng.choice([*DOWN, zwire.KIND_STATUS, rng.getrandbits(4)])
        wrong = self.wrong_fields()
        name = rng.choice([*wrong, None, None, None])
        change = {} if name is None else {name: wrong[name]}
        await self.down(kind, near % 2**32, change, bad=kind != zwire.KIND_STATUS and rng.random() < 0.2)

    def wrong_fields(self):
        """Returns a wrong value for each field of a packet of the parent's."""
        rng, setup = self.rng, self.setup()
        return {
            "version": rng.choice([0, 1, 3, 15]),
            "job": (self.block.number + rng.choice([1, rng.randint(1, 255)])) % 256,
            "epoch": rng.choice([self.epoch - 1 & 0xFFFF, rng.getrandbits(16)]),
            "rank": rng.choice([setup.rank ^ 1, rng.getrandbits(8)]),
            "format": rng.choice([0, self.card.format.number % 6 + 1]),
            "length": self.card.lanes * rng.randint(0, self.card.chunk // self.card.lanes),
            "mask": setup.ranks ^ 1 << rng.randrange(64),
        }

    async def down(self, kind, vid, change=None, bad=False):
        """Sends a packet at the up port: correct, except for the fields in change."""
        rng, setup = self.rng, self.setup()
        header = {
            "kind": kind,
            "flags": rng.getrandbits(8),
            "job": self.block.number,
            "format": self.card.format.number,
            "epoch": self.epoch,
            "rank": setup.rank,
            "code": rng.choice([*zwire.CODES, zwire.CODE_OVERDUE, zwire.CODE_DUPLICATE, rng.getrandbits(8)]),
            "vid": vid,
            "length": self.job.chunk if self.job else self.card.chunk,
            "mask": setup.ranks if kind != zwire.KIND_STATUS else rng.getrandbits(64),
        } | (change or {})
        has_payload = kind in zwire.KINDS and zwire.KINDS[kind][3]
        payload = elements(rng, header["length"], self.card.format) if has_payload else b""
        await self.card.exchange(self.card.ports, header, payload, bad)

    # Registers

    def staged_besides(self):
        """Returns what a tree or an ordinary job stages: three of four times a tree job."""
        rng, ports = self.rng, self.card.ports
        parent = rng.getrandbits(8) << 8 | (rng.random() < 0.75)
        shuffled = rng.sample(range(64), 64)
        members = [sum(1 << rank for rank in shuffled[2 * port : 2 * port + rng.randint(1, 2)]) for port in range(ports)]
        ranks = sum(members) | 1 << shuffled[63]
        if not parent & 1 and rng.random() < 0.5:
            members = [0] * ports
        if rng.random() < 0.1:  # refused, if it is a tree job
            ranks &= ~rng.choice(members)
        return {"parent": parent, "repeat": rng.choice(self.repeats), "ranks": ranks, "members": members}

    async def commit_something(self):
        rng, card = self.rng, self.card
        setup = self.setup()
        bit = 1 << rng.randrange(64)
        parent = rng.choice([setup.parent, setup.parent, setup.parent ^ 1, setup.parent ^ bit])
        repeats = [setup.repeat] * 3 + [0, 1, zwire.MAX_REPEAT, zwire.MAX_REPEAT + 1, setup.repeat | 1 << 40]
        await card.write("JOB_PARENT", parent)
        await card.write("JOB_REPEAT", rng.choice(repeats))
        await card.write("TREE_RANKS", rng.choice([setup.ranks, setup.ranks, setup.ranks ^ bit, 0]))
        members = list(setup.members)
        port = rng.randrange(card.ports)
        members[port] = rng.choice([members[port], members[port], 0, bit, members[port] ^ bit, members[0]])
        for place, value in enumerate(members):
            await card.write("MEMBER_RANKS", value, 0, place)
        await super().commit_something()

    async def any_register(self):
        """Reads or writes any register; half of them those of trees."""
        rng = self.rng
        if rng.random() < 0.5:
            return await super().any_register()
        stride = zwire.REG_RANKS_TABLE_STRIDE * (len(self.model.blocks) + 1)
        at = rng.choice(
            [
                *(zwire.REG_PARENT_ADDRESS, zwire.REG_PARENT_MAC, zwire.REG_JOB_PARENT, zwire.REG_JOB_REPEAT),
                zwire.REG_TREE_RANKS,
                zwire.REG_UP_COUNTERS + 8 * rng.randrange(zwire.UP_COUNTERS + 1),
                zwire.REG_MEMBER_RANKS + zwire.REG_RANKS_STRIDE * rng.randrange(self.card.ports + 1),
                zwire.REG_JOB_RANKS + zwire.REG_RANKS_STRIDE * rng.randrange(self.card.ports + 1),
                zwire.REG_JOB_RANKS + rng.randrange(0, stride, 8),
                zwire.REG_MEMBER_RANKS + rng.randrange(16),
            ]
        )
        access = {"kind": zwire.KIND_REGREAD, "vid": at, "length": rng.getrandbits(16)}
        if rng.random() < 0.5:
            access |= {"kind": zwire.KIND_REGWRITE, "mask": rng.getrandbits(rng.choice([1, 16, 64]))}
        await self.card.access(access)
