"""A whole card on Ethernet with an up port (-shell udp -parent), its members, and the parents of its jobs."""

import ethernet
import model
import tree_model
import zwire
from castagnoli import crc32c
from network_tree_model import FROM_PARENT, NetworkTreeCard, upward_port
from tree_traffic import TreeBench, TreeTraffic
from udp_card import UdpCard, host

FIRST_UPWARD_PORT = 0x7000


class UdpTreeCard(TreeBench, UdpCard):
    """A card on Ethernet with an up port, which is the port after the last. One parent is behind the last Ethernet
    port, and each set-up has an upward UDP port of its own."""

    MODEL = NetworkTreeCard

    def __init__(self, dut, *how, **more):
        super().__init__(dut, *how, **more)
        self.members.append(host(200, self.ethernet - 1))
        self.upward = 0  # the job to whose upward UDP port a packet of the parent goes
        self.set_ups = 0
        self.disguise = None  # the sender of the parent's packets instead of the parent

    def calm(self):
        return super().calm() + 12 * self.manifest["slots"]  # a search for own sums

    async def set_up(self, epoch, ports=None, parent=0, **how):
        if parent & tree_model.TREE_JOB and not upward_port(parent):
            parent |= FIRST_UPWARD_PORT + self.set_ups << 16
            self.set_ups += 1
        await super().set_up(epoch, ports, parent=parent, **how)

    async def stage_members(self, ports=None):
        """Stages the addresses of members and parent."""
        await super().stage_members(ports)
        await self.stage_parent(self.members[self.ports])

    async def stage_parent(self, parent):
        await self.write("PARENT_ADDRESS", parent.address)
        await self.write("PARENT_MAC", parent.place)

    async def check_registers(self):
        await super().check_registers()
        await self.read("PARENT_MAC")

    # Frames

    def check_sender(self, header, sender):
        """Packets for a parent come from the upward UDP port of the job."""
        if not model.from_host(header["kind"]):
            return super().check_sender(header, sender)
        assert header["kind"] in (zwire.KIND_DATA, zwire.KIND_FINISH)
        port = upward_port(self.model.setups[header["job"]].parent)
        assert sender == self.own._replace(port=port), f"a packet for the parent from {sender}"

    def parents_frame(self, header, payload=b"", bad=False, mark=None):
        """Returns the frame of a parent's packet to the upward UDP port of job self.upward, and its Ethernet port. mark:
        of the IP header, by default any."""
        sender = self.disguise or self.members[self.ports]
        known = header["kind"] in zwire.KINDS
        size = model.header_bytes(header["kind"], shared=True) if known else 14
        message = model.pack({"version": zwire.VERSION, **header}, size) + payload
        crc = crc32c(message) ^ (1 << self.rng.randrange(32) if bad else 0)
        to = self.own._replace(port=upward_port(self.model.setups[self.upward].parent))
        mark = self.rng.choice(model.ECN_ORDER) if mark is None else mark
        return ethernet.udp_frame(sender, to, message + crc.to_bytes(4, "little"), mark), sender.ethernet

    def send(self, port, header, payload=b"", bad=False):
        """Queues a packet of a member, or one of the parent whose mark is in its flags, its IP header, or both."""
        if port != self.ports:
            return super().send(port, header, payload, bad)
        flags = header.get("flags", 0)
        marks = [flags & 3, self.rng.choice(model.ECN_ORDER[: model.ECN_ORDER.index(flags & 3) + 1])]
        self.rng.shuffle(marks)
        self.upward = header["job"] % self.jobs
        frame, at = self.parents_frame(header | {"flags": flags & ~3 | marks[0]}, payload, bad, marks[1])
        self.put(frame, ethernet=at)

    async def exchange(self, port, header, payload=b"", bad=False):
        if port != self.ports:
            return await UdpCard.exchange(self, port, header, payload, bad)
        frame, at = self.parents_frame(header, payload, bad)
        await self.transmit(frame, ethernet=at)

    async def transmit(self, frame, bad=False, ethernet=0):
        """Sends a frame and compares the outcome with the model, which allows for the time that the card took."""
        began = self.cycle
        self.put(frame, bad, ethernet)
        await self.quiet()
        self.model.span = began, self.cycle
        packets, answers = self.model.frame(frame, bad, ethernet)
        for packet in self.chosen(self.sent):
            self.sent.remove(packet)
        await self.expect(packets)
        assert not self.replies and (self.answers, answers) == ([], [])

    def counts_as_up_dropped(self, header, payload, bad):
        header = {"version": zwire.VERSION} | header
        counted = header["version"] == zwire.VERSION and header["kind"] in FROM_PARENT
        return counted and not bad and len(payload) <= self.chunk * self.format.bytes


class UdpTreeTraffic(TreeTraffic):
    """Adds what Ethernet has besides: strangers, wrong UDP ports, and the addresses of parents."""

    async def down(self, kind, vid, change=None, bad=False):
        """Sends a packet of the parent, or of somebody else."""
        rng, card = self.rng, self.card
        card.upward = self.block.number
        parent = card.members[card.ports]
        if rng.random() < 0.15:
            others = [
                *(parent._replace(ip=parent.ip ^ 1 << rng.randrange(32)), parent._replace(port=parent.port ^ 1 << rng.randrange(16))),
                *(parent._replace(ethernet=rng.randrange(card.ethernet)), parent._replace(mac=parent.mac ^ 4)),
                *(card.members[0], card.owner),
            ]
            card.disguise = rng.choice(others)
        if rng.random() < 0.05:  # another job's port, or one that is nobody's
            card.upward = rng.randrange(card.jobs)
        await super().down(kind, vid, change, bad)
        card.disguise = None

    async def commit_something(self):
        rng, card = self.rng, self.card
        parent = card.members[card.ports]
        if rng.random() < 0.7:
            parent = rng.choice(
                [
                    *(parent._replace(ip=0), parent._replace(port=0), parent._replace(ethernet=card.ethernet)),
                    *(parent._replace(mac=parent.mac ^ 1 << rng.randrange(48)), parent._replace(ip=parent.ip ^ 1), card.own),
                ]
            )
        await card.stage_parent(parent)
        meaningless = rng.getrandbits(16) << 48
        await card.write("PARENT_ADDRESS", parent.address | meaningless)
        await super().commit_something()


