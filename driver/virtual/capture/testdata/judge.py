"""Judges frames that a card at 192.168.84.66 made: hexadecimal, with FCS, one a line of standard input.

scapy computes every checksum and length anew, from the fields that are left. So this script has no code of
its own for them, apart from the FCS.
"""

import sys
import zlib

from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Padding

MAC, ADDRESS = "02:54:52:42:00:01", "192.168.84.66"
PORTS = [21570, 7000]  # the card's own, and the upward UDP port of a tree job


def rebuilt(frame):
    """Returns the frame with checksums and lengths that scapy computes."""
    packet = Ether(frame)
    for layer, fields in ((IP, ("len", "chksum", "ihl")), (UDP, ("len", "chksum")), (ICMP, ("chksum",))):
        if layer in packet:
            for field in fields:
                packet[layer].delfieldval(field)
    return bytes(packet)


def judge(frame):
    """Returns what the frame carries. Raises an AssertionError if anything in it is wrong."""
    body, fcs = frame[:-4], frame[-4:]
    assert zlib.crc32(body) == int.from_bytes(fcs, "little"), "FCS"
    assert 60 <= len(body) <= 9018, "size"
    packet = Ether(body)
    assert packet.src == MAC, "source"
    assert rebuilt(body) == body, f"{rebuilt(body).hex()}\n{body.hex()}"
    if Padding in packet:
        assert len(body) == 60 and not any(packet[Padding].load), "padding"
    if ARP in packet:
        arp = packet[ARP]
        assert (arp.hwtype, arp.ptype, arp.hwlen, arp.plen, arp.op) == (1, 0x0800, 6, 4, 2)
        assert (arp.hwsrc, arp.psrc, arp.hwdst) == (MAC, ADDRESS, packet.dst)
        return "ARP"
    ip = packet[IP]
    assert (ip.version, ip.ihl, ip.id, ip.frag, ip.ttl, ip.src) == (4, 5, 0, 0, 64, ADDRESS)
    assert ip.flags == "DF" and not ip.options
    if ICMP in packet:
        assert (packet[ICMP].type, packet[ICMP].code, ip.tos) == (0, 0, 0)
        return "ICMP"
    assert packet[UDP].sport in PORTS and packet[UDP].chksum != 0 and ip.tos < 4
    return "UDP"


def main():
    kinds = [judge(bytes.fromhex(line)) for line in sys.stdin]
    print(", ".join(f"{kinds.count(kind)} {kind}" for kind in ("ARP", "ICMP", "UDP")))


main()
