#!/usr/bin/env python3
"""Writes the Verilog of an Ethernet MAC with the RGMII pins of an ECP5, for 1 Gbit/s in full duplex.

    python ethernet_mac.py --top agg_eth_mac --tx-delay 2000 --rx-delay 0 -o agg_eth_mac.v

LiteEth has the parts; this program connects them without a processor and without a bus:

    rx: pins -> LiteEthPHYRGMIIRX -> preamble checker -> FCS checker -> m_axis
    tx: s_axis -> padding -> FCS inserter -> preamble inserter -> gap -> LiteEthPHYRGMIITX -> pins

There is one clock, RXC of the PHY, in both directions: a partner's clock and the board's may differ, the
clocks of a PHY that takes its own RXC as TXC do not. Everything that leaves is synchronous to eth_clk.

Not done here: 10 and 100 Mbit/s, half duplex, MDIO. The PHY's straps set its delays; the flags have what the
FPGA adds. RX_ER is not looked at: the FCS of a frame that the PHY could not decode is wrong.
"""

import argparse
import pathlib
import re
import sys

from liteeth.common import eth_fcs_length, eth_min_frame_length, eth_phy_description
from liteeth.mac import crc, gap, padding, preamble
from liteeth.phy.ecp5rgmii import LiteEthPHYRGMIIRX, LiteEthPHYRGMIITX
from litex.build.io import DDROutput
from litex.build.lattice.common import lattice_ecp5_special_overrides
from litex.gen.fhdl import verilog
from litex.soc.interconnect import stream
from migen import ClockDomain, ClockDomainsRenamer, ClockSignal, Instance, Module, Record, Signal

TAP = 25  # ps, of an ECP5's DELAYG
TAPS = 128
DOMAIN = "eth"

# LiteEth's parts have a clock "sys", and the pins one for each direction.
rename = ClockDomainsRenamer({"sys": DOMAIN, "eth_rx": DOMAIN, "eth_tx": DOMAIN})


class Ports:
    """The ports of the module, by their names."""

    def __init__(self):
        self.signals = []
        self.rst = self._port("rst", 1)  # synchronous to eth_clk; its clock is RXC
        self.eth_clk = self._port("eth_clk", 1)  # RXC, 125 MHz
        self.link_up = self._port("link_up", 1)  # the PHY has a partner at 1 Gbit/s in full duplex
        self.rgmii_rx_clk = self._port("rgmii_rx_clk", 1)
        self.rgmii_rx_ctl = self._port("rgmii_rx_ctl", 1)
        self.rgmii_rx_data = self._port("rgmii_rx_data", 4)
        self.rgmii_tx_clk = self._port("rgmii_tx_clk", 1)
        self.rgmii_tx_ctl = self._port("rgmii_tx_ctl", 1)
        self.rgmii_tx_data = self._port("rgmii_tx_data", 4)
        # Frames that came, without preamble and FCS. They cannot wait. tuser, with tlast: the FCS is wrong.
        self.m_axis_tdata = self._port("m_axis_tdata", 8)
        self.m_axis_tvalid = self._port("m_axis_tvalid", 1)
        self.m_axis_tlast = self._port("m_axis_tlast", 1)
        self.m_axis_tuser = self._port("m_axis_tuser", 1)
        # Frames to send, without preamble and FCS. Each must come without a pause once it has begun.
        self.s_axis_tdata = self._port("s_axis_tdata", 8)
        self.s_axis_tvalid = self._port("s_axis_tvalid", 1)
        self.s_axis_tready = self._port("s_axis_tready", 1)
        self.s_axis_tlast = self._port("s_axis_tlast", 1)

    def _port(self, name, width):
        port = Signal(width, name=name)
        self.signals.append(port)
        return port


