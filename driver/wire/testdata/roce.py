"""Judges RoCEv2 frames by scapy's layer of RoCE, and makes those of roce.txt.

Each line of standard input is an Ethernet frame without FCS, in hexadecimal. For each, this script prints
what scapy reads in it, as JSON in one line, and whether the ICRC is the one that scapy computes. With the
argument "make" it prints the frames of roce.txt instead.
"""

import json
import random
import sys

from scapy.contrib.roce import AETH, BTH, CNPPadding
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

ETHER = 14  # bytes of the Ethernet header
FIELDS = ("opcode", "solicited", "migreq", "padcount", "version", "pkey", "fecn", "becn", "dqpn", "ackreq", "psn")


def read(frame):
    """Returns the fields of a frame: those of BTH and AETH by scapy's names, and what follows."""
    frame = frame[: ETHER + Ether(frame)[IP].len]  # scapy's ICRC would cover the padding of a short frame
    packet = Ether(frame)
    bth = packet[BTH]
    fields = {name: int(getattr(bth, name)) for name in FIELDS}
    fields["source"], fields["ecn"] = packet[UDP].sport, packet[IP].tos & 3
    fields["icrc"] = bth.compute_icrc(bytes(bth)) == bth.icrc.to_bytes(4, "big")
    if AETH in packet:
        fields["syndrome"], fields["msn"] = packet[AETH].syndrome, packet[AETH].msn
    elif CNPPadding not in packet:
        fields["rest"] = bytes(bth.payload).hex()
    for layer, lengths in ((IP, ("len", "chksum")), (UDP, ("len",))):
        for name in lengths:
            packet[layer].delfieldval(name)
    packet[BTH].delfieldval("icrc")
    fields["rebuilt"] = bytes(packet) == frame
    return fields


def frames():
    """Returns frames with one payload of each size, ECN mark and opcode of interest."""
    rng = random.Random(21)
    for opcode in (*range(0x15), 0x81, 0x64):
        size = 0 if opcode in (0x11, 0x81) else rng.choice((0, 4, 256, 1024, 1028))
        payload = AETH(syndrome=0x60, msn=rng.randrange(1 << 24)) if opcode == 0x11 else Raw(rng.randbytes(size))
        if opcode == 0x81:
            payload = CNPPadding()
        ip = IP(src=f"10.0.{rng.randrange(256)}.1", dst=f"10.1.{rng.randrange(256)}.2", tos=rng.randrange(256))
        ip.ttl, ip.id, ip.flags = rng.randrange(1, 256), rng.randrange(1 << 16), "DF"
        bth = BTH(opcode=opcode, solicited=rng.randrange(2), migreq=rng.randrange(2), padcount=rng.randrange(4))
        bth.fecn, bth.becn, bth.ackreq = rng.randrange(2), rng.randrange(2), rng.randrange(2)
        bth.dqpn, bth.psn = rng.randrange(1 << 24), rng.randrange(1 << 24)
        udp = UDP(sport=rng.randrange(1 << 16), dport=4791, chksum=0)
        yield bytes(Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01") / ip / udp / bth / payload)


def main():
    if sys.argv[1:] == ["make"]:
        print("# RoCEv2 frames without FCS, one a line, made by scapy: python3 roce.py make > roce.txt")
        for frame in frames():
            print(frame.hex())
        return
    for line in sys.stdin:
        print(json.dumps(read(bytes.fromhex(line))))


main()
