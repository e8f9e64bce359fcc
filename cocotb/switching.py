"""The in-path switch by section 7 of NETWORK.md, and a driver of its ports, for test_eth_switch.py.

Switch decides about frames one after another, and its table has no end. Lines drives all ports of the design, and
compares what leaves with the Switch. A frame that the design reports as dropped is not expected.
"""

import collections

import cocotb
from cocotb.triggers import RisingEdge

import eth_frames
from bench import bits, joined, number, start
from eth_frames import ADDRESS, DROP, MAC, OTHER, PORT, judge

LARGEST = 9018  # bytes of a frame
DROP_AFTER = 11  # cycles from a frame's last word to event_dropped


class Switch:
    """Where stations are, and where frames leave."""

    def __init__(self, ports):
        self.ports = ports
        self.where = {}

    def frame(self, port, frame, bad=False):
        """Learns from a frame, and returns the ports where it leaves."""
        verdict = judge(frame, bad, LARGEST)
        if verdict.kind == DROP and verdict.reason in ("fcs", "runt", "oversize"):
            return []
        to, source = frame[:6], frame[6:12]
        if source[0] % 2 == 0:
            self.where[source] = port
        if verdict.kind != OTHER:
            return []
        leaves = [self.where[to]] if to in self.where else range(self.ports)
        return [other for other in leaves if other != port]


def station(n):
    """Returns a station's MAC address."""
    return bytes([6, 0, 0, 0, n >> 8, n & 255])


def frame(rng, to, source, size=None):
    """Returns a frame from station to station, of any EtherType: IPv4, IPv6, VLAN tags, or random."""
    kind = rng.choice([b"\x08\x00", b"\x86\xdd", b"\x81\x00\0\x05\x08\x00", rng.randbytes(2)])
    size = size or rng.choice([60, 61, 64, 67, 68, rng.randrange(60, 200)])
    return (to + source + kind + rng.randbytes(size))[:size]