class EthernetMAC(Module):
    """The MAC. Delays are those of the FPGA's pins, in picoseconds."""

    def __init__(self, ports, tx_delay_ps, rx_delay_ps):
        self.clock_domains.eth = ClockDomain(DOMAIN)
        self.comb += [
            self.eth.clk.eq(ports.rgmii_rx_clk),
            self.eth.rst.eq(ports.rst),
            ports.eth_clk.eq(self.eth.clk),
        ]
        self._clock_to_phy(ports, tx_delay_ps)
        self._receive(ports, rx_delay_ps)
        self._transmit(ports)

    def _clock_to_phy(self, ports, delay_ps):
        """TXC is a bit that is high in the first half of each cycle, like the data a bit of a DDR register."""
        undelayed = Signal()
        self.specials += [
            DDROutput(clk=ClockSignal(DOMAIN), i1=1, i2=0, o=undelayed),
            Instance(
                "DELAYG",
                p_DEL_MODE="SCLK_ALIGNED",
                p_DEL_VALUE=delay_ps // TAP,
                i_A=undelayed,
                o_Z=ports.rgmii_tx_clk,
            ),
        ]

    def _chain(self, *parts):
        """Connects parts in a row. All have the one clock."""
        for part in parts:
            if isinstance(part, Module):
                self.submodules += part
        self.submodules += stream.Pipeline(*parts)

    def _receive(self, ports, delay_ps):
        pads = Record([("rx_ctl", 1), ("rx_data", 4)])
        self.comb += [pads.rx_ctl.eq(ports.rgmii_rx_ctl), pads.rx_data.eq(ports.rgmii_rx_data)]
        phy = LiteEthPHYRGMIIRX(pads, rx_delay=delay_ps * 1e-12)
        status = phy.inband_status.fields
        checker = crc.LiteEthMACCRC32Checker(eth_phy_description(8))
        checker = stream.BufferizeEndpoints({"sink": stream.DIR_SINK})(checker)
        out = stream.Endpoint(eth_phy_description(8))
        self._chain(rename(phy), rename(preamble.LiteEthMACPreambleChecker(8)), rename(checker), out)
        # The FCS checker judges a frame where last_be is set, which LiteEth's PHYs of 8 bits leave out. Without it
        # every frame passes.
        self.comb += phy.source.last_be.eq(phy.source.last)
        gigabit = 0b10
        self.sync.eth += ports.link_up.eq(
            status.link_status & (status.clock_speed == gigabit) & status.duplex_status
        )
        self.comb += [
            out.ready.eq(1),
            ports.m_axis_tdata.eq(out.data),
            ports.m_axis_tvalid.eq(out.valid),
            ports.m_axis_tlast.eq(out.last),
            ports.m_axis_tuser.eq(out.error),
        ]

    def _transmit(self, ports):
        pads = Record([("tx_ctl", 1), ("tx_data", 4)])
        self.comb += [ports.rgmii_tx_ctl.eq(pads.tx_ctl), ports.rgmii_tx_data.eq(pads.tx_data)]
        inserter = crc.LiteEthMACCRC32Inserter(eth_phy_description(8))
        inserter = stream.BufferizeEndpoints({"sink": stream.DIR_SINK})(inserter)
        into = stream.Endpoint(eth_phy_description(8))
        self._chain(
            into,
            rename(padding.LiteEthMACPaddingInserter(8, eth_min_frame_length - eth_fcs_length)),
            rename(inserter),
            rename(preamble.LiteEthMACPreambleInserter(8)),
            rename(gap.LiteEthMACGap(8)),
            rename(LiteEthPHYRGMIITX(pads)),
        )
        self.comb += [
            into.data.eq(ports.s_axis_tdata),
            into.valid.eq(ports.s_axis_tvalid),
            into.last.eq(ports.s_axis_tlast),
            into.last_be.eq(ports.s_axis_tlast),
            ports.s_axis_tready.eq(into.ready),
        ]


def delay(text):
    """Reads a delay in picoseconds."""
    value = int(text)
    if not 0 <= value < TAPS * TAP:
        raise argparse.ArgumentTypeError(f"{value} ps: must be 0 to {TAPS * TAP - 1}")
    return value


def main(arguments):
    """Carries out the command line."""
    parser = argparse.ArgumentParser(description="Writes the Verilog of an Ethernet MAC with RGMII pins.")
    parser.add_argument("--top", default="agg_eth_mac", help="name of the module")
    parser.add_argument("--tx-delay", required=True, type=delay, metavar="PS", help="delay of TXC in the FPGA")
    parser.add_argument("--rx-delay", required=True, type=delay, metavar="PS", help="delay of RXD and RX_CTL in the FPGA")
    parser.add_argument("-o", dest="output", required=True, type=pathlib.Path, help="file to write")
    flags = parser.parse_args(arguments)
    ports = Ports()
    text = str(
        verilog.convert(
            EthernetMAC(ports, flags.tx_delay, flags.rx_delay),
            ios=set(ports.signals),
            name=flags.top,
            special_overrides=lattice_ecp5_special_overrides,
        )
    )
    # LiteX writes the date into a comment, and a time scale that the other modules do not have.
    text = re.sub(r"^(//.*|`timescale.*)\n", "", text, flags=re.MULTILINE)
    delays = f"--tx-delay {flags.tx_delay} --rx-delay {flags.rx_delay}"
    flags.output.write_text(f"// Made by: ethernet_mac.py --top {flags.top} {delays}, with LiteEth\n\n{text}")


if __name__ == "__main__":
    main(sys.argv[1:])
