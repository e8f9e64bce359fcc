"""Frames for the receiver of a card on Ethernet, and what NETWORK.md and the RFCs say about them.

scapy makes the frames, with one fault or several. judge() looks at their bytes alone.
"""

import dataclasses
import ipaddress
import random

from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw

from castagnoli import closed, crc32c

MAC, ADDRESS, PORT = "02:54:42:00:00:01", "192.0.2.17", 0x5442  # of the card
HOST_MAC, HOST = "06:11:22:33:44:55", "198.51.100.99"
BROADCAST = "ff:ff:ff:ff:ff:ff"

DROP, DATAGRAM, ARP_REQUEST, ECHO, OTHER, IGNORED = range(6)
REASONS = (
    "none fcs runt oversize ip_header ip_checksum fragment ip_length ip_address protocol udp_length checksum "
    "udp_port short datagram_crc"
).split()


@dataclasses.dataclass
class Verdict:
    """What a frame is. The other fields are there if its kind has them."""

    kind: int
    reason: str = "none"
    mac: bytes = b""
    ip: bytes = b""
    port: int | None = None
    ecn: int | None = None
    header: bytes = b""  # as many bytes as count
    size: int | None = None
    echo: bytes = b""
    payload: bytes = b""


# -- The model ---------------------------------------------------------------------------------------


def mac_bytes(text):
    return bytes.fromhex(text.replace(":", ""))


def ip_bytes(text):
    return ipaddress.ip_address(text).packed


