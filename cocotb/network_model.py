"""A model of a card on Ethernet, written from driver/wire/NETWORK.md alone: what it adds to model.py.

Processes one frame at a time and settles after each, as model.Card does. The model has no clock: the bench decides
when a lease has run out.
"""

from typing import NamedTuple

import eth_frames
import ethernet
import model
import zwire

LARGEST_FRAME = 9018  # bytes without FCS
LARGEST_ECHO = 1500  # bytes of an IPv4 packet with an echo request

ADDRESS_BITS, MAC_BITS = 48, 56  # that have a meaning in *ADDRESS and *MAC registers
NO_ENTRY = (0, 0)


class Host(NamedTuple):
    """Where a host is."""

    mac: int
    ip: int
    port: int
    ethernet: int = 0  # port of the card

    @property
    def address(self):
        """Returns the host's address as in *ADDRESS registers."""
        return self.port << 32 | self.ip

    @property
    def place(self):
        """Returns the host's MAC address and Ethernet port as in *MAC registers."""
        return self.ethernet << 48 | self.mac


class NetworkCard(model.Card):
    """A card with shell udp. Packets that leave name their target, a Host, as their third element."""

    def __init__(self, lanes, ports, chunk, window, ident, shared, arithmetic=None, jobs=1):
        """ident: also own, the card's Host, ethernet, its number of Ethernet ports, and lease, the default of LEASE."""
        self.own, self.ethernet, self.default_lease = (ident.pop(name) for name in ("own", "ethernet", "lease"))
        ident = {**ident, "SHELL": zwire.SHELL_UDP}
        super().__init__(lanes, ports, chunk, window, ident, shared, arithmetic, jobs)
        self.counters |= dict.fromkeys(zwire.NETWORK_COUNTER_NAMES, 0)
        self.own_ethernet = 0  # in CARD_MAC, without a meaning
        self.lease = self.default_lease
        self.sender = None  # of the access under way
        self.owner_address = None  # while OWNER is not zero
        self.staged_members = self._nobody()
        self.tables = [[NO_ENTRY] * ports for _ in range(jobs)]  # entries by job and port

    @classmethod
    def of(cls, ports=4, chunk=8, arithmetic=None, jobs=1):
        """Returns a card for the bench of a leaf, which needs neither its sums nor its own address."""
        ident = {"own": Host(0, 0, 0), "lease": 1, "ethernet": 1, "LINK": 64, "LATENCY": 0}
        return cls(1, ports, chunk, 2, ident, True, arithmetic, jobs)

    def _nobody(self):
        """Returns staged registers of members, cleared: [address, MAC] by port."""
        return [[0, 0] for _ in range(self.ports)]

    # Frames (section 2)

    def frame(self, frame, bad=False, ethernet=0):
        """Processes a frame from an Ethernet port; bad: its FCS is wrong. Returns the packets that the card sends, and
        its answers to requests, as frames. Frames that pass to other ports are not modelled here."""
        verdict = eth_frames.judge(frame, bad, LARGEST_FRAME, self.udp_ports())
        if verdict.kind == eth_frames.DROP:
            self.counters[verdict.reason] += 1
        if verdict.kind == eth_frames.ARP_REQUEST:
            return [], [self._arp_answer(verdict)]
        if verdict.kind == eth_frames.ECHO:
            return [], self._echo_answers(verdict)
        if verdict.kind != eth_frames.DATAGRAM:
            return [], []
        mac, ip = int.from_bytes(verdict.mac, "big"), int.from_bytes(verdict.ip, "big")
        sender = Host(mac, ip, verdict.port, ethernet)
        to = int.from_bytes(frame[36:38], "big")
        return self._datagram(sender, verdict.header[:14] + verdict.payload, verdict.ecn, to), []

    def udp_ports(self):
        """Returns the UDP ports whose datagrams the card takes."""
        return [eth_frames.PORT]

    def _arp_answer(self, verdict):
        """Returns the answer to an ARP request (RFC 826)."""
        mac, ip = self.own.mac.to_bytes(6, "big"), self.own.ip.to_bytes(4, "big")
        answer = bytes.fromhex("0001 0800 06 04 0002") + mac + ip + verdict.mac + verdict.ip
        return ethernet.ethernet(self.own.mac, int.from_bytes(verdict.mac, "big"), 0x0806, answer)

    def _echo_answers(self, verdict):
        """Returns the answer to an echo request (RFC 792), if it is not too long."""
        if 28 + verdict.size > LARGEST_ECHO:
            self.counters["dropped"] += 1
            return []
        message = b"\0\0\0\0" + verdict.echo[2:] + verdict.header + verdict.payload
        message = message[:2] + ethernet.checksum(message).to_bytes(2, "big") + message[4:]
        packet = ethernet.ipv4(1, self.own.ip, int.from_bytes(verdict.ip, "big"), message)
        return [ethernet.ethernet(self.own.mac, int.from_bytes(verdict.mac, "big"), 0x0800, packet)]

    def _datagram(self, sender, data, ecn, to):
        """Processes a datagram to a UDP port; its CRC held and is left out."""
        header = model.unpack(data[:14])
        self.counters["frames"] += 1
        refusal = self.refusal(header, data)
        if refusal:
            self.counters[refusal] += 1
            return []
        size = model.header_bytes(header["kind"], shared=True)
        header, payload = model.unpack(data[:size]), data[size:]
        if header["kind"] in (zwire.KIND_REGREAD, zwire.KIND_REGWRITE):
            self.sender = sender
            reply, _, _ = self.register(header)
            return [(reply, b"", sender)]
        port = self.port_of(sender, header)
        if port is None:
            self.counters["stranger"] += 1
            return []
        header["flags"] = header["flags"] & ~3 | ecn
        return self._copies(self.packet(port, header, payload))

    def refusal(self, header, data):
        if header["version"] != zwire.VERSION:
            return "bad_version"
        if not model.from_host(header["kind"]):
            return "bad_kind"
        size = model.header_bytes(header["kind"], shared=True)
        if header["kind"] == zwire.KIND_DATA:
            if not 1 <= header["length"] <= self.chunk:
                return "bad_length"
            size += self.arithmetic.format.bytes * header["length"]
        return None if len(data) == size else "bad_length"

    def port_of(self, sender, header):
        """Returns the port whose member the sender is; None if it is a stranger."""
        if header["job"] >= len(self.blocks):
            return None
        members, table = self.blocks[header["job"]].members, self.tables[header["job"]]
        if header["rank"] >= len(members):
            return None
        port = members[header["rank"]]
        address, mac = table[port]
        known = address and address == sender.address and mac >> 48 == sender.ethernet
        return port if known else None

    def _copies(self, packets):
        """Returns a packet for each address among its receivers, in the order of the lowest rank there."""
        return [
            (header, payload, target)
            for header, payload, _ in packets
            for target in dict.fromkeys(self._targets(header))
        ]

    def _targets(self, header):
        """Returns the hosts of a packet's receivers, by rank."""
        if header["kind"] == zwire.KIND_STATUS:
            return [self.member(header["job"], header["rank"])]
        members = self.blocks[header["job"]].members
        return [self.member(header["job"], r) for r in range(len(members)) if header["receivers"] >> r & 1]

    def member(self, job, rank):
        """Returns the host that has the rank, by the address table."""
        address, mac = self.tables[job][self.blocks[job].members[rank]]
        return Host(mac % (1 << 48), address % (1 << 32), address >> 32, mac >> 48)

    def overdue(self, number, vid):
        return self._copies(super().overdue(number, vid))

    # Registers (section 3)

    def address_of(self, name, job=0, port=0):
        if name in zwire.NETWORK_COUNTER_NAMES:
            return zwire.REG_NETWORK_COUNTERS + 8 * zwire.NETWORK_COUNTER_NAMES.index(name)
        if name not in zwire.NETWORK_REGISTERS:
            return model.address_of(name, job)
        address, _, _ = zwire.NETWORK_REGISTERS[name]
        if name.startswith("MEMBER_"):
            return address + zwire.REG_MEMBER_STRIDE * port
        if name.startswith("JOB_"):
            return address + zwire.REG_TABLE_STRIDE * job + zwire.REG_MEMBER_STRIDE * port
        return address

    def _register_at(self, address):
        for name in zwire.NETWORK_REGISTERS:
            for job in range(len(self.blocks) if name.startswith("JOB_") else 1):
                for port in range(self.ports if name.startswith(("JOB_", "MEMBER_")) else 1):
                    if address == self.address_of(name, job, port):
                        return name, (job, port)
        return super()._register_at(address)

    def _read(self, name, at):
        if name not in zwire.NETWORK_REGISTERS:
            return super()._read(name, at)
        job, port = at
        which = int(name.endswith("_MAC"))
        if name == "LEASE":
            return self.lease
        if name.startswith("SOURCE"):
            return (self.sender.address, self.sender.place)[which]
        if name.startswith("CARD"):
            return (self.own.address, self.own_ethernet << 48 | self.own.mac)[which]
        if name.startswith("MEMBER"):
            return self.staged_members[port][which]
        return self.tables[job][port][which]

    def _write(self, name, value, at):
        _, access, _ = zwire.NETWORK_REGISTERS.get(name) or zwire.REGISTERS.get(name) or (0, "RO", False)
        if access == "RO":
            return zwire.CODE_READ_ONLY
        if self._strange(name):
            return zwire.CODE_BUSY
        if name in zwire.NETWORK_REGISTERS:
            return self._write_network(name, value, at)
        free = self.owner == 0
        code = super()._write(name, value, at)
        if name == "OWNER" and free and value:
            self._new_owner()
        return code

    def _strange(self, name):
        """Returns whether the sender may not write the register now (section 4)."""
        if self.owner:
            return self.sender.address != self.owner_address
        return name not in ("OWNER", "RELEASE", "RESET")

    def _write_network(self, name, value, at):
        if name == "LEASE":
            if not 1 <= value <= zwire.MAX_LEASE:
                return zwire.CODE_BAD_DEADLINE
            self.lease = value
        elif name.startswith("MEMBER"):
            self.staged_members[at[1]][name.endswith("_MAC")] = value
        elif name == "CARD_ADDRESS":
            self.own = self.own._replace(ip=value % (1 << 32), port=value >> 32 & 0xFFFF)
        else:
            self.own = self.own._replace(mac=value % (1 << 48))
            self.own_ethernet = value >> 48 & 0xFF
        return zwire.CODE_DONE

    # The owner (section 4)

    def _new_owner(self):
        """The sender takes the card."""
        self.owner_address = self.sender.address
        self.staged = dict.fromkeys(self.staged, 0)
        self.staged_members = self._nobody()
        self.lease = self.default_lease

    def lease_ends(self):
        """The owner has been silent for too long."""
        self._end_all()
        self.counters["lease"] += 1

    def _reset(self, token):
        code = super()._reset(token)
        if code == zwire.CODE_DONE:
            self.staged_members = self._nobody()
            self.lease = self.default_lease
        return code

    def _commit(self, first, epoch, number):
        code = super()._commit(first, epoch, number)
        if code == zwire.CODE_DONE:
            ports = self.staged["JOB_PORTS"]
            self.tables[number] = [self._entry(p) if ports >> p & 1 else NO_ENTRY for p in range(self.ports)]
        return code

    def _entry(self, port):
        """Returns what is staged of a port, as in the address table."""
        address, mac = self.staged_members[port]
        return address % (1 << ADDRESS_BITS), mac % (1 << MAC_BITS)

    def _members_whole(self, ports):
        entries = [self._entry(port) for port in range(self.ports) if ports >> port & 1]
        return all(address % (1 << 32) and address >> 32 and mac >> 48 < self.ethernet for address, mac in entries)

    def _members_same(self, number, ports):
        return all(self._entry(p) == self.tables[number][p] for p in range(self.ports) if ports >> p & 1)
