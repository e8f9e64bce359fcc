"""Datagrams and Ethernet frames, written from driver/wire/NETWORK.md and the RFCs, for the benches.

Checksums and CRC are computed here from their definitions. judge() lets scapy judge a frame as well: it must parse,
and scapy's own checksums must be those in the frame.
"""

import struct

from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether

import model
import zwire
from castagnoli import closed

SHORTEST = 60  # bytes of a frame, without its FCS

def checksum(data):
    """Returns the Internet checksum of the bytes (RFC 1071)."""
    words = struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2))
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def datagram(header, payload=b""):
    """Returns the bytes of a datagram: header, a dict of fields, payload and CRC."""
    return closed(model.pack(header, model.header_bytes(header["kind"], shared=True)) + payload)


def ipv4(protocol, source, target, data, ecn=0):
    """Returns an IPv4 packet as the card sends them: don't fragment, TTL 64."""
    fields = [0x45, ecn, 20 + len(data), 0, 0x4000, 64, protocol, 0, source, target]
    fields[7] = checksum(struct.pack("!BBHHHBBHII", *fields))
    return struct.pack("!BBHHHBBHII", *fields) + data


def ethernet(source, target, kind, data):
    """Returns a frame without FCS, padded with zeros."""
    frame = target.to_bytes(6, "big") + source.to_bytes(6, "big") + struct.pack("!H", kind) + data
    return frame.ljust(SHORTEST, b"\0")


def udp_frame(source, target, data, ecn=zwire.ECN_ECT0):
    """Returns the frame of a datagram. source and target: MAC address, IP address and UDP port."""
    size = 8 + len(data)
    pseudo = struct.pack("!IIHH", source[1], target[1], 17, size)
    head = struct.pack("!HHHH", source[2], target[2], size, 0)
    head = head[:6] + struct.pack("!H", checksum(pseudo + head + data) or 0xFFFF)
    return ethernet(source[0], target[0], 0x0800, ipv4(17, source[1], target[1], head + data, ecn))


def judge(frame):
    """Has scapy parse a frame and compute its checksums; returns its layers."""
    assert len(frame) >= SHORTEST
    parsed = Ether(frame)
    assert parsed.type in (0x0800, 0x0806)
    if parsed.type == 0x0806:
        assert ARP in parsed
        return parsed
    upper = UDP if parsed[IP].proto == 17 else ICMP
    again = parsed.copy()
    del again[IP].chksum, again[IP].len, again[upper].chksum
    if upper is UDP:
        del again[UDP].len
    again = Ether(bytes(again))
    assert (again[IP].chksum, again[IP].len) == (parsed[IP].chksum, parsed[IP].len)
    want, found = again[upper].chksum, parsed[upper].chksum
    assert found == want or {found, want} == {0, 0xFFFF} and upper is ICMP
    assert upper is ICMP or again[UDP].len == parsed[UDP].len
    assert bytes(again) == frame or upper is ICMP
    return parsed


def frames(beats, size):
    """Returns the frames of a stream's beats; checks that every word but the last of a frame is full."""
    out, frame = [], b""
    for beat in beats:
        count = beat["tkeep"].bit_length()
        assert count and beat["tkeep"] == (1 << count) - 1
        assert beat["tlast"] or count == size
        frame += beat["tdata"].to_bytes(size, "little")[:count]
        if beat["tlast"]:
            out.append(frame)
            frame = b""
    assert not frame, "a frame has no end"
    return out