def sums_up(data):
    """Returns whether data with its checksum has no error that the checksum finds (RFC 1071)."""
    total = sum(int.from_bytes(data[i : i + 2].ljust(2, b"\0"), "big") for i in range(0, len(data), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total == 0xFFFF


def judge(frame, bad, largest, ports=(PORT,)):
    """Returns the verdict on a frame. bad: the MAC found a wrong FCS. ports: the card's UDP ports."""
    if bad:
        return Verdict(DROP, "fcs")
    if len(frame) < 60:
        return Verdict(DROP, "runt")
    if len(frame) > largest:
        return Verdict(DROP, "oversize")
    to, sender, ethertype, inner = frame[:6], frame[6:12], frame[12:14], frame[14:]
    arp = ethertype == b"\x08\x06"
    if to != mac_bytes(MAC) and not (arp and to == b"\xff" * 6):
        return Verdict(OTHER)
    if arp:
        asks = inner[:8] == bytes.fromhex("0001080006040001") and inner[24:28] == ip_bytes(ADDRESS)
        if asks:
            return Verdict(ARP_REQUEST, mac=inner[8:14], ip=inner[14:18])
        return Verdict(IGNORED if to == mac_bytes(MAC) else OTHER)
    if ethertype != b"\x08\x00":
        return Verdict(IGNORED)
    return judge_ip(inner, sender, ports)


def judge_ip(inner, sender, ports):
    """Judges what follows the Ethernet header: an IPv4 packet and padding."""
    length = int.from_bytes(inner[2:4], "big")
    flags = int.from_bytes(inner[6:8], "big")
    packet, protocol = inner[20:length], inner[9]
    echo = protocol == 1 and packet[:2] == b"\x08\x00"
    if inner[0] != 0x45:
        return Verdict(DROP, "ip_header")
    if not sums_up(inner[:20]):
        return Verdict(DROP, "ip_checksum")
    if flags & 0x2000 or flags & 0x1FFF:
        return Verdict(DROP, "fragment")
    if length > len(inner) or length < 28:
        return Verdict(DROP, "ip_length")
    if inner[16:20] != ip_bytes(ADDRESS):
        return Verdict(DROP, "ip_address")
    if protocol != 17 and not echo:
        return Verdict(DROP, "protocol")
    said = {"mac": sender, "ip": inner[12:16], "ecn": inner[1] & 3}
    if echo:
        if not sums_up(packet):
            return Verdict(DROP, "checksum")
        data = packet[8:]
        return Verdict(
            ECHO, **said, echo=packet[2:8], size=len(data), header=data[:14], payload=data[14:]
        )
    return judge_udp(packet, said, ports)


def judge_udp(packet, said, ports):
    """Judges a UDP packet to the card."""
    pseudo = said["ip"] + ip_bytes(ADDRESS) + b"\0\x11" + packet[4:6]
    datagram = packet[8:]
    if int.from_bytes(packet[4:6], "big") != len(packet):
        return Verdict(DROP, "udp_length")
    if packet[6:8] == b"\0\0" or not sums_up(pseudo + packet):
        return Verdict(DROP, "checksum")
    if int.from_bytes(packet[2:4], "big") not in ports:
        return Verdict(DROP, "udp_port")
    if len(datagram) < 18:
        return Verdict(DROP, "short")
    if crc32c(datagram[:-4]) != int.from_bytes(datagram[-4:], "little"):
        return Verdict(DROP, "datagram_crc")
    header = datagram[:22] if len(datagram) == 26 else datagram[:14]
    said["port"] = int.from_bytes(packet[:2], "big")
    return Verdict(DATAGRAM, **said, header=header, size=len(datagram) - 18, payload=datagram[14:-4])


# -- Frames ------------------------------------------------------------------------------------------

# Faults in the order of the checks, and what each makes of a datagram that has only that one.
FAULTS = {
    "fcs": "fcs",
    "runt": "runt",
    "oversize": "oversize",
    "for_another": OTHER,
    "to_all": OTHER,
    "vlan": IGNORED,
    "ipv6": IGNORED,
    "version": "ip_header",
    "options": "ip_header",
    "ip_checksum": "ip_checksum",
    "more_fragments": "fragment",
    "offset": "fragment",
    "too_long": "ip_length",
    "address": "ip_address",
    "tcp": "protocol",
    "udp_longer": "udp_length",
    "udp_shorter": "udp_length",
    "udp_unsummed": "checksum",
    "udp_checksum": "checksum",
    "udp_port": "udp_port",
    "short": "short",
    "datagram_crc": "datagram_crc",
}


def datagram_frame(rng, faults=(), payload=0, largest=9018, message=None, sender=HOST, port=None):
    """Returns a frame with a datagram of that payload, and whether its FCS is wrong.

    message: all of the datagram but its CRC; by default, all is random. sender, port: where it comes from.
    """
    message = rng.randbytes(14 + payload) if message is None else message
    body = closed(message[:13] if "short" in faults else message)
    if "datagram_crc" in faults:
        body = body[:-1] + bytes([body[-1] ^ 1 << rng.randrange(8)])
    port = rng.randrange(1 << 16) if port is None else port
    udp = UDP(sport=port, dport=PORT ^ (1 << rng.randrange(16) if "udp_port" in faults else 0))
    size = len(body) + 8
    udp.len = size + 2 * ("udp_longer" in faults) - ("udp_shorter" in faults)
    ip = IP(src=sender, dst="192.0.2.16" if "address" in faults else ADDRESS, tos=rng.randrange(256))
    ip.ttl, ip.id, ip.flags = rng.randrange(256), rng.randrange(1 << 16), rng.choice(["DF", 0])
    if "version" in faults:
        ip.version = rng.choice([0, 5, 6])
    if "options" in faults:
        ip.ihl = rng.choice([4, 6])
    if "more_fragments" in faults:
        ip.flags = "MF"
    if "offset" in faults:
        ip.frag = 1 << rng.randrange(13)
    if "tcp" in faults:
        ip.proto = rng.choice([6, 1, 41])
    ip.proto = ip.proto if "tcp" in faults else 17
    ip.len = 20 + size
    packet = bytearray(bytes(ip / udp / Raw(body)))
    if "udp_unsummed" in faults:
        packet[26:28] = b"\0\0"
    if "udp_checksum" in faults:
        packet[27] ^= 1
    if "too_long" in faults:  # by a byte, by two or by many
        packet[2:4] = (max(46, 20 + size) + rng.choice([1, 2, 5000])).to_bytes(2, "big")
        packet[24:26] = (int.from_bytes(packet[2:4], "big") - 20).to_bytes(2, "big")
        packet[10:12] = header_checksum(packet)
    if "ip_checksum" in faults:
        packet[10 + rng.randrange(2)] ^= 1 << rng.randrange(8)
    return framed(rng, bytes(packet), faults, largest)


def header_checksum(packet):
    """Returns the checksum of an IPv4 header, whose own field is zero."""
    total = sum(int.from_bytes(packet[i : i + 2], "big") for i in range(0, 20, 2) if i != 10)
    return (0xFFFF - ((total - 1) % 0xFFFF + 1)).to_bytes(2, "big")


def framed(rng, packet, faults, largest):
    """Returns the frame of an IP packet, and whether its FCS is wrong."""
    to = "02:54:42:00:00:00" if "for_another" in faults else BROADCAST if "to_all" in faults else MAC
    ether = Ether(dst=to, src=HOST_MAC, type=0x86DD if "ipv6" in faults else 0x0800)
    if "vlan" in faults:
        ether = Ether(dst=to, src=HOST_MAC) / Dot1Q(vlan=1, type=0x0800)
    frame = bytes(ether / Raw(packet))
    frame += rng.randbytes(max(0, 60 - len(frame)))
    if "oversize" in faults:
        frame += rng.randbytes(largest + rng.choice([1, 2, 70]) - len(frame))
    if "runt" in faults:
        frame = frame[: rng.choice([1, 8, 14, 33, 59])]
    return frame, "fcs" in faults


def echo_frame(rng, size, code=0, wrong=False):
    """Returns a frame with an echo request of that many bytes of data."""
    icmp = ICMP(type=8, code=code, id=rng.randrange(1 << 16), seq=rng.randrange(1 << 16))
    packet = bytearray(bytes(IP(src=HOST, dst=ADDRESS, tos=rng.randrange(256)) / icmp / Raw(rng.randbytes(size))))
    packet[23] ^= wrong
    return framed(rng, bytes(packet), (), 0)


def arp_frame(rng, to=BROADCAST, wanted=ADDRESS, at=None):
    """Returns a frame with an ARP request, whose sender need not be the frame's. at: a byte of it that is wrong."""
    arp = ARP(op=1, hwsrc="06:00:00:00:00:77", psrc=HOST, hwdst="00:00:00:00:00:00", pdst=wanted)
    frame = bytearray(bytes(Ether(dst=to, src=HOST_MAC, type=0x0806) / arp))
    if at is not None:
        frame[14 + at] ^= 1 << rng.randrange(8)
    return bytes(frame) + rng.randbytes(60 - len(frame)), False


def some_frame(rng, largest):
    """Returns any frame: mostly with few faults, sometimes with damage anywhere or random."""
    which = rng.random()
    if which < 0.08:
        return arp_frame(rng, to=rng.choice([BROADCAST, MAC, HOST_MAC]), wanted=rng.choice([ADDRESS, HOST]))
    if which < 0.2:
        return echo_frame(rng, rng.choice([0, 1, 13, 14, 15, rng.randrange(80)]), wrong=rng.random() < 0.2)
    payload = rng.choice([0, 0, 4, 8, rng.randrange(200)])
    faults = rng.sample(list(FAULTS), rng.choice([0, 0, 0, 1, 2, 3]))
    frame, bad = datagram_frame(rng, faults, payload, largest)
    if which < 0.4:  # one byte differs
        place = rng.randrange(len(frame))
        frame = frame[:place] + bytes([frame[place] ^ 1 << rng.randrange(8)]) + frame[place + 1 :]
    elif which < 0.5:  # a switch pads more
        frame += rng.randbytes(rng.choice([1, 4, 7, 64, 65]))
    elif which < 0.55:
        frame = rng.randbytes(rng.randrange(1, 150))
    return frame, bad
