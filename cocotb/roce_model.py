"""A model of a card under RoCEv2, written from driver/wire/ROCE.md alone: what it adds to network_model.py.

Processes one frame at a time and settles after each, so sums leave as soon as the rules of section 5 let them. Frames
that leave are pairs of an Ethernet port and bytes.
"""

import model
import roce
import zwire
from network_model import LARGEST_FRAME, Host, NetworkCard

CONNECTION_BITS, NUMBERS = 56, 1 << 24
MTUS = roce.MTUS
NO_CONNECTION = 0


class Stream:
    """The connection from the member at a port: its next VID, and a header for each slot."""

    def __init__(self, slots):
        self.next = 0
        self.jumped = False  # the VID after next was released early
        self.headers = [(None, b"")] * slots  # VID and bytes


class RoceCard(NetworkCard):
    """A card with shell roce. self.left collects the frames that leave on connections and between neighbours."""

    def __init__(self, lanes, ports, chunk, window, ident, shared, arithmetic=None, jobs=1):
        super().__init__(lanes, ports, chunk, window, ident, shared, arithmetic, jobs)
        self.values["SHELL"] = zwire.SHELL_ROCE
        self.values["CONFIG_HASH"] = model.config_hash(self.values)
        self.counters |= dict.fromkeys(zwire.CONNECTION_COUNTER_NAMES, 0)
        self.staged_connections = [NO_CONNECTION] * ports
        self.registered = [[NO_CONNECTION] * ports for _ in range(jobs)]
        self.neighbours = [[0, 0] for _ in range(ports)]  # IPv4 and MAC address
        self.streams = [[] for _ in range(jobs)]  # by job and port
        self.newest = [0] * jobs  # stored VID
        self.mtus = [0] * jobs  # bytes of payload
        self.left = []

    # Frames (sections 3 and 6)

    def frame(self, frame, bad=False, ethernet=0):
        """Processes a frame; returns as NetworkCard.frame. Frames of connections and neighbours go to self.left.
        What the switch passes is not modelled here, but what it must not pass is: see passes."""
        verdict = roce.judge(frame, bad, LARGEST_FRAME, self.connections(), ethernet)
        if verdict.kind == roce.DROPPED:
            self.counters[verdict.reason] += 1
            return [], []
        if verdict.kind == roce.TAKEN:
            self._take(verdict)
            return [], []
        relayed = self._relayed(frame, bad)
        if relayed is not None:
            self.counters["relayed"] += 1
            self.left.append((0, relayed))
            return [], []
        return super().frame(frame, bad, ethernet)

    def passes(self, frame, bad=False, ethernet=0):
        """Returns whether section 3 leaves a frame to the switch."""
        return roce.judge(frame, bad, LARGEST_FRAME, self.connections(), ethernet).kind == roce.NONE

    def connections(self):
        """Returns the registered connections."""
        found = []
        for job, entries in enumerate(self.registered):
            for port, entry in enumerate(entries):
                if entry == NO_CONNECTION:
                    continue
                member, receiver = self.host(job, port), self.host(job, receiver_of(entry))
                size = self.mtus[job]
                found.append(
                    roce.Connection(receiver.ip, entry % NUMBERS, member.ip, member.ethernet, psn_of(entry), job, port, size)
                )
        return found

    def host(self, job, port):
        """Returns the host of the address table's entry."""
        address, mac = self.tables[job][port]
        return Host(mac % (1 << 48), address % (1 << 32), address >> 32, mac >> 48)

    def _relayed(self, frame, bad):
        """Returns the frame for a neighbour, None for a frame that is not to be relayed."""
        if self.ethernet > 1 or bad or not 60 <= len(frame) <= LARGEST_FRAME or frame[12:14] != b"\x08\0":
            return None
        ip = int.from_bytes(frame[30:34], "big")
        own = self.own.mac.to_bytes(6, "big")
        macs = [mac for address, mac in self.neighbours if address == ip and ip]
        if frame[:6] != own or ip == self.own.ip or not macs:
            return None
        return macs[0].to_bytes(6, "big") + own + frame[12:]

    def refusal(self, header, data):
        refusal = super().refusal(header, data)
        if header["version"] == zwire.VERSION and header["kind"] not in (zwire.KIND_REGREAD, zwire.KIND_REGWRITE):
            return "bad_kind"
        return refusal

    # Packets (sections 3 to 5)

    def _take(self, verdict):
        job, port = verdict.connection.job, verdict.connection.port
        block = self.blocks[job]
        vid = nearest(verdict.offset, self.newest[job])
        header = {
            "version": zwire.VERSION,
            "kind": zwire.KIND_DATA,
            "flags": verdict.ecn,
            "job": job,
            "format": self.arithmetic.format.number,
            "rank": block.members.index(port),
            "epoch": block.last_epoch,
            "vid": vid,
            "length": len(verdict.payload) // self.arithmetic.format.bytes,
        }
        self.packet(port, header, verdict.payload)
        _, _, _, result, _ = self.verdict
        if result in (model.STORED, model.REPEATED, model.OWED):
            slot = block.job.slot(vid)
            self.streams[job][port].headers[block.job.slots.index(slot)] = vid, verdict.header
        if result == model.STORED and (vid - self.newest[job]) % 2**32 < 1 << 31:
            self.newest[job] = vid
        if block.job is not None:
            self._release_due(block)

    def _answers(self, port, header, refusal):
        return False  # no status leaves

    def _reduce(self, block, slot):
        super()._reduce(block, slot)
        slot.owed = set()  # it leaves by its turn

    def _send_owed(self):
        """What is owed leaves after the header that came with it is known."""
        return []

    def _release_due(self, block):
        """Releases what is due on all connections of a job: rule 3, then rules 1 and 2."""
        job = block.job
        for slot in job.slots:
            for rank in sorted(slot.owed):
                if slot.vid < self.streams[block.number][block.members[rank]].next:
                    self.counters["replays"] += 1
                    self._leave(block, rank, slot.vid)
            slot.owed = set()
        moved = True
        while moved:
            moved = any([self._next(block, rank) for rank in range(job.ranks)])

    def _next(self, block, rank):
        """Releases a sum to the receiver of a rank's connection, if one is due; returns whether it was."""
        stream = self.streams[block.number][block.members[rank]]
        if self._summed(block, stream.next):
            self._leave(block, rank, stream.next)
            stream.next += 1
            stream.jumped = False
            return True
        slot = block.job.slot(stream.next)
        if slot.vid != stream.next and (slot.vid - stream.next) % 2**32 < 1 << 31:
            return False  # the slot has turned over: the receiver never got that sum
        contributed = slot.vid == stream.next and rank in slot.held
        if not stream.jumped and not contributed and self._summed(block, stream.next + 1):
            self.counters["released_early"] += 1
            self._leave(block, rank, stream.next + 1)
            stream.jumped = True
            return True
        return False

    def _summed(self, block, vid):
        slot = block.job.slot(vid)
        return slot.vid == vid and slot.state == model.REDUCED

    def _leave(self, block, rank, vid):
        """A sum leaves on a rank's connection, if its header is there (section 4)."""
        number, port = block.number, block.members[rank]
        slot = block.job.slot(vid)
        of, header = self.streams[number][port].headers[block.job.slots.index(slot)]
        if of != vid:
            return
        receiver = self.host(number, receiver_of(self.registered[number][port]))
        macs = None
        if header[:6] == self.own.mac.to_bytes(6, "big"):
            macs = receiver.mac.to_bytes(6, "big").hex(), self.own.mac.to_bytes(6, "big").hex()
        flags, payload = slot.result
        self.left.append((receiver.ethernet, roce.leaving(header, payload, flags & 3, macs)))

    # Registers (section 2)

    def address_of(self, name, job=0, port=0):
        if name in zwire.CONNECTION_COUNTER_NAMES:
            return zwire.REG_CONNECTION_COUNTERS + 8 * zwire.CONNECTION_COUNTER_NAMES.index(name)
        if name not in zwire.CONNECTION_REGISTERS:
            return super().address_of(name, job, port)
        address, _, _ = zwire.CONNECTION_REGISTERS[name]
        if name == "MEMBER_CONNECTION":
            return address + zwire.REG_CONNECTION_STRIDE * port
        if name == "JOB_CONNECTION":
            return address + zwire.REG_CONNECTION_TABLE_STRIDE * job + zwire.REG_CONNECTION_STRIDE * port
        if name.startswith("NEIGHBOUR"):
            return address + zwire.REG_NEIGHBOUR_STRIDE * port
        return address

    def _register_at(self, address):
        for name in zwire.CONNECTION_REGISTERS:
            if name.startswith("NEIGHBOUR") and self.ethernet > 1:
                continue
            for job in range(len(self.blocks) if name == "JOB_CONNECTION" else 1):
                for port in range(1 if name == "JOB_DISCONNECT" else self.ports):
                    if address == self.address_of(name, job, port):
                        return name, (job, port)
        return super()._register_at(address)

    def _read(self, name, at):
        if name not in zwire.CONNECTION_REGISTERS:
            return super()._read(name, at)
        job, port = at
        if name == "MEMBER_CONNECTION":
            return self.staged_connections[port]
        if name == "JOB_CONNECTION":
            return self.registered[job][port]
        if name.startswith("NEIGHBOUR"):
            return self.neighbours[port][name.endswith("_MAC")]
        return 0

    def _write(self, name, value, at):
        if name not in zwire.CONNECTION_REGISTERS:
            return super()._write(name, value, at)
        if name == "JOB_CONNECTION":
            return zwire.CODE_READ_ONLY
        if self._strange(name):
            return zwire.CODE_BUSY
        if name == "JOB_DISCONNECT":
            return self._disconnect(value)
        if name == "MEMBER_CONNECTION":
            self.staged_connections[at[1]] = value % (1 << CONNECTION_BITS)
        elif name == "NEIGHBOUR_MAC":
            self.neighbours[at[1]][1] = value % (1 << 48)
        else:
            self.neighbours[at[1]][0] = value % (1 << 32)
        return zwire.CODE_DONE

    def _disconnect(self, number):
        if number >= len(self.blocks):
            return zwire.CODE_BAD_JOB
        if self.blocks[number].job is not None:
            return zwire.CODE_BUSY
        self.registered[number] = [NO_CONNECTION] * self.ports
        return zwire.CODE_DONE

    def _new_owner(self):
        super()._new_owner()
        self.staged_connections = [NO_CONNECTION] * self.ports

    def _reset(self, token):
        code = super()._reset(token)
        if code == zwire.CODE_DONE:
            self.staged_connections = [NO_CONNECTION] * self.ports
            self.registered = [[NO_CONNECTION] * self.ports for _ in self.blocks]
            self.neighbours = [[0, 0] for _ in range(self.ports)]
        return code

    # Commits

    def _commit(self, first, epoch, number):
        if number < len(self.blocks) and not self._connections_good(first, number):
            return zwire.CODE_BAD_CONNECTION
        ran = number < len(self.blocks) and self.blocks[number].job
        code = super()._commit(first, epoch, number)
        if code == zwire.CODE_DONE and self.blocks[number].job is not ran:
            self._connect(self.blocks[number], self.staged["JOB_PORTS"])
        return code

    def _connect(self, block, ports):
        """Registers the connections of a job that was just set up."""
        number = block.number
        self.registered[number] = [
            self.staged_connections[p] if ports >> p & 1 else NO_CONNECTION for p in range(self.ports)
        ]
        self.streams[number] = [Stream(len(block.job.slots)) for _ in range(self.ports)]
        self.newest[number] = 0
        self.mtus[number] = block.job.chunk * self.arithmetic.format.bytes

    def _connections_good(self, first, number):
        """Returns whether the connections that are staged may be those of a job with this first VID and number."""
        ports, chunk, deadline = (self.staged[name] for name in ("JOB_PORTS", "JOB_CHUNK", "JOB_DEADLINE"))
        if first or chunk * self.arithmetic.format.bytes not in MTUS or deadline >> 32 & 1:
            return False
        taken = {(c.ip, c.qpn) for c in self.connections() if c.job != number}
        for port in [p for p in range(self.ports) if ports >> p & 1]:
            entry = self.staged_connections[port]
            receiver = receiver_of(entry)
            if receiver >= self.ports or not ports >> receiver & 1 or entry % NUMBERS < 2:
                return False
            key = self.staged_members[receiver][0] % (1 << 32), entry % NUMBERS
            if key in taken:
                return False
            taken.add(key)
        return True


def connection_entry(qpn, psn, receiver):
    """Returns the value of MEMBER_CONNECTION; receiver: a port of the core."""
    return receiver << 48 | psn << 24 | qpn


def psn_of(entry):
    return entry >> 24 & NUMBERS - 1


def receiver_of(entry):
    return entry >> 48


def nearest(offset, newest):
    """Returns the VID with these low bits that is nearest to the newest one (section 3)."""
    ahead = (offset - newest) % NUMBERS
    return (newest + ahead - (NUMBERS if ahead >= NUMBERS // 2 else 0)) % 2**32
