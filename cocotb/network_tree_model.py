"""A model of a card on Ethernet with an up port, written from driver/wire/TREES.md, section 5: what it adds to
tree_model.py and network_model.py.

What leaves for a parent has its Host as the third element.
"""

import eth_frames
import model
import zwire
from network_model import ADDRESS_BITS, MAC_BITS, NO_ENTRY, Host, NetworkCard
from tree_model import TreeCard

PORT_LSB, PORT_BITS = 16, 16  # the upward UDP port in JOB_PARENT

PARENT_REGISTERS = ["PARENT_ADDRESS", "PARENT_MAC"]

FROM_PARENT = [zwire.KIND_RESULT, zwire.KIND_REPLAY, zwire.KIND_STATUS]


def upward_port(parent):
    """Returns the upward UDP port in JOB_PARENT."""
    return parent >> PORT_LSB & (1 << PORT_BITS) - 1


class NetworkTreeCard(TreeCard, NetworkCard):
    """A card with shell udp and an up port."""

    KNOWN_PARENT = TreeCard.KNOWN_PARENT | (1 << PORT_BITS) - 1 << PORT_LSB

    def __init__(self, lanes, ports, chunk, window, ident, shared, arithmetic=None, jobs=1):
        self.parents = [NO_ENTRY] * jobs  # address and MAC of the current or last job's parent
        self.committing = None  # number of the job of the commit under way
        super().__init__(lanes, ports, chunk, window, ident, shared, arithmetic, jobs)

    def _clear(self):
        super()._clear()
        self.staged_parent = [0, 0]  # PARENT_ADDRESS and PARENT_MAC

    # Registers and commits

    def address_of(self, name, job=0, *port):
        if name in PARENT_REGISTERS:
            return zwire.TREE_REGISTERS[name][0]
        return super().address_of(name, job, *port)

    def _register_at(self, address):
        for name in PARENT_REGISTERS:
            if address == self.address_of(name):
                return name, (0, 0)
        return super()._register_at(address)

    def _read(self, name, at):
        if name in PARENT_REGISTERS:
            return self.staged_parent[PARENT_REGISTERS.index(name)]
        return super()._read(name, at)

    def _write(self, name, value, at):
        if name not in zwire.TREE_REGISTERS:
            return super()._write(name, value, at)
        _, access, _ = zwire.TREE_REGISTERS[name]
        if access == "RO":
            return zwire.CODE_READ_ONLY
        if self._strange(name):
            return zwire.CODE_BUSY
        if name in PARENT_REGISTERS:
            self.staged_parent[PARENT_REGISTERS.index(name)] = value
        elif name in self.staged:
            self.staged[name] = value
        else:
            self.staged_ranks[at[1]] = value
        return zwire.CODE_DONE

    def _commit(self, first, epoch, number):
        self.committing = number
        return super()._commit(first, epoch, number)

    def _staged_entry(self):
        """Returns the staged address of a parent, without the bits that have no meaning."""
        address, mac = self.staged_parent
        return address % (1 << ADDRESS_BITS), mac % (1 << MAC_BITS)

    def _bad_parent(self, setup):
        if super()._bad_parent(setup):
            return True
        if not setup.tree:
            return False
        address, mac = self._staged_entry()
        if not address % (1 << 32) or not address >> 32 or address == self.own.address or mac >> 48 >= self.ethernet:
            return True
        port = upward_port(setup.parent)
        others = {up: number for up, number in self.upward_ports().items() if number != self.committing}
        return port in (0, self.own.port) or port in others

    def _members_same(self, number, ports):
        return super()._members_same(number, ports) and self._staged_entry() == self.parents[number]

    def _set_up(self, block, epoch, job):
        super()._set_up(block, epoch, job)
        self.parents[block.number] = self._staged_entry()

    # Datagrams

    def upward_ports(self):
        """Returns the upward UDP ports of running tree jobs, and the numbers of these jobs."""
        running = [block.number for block in self.blocks if block.job is not None and self.setups[block.number].tree]
        return {upward_port(self.setups[number].parent): number for number in running}

    def parent(self, number):
        """Returns the parent of a job."""
        address, mac = self.parents[number]
        return Host(mac % (1 << 48), address % (1 << 32), address >> 32, mac >> 48)

    def udp_ports(self):
        return [*super().udp_ports(), *self.upward_ports()]

    def _datagram(self, sender, data, ecn, to):
        number = self.upward_ports().get(to)
        if number is None or to == eth_frames.PORT:
            return super()._datagram(sender, data, ecn, to)
        header = model.unpack(data[:14])
        self.counters["frames"] += 1
        refusal = self._refusal_of_parent(header, data)
        if refusal:
            self.counters[refusal] += 1
            return []
        size = model.header_bytes(header["kind"], shared=True)
        header, payload = model.unpack(data[:size]), data[size:]
        parent = self.parent(number)
        if (sender.address, sender.ethernet) != (parent.address, parent.ethernet):
            self.counters["stranger"] += 1
            return []
        if header["job"] != number:
            self.counters["up_dropped"] += 1
            return []
        header["flags"] = header["flags"] & ~3 | model.merge_ecn([header["flags"] & 3, ecn])
        return self._copies(self.packet(self.up, header, payload))

    def _refusal_of_parent(self, header, data):
        """Returns the check of NETWORK.md, section 2, that a datagram to an upward UDP port fails, or None."""
        kind, length = header["kind"], header["length"]
        if header["version"] != zwire.VERSION:
            return "bad_version"
        if kind not in FROM_PARENT:
            return "bad_kind"
        size = model.header_bytes(kind, shared=True)
        if kind != zwire.KIND_STATUS:
            if not 1 <= length <= self.chunk:
                return "bad_length"
            size += self.arithmetic.format.bytes * length
        return None if len(data) == size else "bad_length"

    def _targets(self, header):
        if header["kind"] in (zwire.KIND_DATA, zwire.KIND_FINISH):
            return [self.parent(header["job"])]
        return super()._targets(header)

    def _upward(self, block, header, payload=b""):
        header, payload, _ = super()._upward(block, header, payload)
        return header, payload, self.parent(block.number)
