"""Cards on Ethernet behind MACs that have the rate of a wire, 10 or 100 Gbit/s.

The wire carries 24 bytes beside each frame: FCS, gap and preamble.
"""

import zwire
from udp_card import UdpCard

BESIDE = 24  # bytes of the wire beside a frame

# Of the wire, in a cycle: 10 Gbit/s at 156.25 MHz, 100 Gbit/s at 200 MHz.
WIRE = {64: 8, 512: 62.5}


class Wire:
    """The transmit side of a MAC, as a pattern of stalls: it takes words while it is at most a frame's gap behind."""

    def __init__(self, rate):
        self.rate, self.behind = rate, 0

    def __iter__(self):
        return self

    def __next__(self):
        self.behind = max(0, self.behind - self.rate)
        return self.behind > 4 * self.rate

    def take(self, count, last):
        self.behind += count + (BESIDE if last else 0)


class Gaps:
    """The receive side, as a pattern of idle cycles: the wire has not yet brought the next word."""

    def __init__(self, rate):
        self.rate, self.behind, self.sizes = rate, 0, []  # bytes of the wire for each word

    def __iter__(self):
        return self

    def __next__(self):
        self.behind = max(self.behind, 0) - self.rate
        if self.behind > 0 or not self.sizes:
            return True
        self.behind += self.sizes.pop(0)
        return False


def check_rate(card, size, cycles, count, late=0):
    """Checks that frames of so many bytes have left as fast as the port allows, a word a cycle, and the wire behind it.

    cycles: from the last word of one to that of the count-th after it. late: cycles that it may take longer.
    """
    wire, words = count * (size + BESIDE) / card.rate, count * -(-size // card.word)
    ratio = wire / cycles
    print(f"{8 * card.word} bits, {count} frames of {size} bytes: {cycles} cycles, the wire's {wire}: {ratio:.4f}")
    assert -2 < cycles - max(wire, words) < 2 + late and ratio >= 0.98


class WiredCard(UdpCard):
    """A card whose MACs have the rate of a wire."""

    def __init__(self, dut):
        super().__init__(dut)
        self.rate = WIRE[8 * self.word]
        for line in self.lines:
            line.tx.stall = Wire(self.rate)
            line.gaps = None

    def paced(self):
        """Lets frames come as the wires bring them, from now on."""
        for line in self.lines:
            line.rx.idle = line.gaps = Gaps(self.rate)

    def put(self, frame, bad=False, ethernet=0):
        super().put(frame, bad, ethernet)
        gaps = self.lines[ethernet].gaps
        if gaps:
            words = [len(frame[at : at + self.word]) for at in range(0, len(frame), self.word)]
            gaps.sizes += words[:-1] + [words[-1] + BESIDE]

    def _collect(self, at, beat):
        self.lines[at].tx.stall.take(beat["tkeep"].bit_length(), beat["tlast"])
        super()._collect(at, beat)

    async def counters(self):
        """Returns the counters that are not 0, without comparison with the model."""
        found = {}
        for name in [*(name for name, _ in zwire.COUNTER_NAMES), *zwire.NETWORK_COUNTER_NAMES]:
            reply = await self.register({"kind": zwire.KIND_REGREAD, "vid": self.model.address_of(name)})
            found |= {name: reply["mask"]} if reply["mask"] else {}
        return found
