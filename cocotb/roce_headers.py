"""Records of agg_roce_headers, and a driver of its writing side, for test_roce_headers.py and test_roce_transmit.py.

A packet's record gets a place, enters a port of the core with it, and has a verdict.
"""

import dataclasses

from cocotb.triggers import ReadOnly, RisingEdge

import roce
from bench import number

RECORD_BITS = 626
STORED, DUPLICATE, OWED, REFUSED, FLUSHED = range(5)
KEPT = (STORED, DUPLICATE, OWED)  # verdicts after which a record is the slot's header


@dataclasses.dataclass(frozen=True)
class Record:
    """What a frame needs besides its payload, and of which packet it is."""

    job: int
    epoch: int
    vid: int
    header: bytes
    part: int  # of the ICRC

    def tag(self):
        return self.job << 48 | self.epoch << 32 | self.vid

    def bits(self):
        """Returns tag and record as one number: roce.py's header and part, code by the header's length."""
        code = roce.HEADERS.index(len(self.header))
        record = self.part << 594 | code << 592 | int.from_bytes(self.header, "little")
        return self.tag() << RECORD_BITS | record


def some_record(rng, job, epoch, vid, size, **fields):
    """Returns a record with the header of any data packet. size: bytes of the payload. fields: of roce.packet."""
    connection = roce.Connection(rng.getrandbits(32), rng.getrandbits(24), rng.getrandbits(32), mtu=size)
    fields = {"tos": rng.randrange(256), "ttl": rng.randrange(256), **fields}
    opcode = rng.choice(list(roce.CODES))
    frame = roce.packet(rng, connection, psn=rng.getrandbits(24), opcode=opcode, payload=bytes(size), **fields)
    header = frame[: roce.HEADERS[roce.CODES[opcode]]]
    return Record(job, epoch, vid, header, roce.icrc_part(header, size))


class Writer:
    """The records' way into agg_roce_headers. It has the clock edge when its methods are called."""

    def __init__(self, dut):
        self.dut = dut
        self.width = len(dut.s_record) // len(dut.s_record_valid)
        self.place_bits = len(dut.s_record_place) // len(dut.s_record_valid)
        for name in ("s_record_valid", "s_record", "enter_tvalid", "enter_tready", "enter_tlast", "enter_place"):
            getattr(dut, name).value = 0
        for name in ("verdict_valid", "verdict_port", "verdict_slot", "verdict_result"):
            getattr(dut, name).value = 0

    async def give(self, ethernet, record):
        """Offers a record until it is taken; returns its place."""
        self.dut.s_record_valid.value = 1 << ethernet
        self.dut.s_record.value = record.bits() << self.width * ethernet
        while True:
            await ReadOnly()
            ready = number(self.dut.s_record_ready) >> ethernet & 1
            place = number(self.dut.s_record_place) >> self.place_bits * ethernet & (1 << self.place_bits) - 1
            await RisingEdge(self.dut.clk)
            if ready:
                self.dut.s_record_valid.value = 0
                return place

    async def enter(self, port, place, beats=2):
        """A packet enters a port of the core, in some beats."""
        for beat in range(beats):
            self.dut.enter_tvalid.value = self.dut.enter_tready.value = 1 << port
            self.dut.enter_tlast.value = int(beat == beats - 1) << port
            # Only the first beat has the place.
            shown = place if beat == 0 else place ^ (1 << self.place_bits) - 1
            self.dut.enter_place.value = shown << self.place_bits * port
            await RisingEdge(self.dut.clk)
        self.dut.enter_tvalid.value = self.dut.enter_tready.value = 0

    async def judge(self, port, slot, result=STORED):
        """The core's verdict on the oldest packet of a port."""
        self.dut.verdict_valid.value = 1
        self.dut.verdict_port.value = port
        self.dut.verdict_slot.value = slot
        self.dut.verdict_result.value = result
        await RisingEdge(self.dut.clk)
        self.dut.verdict_valid.value = 0

    async def put(self, port, slot, record, result=STORED, ethernet=0):
        """Brings a record all the way into the header memory. It is there five cycles later."""
        await self.enter(port, await self.give(ethernet, record), beats=1)
        await self.judge(port, slot, result)
