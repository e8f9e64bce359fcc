"""A whole card under RoCEv2 under test (-shell roce), and the hosts on its network.

Frames that leave on connections, to neighbours and from port to port are compared with roce_model.py and switching.py,
byte for byte. Register accesses, ARP and echo requests are UdpCard's.
"""

import cocotb
from cocotb.triggers import RisingEdge

import roce
import zwire
from bench import wait_cycles
from cards import run_card
from roce_model import RoceCard, connection_entry
from streams import never
from switching import Switch
from traffic import elements
from udp_card import OWN, UdpCard, host

# Depends on which sums leave together.
UNKNOWN = ("results",)

# Count frames that are dropped, each with a cycle of error_strobe.
STROBED = [name for name in zwire.NETWORK_COUNTER_NAMES if name not in ("stranger", "lease", "dropped", "passed")]
STROBED += [name for name in zwire.CONNECTION_COUNTER_NAMES if name.startswith("roce")]

CLEARING = 600  # cycles in which the switch clears its table


def run_roce_card(name, flags, testcase=None):
    """Generates a card with shell roce and runs the calling file's cocotb tests on it."""
    run_card(f"roce_{name}", [*flags, "-shell", "roce", *OWN], testcase)


class RoceBench(UdpCard):
    """A card under RoCEv2. The member at each port of its core has a connection to the next member of its job."""

    MODEL = RoceCard

    def __init__(self, dut, idle=never, stall=never, seed=1):
        super().__init__(dut, idle, stall, seed)
        self.members = [member._replace(port=roce.PORT) for member in self.members]
        self.left = []  # (Ethernet port, frame) that no test has checked
        self.switch = Switch(self.ethernet)
        self.passing = []  # Ethernet ports where the switch sends the last frame
        self.entries = {}  # staged connections by port
        self.strobes = 0  # of errors

    async def reset(self):
        await super().reset()
        cocotb.start_soon(self._count_strobes())
        if self.ethernet > 1:
            await wait_cycles(self.dut, CLEARING)
            self.switch = Switch(self.ethernet)
            await self.read("MAGIC")  # its sender is learned again

    async def _count_strobes(self):
        while True:
            await RisingEdge(self.dut.error_strobe)
            self.strobes += 1

    # Frames

    def _frame(self, frame, at):
        own = self.own.ip.to_bytes(4, "big")
        answers = frame[12:14] == b"\x08\6" and frame[28:32] == own or frame[12:14] == b"\x08\0" and frame[26:30] == own
        if answers and frame[6:12] == self.own.mac.to_bytes(6, "big"):
            return super()._frame(frame, at)
        self.left.append((at, frame))

    def put(self, frame, bad=False, ethernet=0):
        super().put(frame, bad, ethernet)
        self.passing = self.switch.frame(ethernet, frame, bad)

    async def transmit(self, frame, bad=False, ethernet=0):
        """Sends a frame and compares all that leaves with the model."""
        passes = self.model.passes(frame, bad, ethernet)
        strobes, drops = self.strobes, self._drops()
        await super().transmit(frame, bad, ethernet)
        assert self.strobes - strobes == self._drops() - drops, "error_strobe"
        want, self.model.left = self.model.left, []
        if self.ethernet > 1 and passes:
            want += [(port, frame) for port in self.passing]
            self.model.counters["passed"] += len(self.passing)
        left, self.left = self.left, []
        assert by_port(left) == by_port(want), f"left {show(left)}, want {show(want)}"

    def _drops(self):
        return sum(self.model.counters[name] for name in STROBED)

    def connection(self, job, port):
        """Returns the registered connection from a member."""
        return next(c for c in self.model.connections() if (c.job, c.port) == (job, port))

    def packet(self, job, port, vid, payload=None, **how):
        """Returns the frame of a packet of a member. how: of roce.packet."""
        connection = self.connection(job, port)
        receiver = next(member for member in self.members if member.ip == connection.ip)
        to = self.own.mac if self.ethernet == 1 else receiver.mac
        if payload is None:
            payload = elements(self.rng, connection.mtu // self.format.bytes, self.format)
        how = {"to": to.to_bytes(6, "big").hex(), "sender": self.members[port].mac.to_bytes(6, "big").hex()} | how
        return roce.packet(self.rng, connection, connection.psn + vid, payload=payload, **how)

    async def contribute(self, job, port, vid, payload=None, **how):
        """Sends such a packet and compares all that leaves with the model."""
        await self.transmit(self.packet(job, port, vid, payload, **how), ethernet=self.members[port].ethernet)

    # Registers

    def ring(self, ports, job=0):
        """Returns the connections of a ring of the ports in the mask: by port, as in MEMBER_CONNECTION. QPNs differ by
        job, and PSNs may wrap soon."""
        members = [port for port in range(self.ports) if ports >> port & 1]
        psns = [self.rng.choice([0, 0xFFFFFF - self.rng.randrange(8), self.rng.randrange(1 << 24)]) for _ in members]
        return {
            port: connection_entry(0x100 * (job + 1) + port, psns[rank], members[(rank + 1) % len(members)])
            for rank, port in enumerate(members)
        }

    async def stage_members(self, ports=None):
        await super().stage_members(ports)
        for port, entry in self.entries.items():
            await self.write("MEMBER_CONNECTION", entry, 0, port)

    async def set_up(self, epoch, ports=None, job=0, entries=None, **how):
        """As UdpCard.set_up. entries: connections by port; by default a ring."""
        ports = (1 << self.ports) - 1 if ports is None else ports
        self.entries = self.ring(ports, job) if entries is None else entries
        await super().set_up(epoch, ports, job=job, **how)

    async def introduce(self):
        """Writes the members as neighbours of a one-armed card."""
        for port, member in enumerate(self.members):
            await self.write("NEIGHBOUR_ADDRESS", member.ip, 0, port)
            await self.write("NEIGHBOUR_MAC", member.mac, 0, port)

    async def check_registers(self):
        for name in UNKNOWN:
            self.count_access()
            reply = await self.register({"kind": zwire.KIND_REGREAD, "vid": self.model.address_of(name)})
            self.model.counters[name] = reply["mask"]
        await super().check_registers()
        for name in [*zwire.CONNECTION_REGISTERS, *zwire.CONNECTION_COUNTER_NAMES]:
            for job in range(self.jobs + 1 if name == "JOB_CONNECTION" else 1):
                for port in range(self.ports + 1 if name in PORT_REGISTERS else 1):
                    await self.read(name, job, port)


PORT_REGISTERS = ("MEMBER_CONNECTION", "JOB_CONNECTION", "NEIGHBOUR_ADDRESS", "NEIGHBOUR_MAC")


def by_port(frames):
    """Returns frames by the Ethernet port and the connection on which they leave: only there their order counts."""
    found = {}
    for port, frame in frames:
        found.setdefault((port, frame[30:34], frame[47:50]), []).append(frame)
    return found


def show(frames):
    """Describes frames briefly."""
    return [f"port {port}: {len(frame)} bytes, {frame[:54].hex()} .. {frame[-4:].hex()}" for port, frame in frames]