class Lines:
    """The lines of all ports: frames to send, words that leave, and the Switch that judges them."""

    def __init__(self, dut, idle=None, stall=None):
        """idle, stall: for each port, a pattern of cycles without an input word, and without tready."""
        self.dut = dut
        self.ports, self.size = int(dut.PORTS.value), int(dut.BYTES.value)
        self.idle, self.stall = idle, stall
        self.switch = Switch(self.ports)
        self.now = 0
        self.queues = [collections.deque() for _ in range(self.ports)]  # words to send
        self.source = {}  # port by frame
        self.want = collections.defaultdict(list)  # frames by the ports where they come and leave
        self.ended = [{} for _ in range(self.ports)]  # frame by the cycle of its last word
        self.left = []  # port, frame and cycles of its first and last word
        self.open = [[] for _ in range(self.ports)]  # words of the frame that leaves, with their cycles
        self.waits = [None] * self.ports  # the word that was offered and not taken
        self.passed = self.dropped = self.must_pass = 0
        dut.own_mac.value = int.from_bytes(eth_frames.mac_bytes(MAC), "big")
        dut.own_ip.value = int.from_bytes(eth_frames.ip_bytes(ADDRESS), "big")
        dut.own_port.value = PORT
        dut.s_axis_tvalid.value = dut.m_axis_tready.value = 0
        self.ready = 0

    async def start(self):
        """Starts the design and waits until its table is clear."""
        await start(self.dut)
        for _ in range((1 << int(self.dut.SET_BITS.value)) + 2):
            await RisingEdge(self.dut.clk)
        cocotb.start_soon(self._run())

    def put(self, port, frame, bad=False):
        """Queues a frame, and has the Switch judge it. Returns where it leaves."""
        ports = self.switch.frame(port, frame, bad)
        assert frame not in self.source, "a frame is known by its bytes"
        self.source[frame] = port
        for other in ports:
            self.want[port, other].append(frame)
        self.must_pass += bool(ports)
        for at in range(0, len(frame), self.size):
            part = frame[at : at + self.size]
            last = at + self.size >= len(frame)
            self.queues[port].append((part, last, frame if last else None, bad))
        return ports

    async def quiet(self, rest=60):
        """Waits until everything has been sent, all that must leave has left, and for some more cycles."""
        for _ in range(40000):
            if not any(self.queues) and not any(self.want.values()):
                break
            await RisingEdge(self.dut.clk)
        for _ in range(rest):
            await RisingEdge(self.dut.clk)
        missing = {ports: len(frames) for ports, frames in self.want.items() if frames}
        assert not missing and not any(self.open), f"frames that did not leave: {missing}"
        assert self.passed == self.must_pass - self.dropped

    async def _run(self):
        while True:
            await RisingEdge(self.dut.clk)
            self._look()
            self._drive()
            self.now += 1

    def _drive(self):
        words = [None] * self.ports
        for port, queue in enumerate(self.queues):
            if queue and not (self.idle and next(self.idle[port])):
                words[port] = queue.popleft()
                if words[port][1]:
                    self.ended[port][self.now] = words[port][2]
        dut, size = self.dut, self.size
        dut.s_axis_tvalid.value = joined(1, [word is not None for word in words])
        dut.s_axis_tdata.value = joined(8 * size, [word and int.from_bytes(word[0], "little") or 0 for word in words])
        dut.s_axis_tkeep.value = joined(size, [(1 << len(word[0])) - 1 if word else 0 for word in words])
        dut.s_axis_tlast.value = joined(1, [bool(word and word[1]) for word in words])
        # Before the last word, and without one, it means nothing.
        dut.s_axis_tuser.value = joined(1, [not word or word[3] or not word[1] for word in words])
        self.ready = joined(1, [not (self.stall and next(self.stall[port])) for port in range(self.ports)])
        dut.m_axis_tready.value = self.ready

    def _look(self):
        """Looks at the cycle that ends: its number is now - 1."""
        dut, cycle = self.dut, self.now - 1
        self.passed += bits(dut.event_passed).count("1")
        dropped = number(dut.event_dropped)
        for port in range(self.ports):
            if dropped >> port & 1:
                self._drop(port, self.ended[port][cycle - DROP_AFTER])
        valid = number(dut.m_axis_tvalid)
        for port, words in enumerate(self.open):
            assert valid >> port & 1 or not words, f"port {port} pauses inside a frame"
        if not valid:
            assert self.waits == [None] * self.ports
            return
        data, keep, last = number(dut.m_axis_tdata), number(dut.m_axis_tkeep), number(dut.m_axis_tlast)
        for port in range(self.ports):
            word = None
            if valid >> port & 1:
                count = (keep >> self.size * port & (1 << self.size) - 1).bit_length()
                assert keep >> self.size * port & (1 << self.size) - 1 == (1 << count) - 1 and count
                part = (data >> 8 * self.size * port & (1 << 8 * count) - 1).to_bytes(count, "little")
                word = part, bool(last >> port & 1)
                assert word[1] or count == self.size
            assert self.waits[port] in (None, word), f"port {port}: a word changed before it was taken"
            taken = self.ready >> port & 1
            self.waits[port] = None if taken else word
            if word and taken:
                self._take(port, *word, cycle)

    def _take(self, port, part, last, cycle):
        self.open[port].append((part, cycle))
        if last:
            whole = b"".join(part for part, _ in self.open[port])
            came = self.source.get(whole)
            assert came is not None, f"port {port}: a frame of {len(whole)} bytes that nobody sent"
            wanted = self.want[came, port]
            assert wanted and wanted[0] == whole, f"from {came} to {port}: another frame than the next"
            wanted.pop(0)
            self.left.append((port, whole, self.open[port][0][1], cycle))
            self.open[port] = []

    def _drop(self, port, frame):
        """A frame had no place: it must leave nowhere."""
        self.dropped += 1
        where = [other for other in range(self.ports) if frame in self.want[port, other]]
        for other in where:
            self.want[port, other].remove(frame)
        if not where:  # it would have left nowhere
            self.must_pass += 1
