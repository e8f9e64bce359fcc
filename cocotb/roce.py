"""Packets of RoCEv2, and what ROCE.md says about them.

packet() makes a frame, with one fault or several. judge() looks at a frame's bytes alone. leaving() is
section 4: the frame that carries a sum away.
"""

import dataclasses
import ipaddress
import zlib

PORT = 4791  # UDP's, of RoCEv2

SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM = range(6)
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM = range(6, 12)
ACKNOWLEDGE, CNP = 0x11, 0x81

HEADERS = (54, 58, 70, 74)  # bytes before the payload; a code is the index
IMMEDIATE, RETH = 1, 2  # bits of a code
CODES = {
    SEND_FIRST: 0,
    SEND_MIDDLE: 0,
    SEND_LAST: 0,
    SEND_LAST_IMM: IMMEDIATE,
    SEND_ONLY: 0,
    SEND_ONLY_IMM: IMMEDIATE,
    WRITE_FIRST: RETH,
    WRITE_MIDDLE: 0,
    WRITE_LAST: 0,
    WRITE_LAST_IMM: IMMEDIATE,
    WRITE_ONLY: RETH,
    WRITE_ONLY_IMM: RETH | IMMEDIATE,
}
MTUS = (256, 512, 1024, 2048, 4096)

# Bytes of a frame that the ICRC takes as ones: TOS, TTL and checksum of IP, UDP's checksum, and byte 4
# of the base transport header.
VARIANT = (15, 22, 24, 25, 40, 41, 46)

NONE, TAKEN, DROPPED = range(3)
REASONS = "none roce_header roce_icrc roce_source roce_opcode roce_length roce_hidden".split()


@dataclasses.dataclass
class Connection:
    """A registered connection. ip and qpn are the receiver's, source and ethernet the sender's."""

    ip: int
    qpn: int
    source: int
    ethernet: int = 0
    psn: int = 0  # the first
    job: int = 0
    port: int = 0
    mtu: int = 1024
    epoch: int = 0  # of the job that registered it


@dataclasses.dataclass
class Verdict:
    """What a frame is. The other fields are those of a frame that is taken."""

    kind: int
    reason: str = "none"
    connection: Connection | None = None
    offset: int | None = None  # PSN less the first one
    ecn: int | None = None
    header: bytes = b""
    payload: bytes = b""
    part: int | None = None  # see icrc_part


# -- The ICRC ----------------------------------------------------------------------------------------


def covered(frame):
    """Returns what the ICRC covers of a frame whose last byte it covers."""
    taken = bytearray(frame)
    for place in VARIANT:
        taken[place] = 0xFF
    return b"\xff" * 8 + bytes(taken[14:])


def icrc(frame):
    """Returns the ICRC of a frame that ends before it: four bytes, as they are sent."""
    return zlib.crc32(covered(frame)).to_bytes(4, "little")


def icrc_part(header, size):
    """Returns the CRC's register after a header and as many zeros as the payload has bytes.

    The register begins with ones, and is not inverted.
    """
    return zlib.crc32(covered(header) + bytes(size)) ^ 0xFFFFFFFF


def crc_of(payload):
    """Returns the CRC's register after a payload, from zero, not inverted.

    The ICRC of header and payload is ~(icrc_part(header, len(payload)) ^ crc_of(payload)).
    """
    return zlib.crc32(payload, 0xFFFFFFFF) ^ 0xFFFFFFFF


# -- Frames ------------------------------------------------------------------------------------------


def ones_sum(data):
    """Returns the ones' complement sum of the words of data (RFC 1071)."""
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def ip_checksum(header):
    """Returns the checksum of an IPv4 header of any length, whatever its own field holds."""
    return (0xFFFF - ones_sum(header[:10] + b"\0\0" + header[12:])).to_bytes(2, "big")


def packet(
    rng,
    connection,
    psn=None,
    opcode=SEND_MIDDLE,
    payload=None,
    extension=None,
    to="06:00:00:00:00:02",
    sender="06:00:00:00:00:01",
    faults=(),
    **fields,
):
    """Returns the frame of a packet on a connection. What is not given is random.

    psn: by default the first. payload: by default one MTU. extension: the headers between base
    transport header and payload. to, sender: MAC addresses. faults: of FAULTS.
    fields: pad, version, tos, ttl, resv (byte 4), qpn, source, ip, port (UDP's).
    """
    psn = connection.psn if psn is None else psn
    payload = rng.randbytes(connection.mtu) if payload is None else payload
    if extension is None:
        extension = rng.randbytes(HEADERS[CODES[opcode]] - 54 if opcode in CODES else 0)
    first = fields.get("pad", 0) << 4 | fields.get("version", 0) | rng.choice([0x00, 0x40, 0x80, 0xC0])
    transport = bytes([opcode, first]) + rng.randbytes(2)  # and the partition
    transport += bytes([fields.get("resv", rng.randrange(256))]) + fields.get("qpn", connection.qpn).to_bytes(3, "big")
    transport += bytes([rng.choice([0, 0x80])]) + (psn % (1 << 24)).to_bytes(3, "big")
    body = transport + extension + payload
    size = 8 + len(body) + 4
    udp = rng.randrange(0xC000, 0x10000).to_bytes(2, "big") + fields.get("port", PORT).to_bytes(2, "big")
    udp += (size + UDP_ERRORS.get(_one(faults, UDP_ERRORS), 0)).to_bytes(2, "big") + rng.choice([b"\0\0", rng.randbytes(2)])
    options = rng.randbytes(4 * rng.randrange(1, 11)) if "options" in faults else b""
    start = 0x45 + len(options) // 4
    start = rng.choice([0x35, 0x55, 0x65, 0x44, 0x40]) if "ip_version" in faults else start
    ip = bytearray([start, fields.get("tos", rng.randrange(256))])
    ip += (20 + len(options) + size + rng.choice([1, 4, 300]) * ("cut" in faults)).to_bytes(2, "big")
    ip += rng.randbytes(2) + b"\x40\0" + bytes([fields.get("ttl", rng.randrange(256)), 17, 0, 0])
    ip += fields.get("source", connection.source).to_bytes(4, "big") + fields.get("ip", connection.ip).to_bytes(4, "big")
    if "cut" in faults:  # UDP's length is that of IP
        udp = udp[:4] + (int.from_bytes(ip[2:4], "big") - 20).to_bytes(2, "big") + udp[6:]
    if "more_fragments" in faults:
        ip[6] |= 0x20
    if "offset" in faults:
        ip[6:8] = (int.from_bytes(ip[6:8], "big") | 1 << rng.randrange(13)).to_bytes(2, "big")
    if "tcp" in faults:
        ip[9] = rng.choice([6, 1, 16, 19])
    ip += options
    ip[10:12] = ip_checksum(ip)
    if "ip_checksum" in faults:
        ip[10 + rng.randrange(2)] ^= 1 << rng.randrange(8)
    ether = mac_bytes(to) + mac_bytes(sender)
    frame = ether + b"\x08\0" + bytes(ip) + udp + body
    plain = frame[:34] + frame[34 + len(options) :]
    check = icrc(plain)
    if "icrc" in faults:
        check = (int.from_bytes(check, "big") ^ 1 << rng.randrange(32)).to_bytes(4, "big")
    frame += check
    if "vlan" in faults:
        frame = ether + rng.choice(TAGS) + rng.randbytes(2) + frame[12:]
    if "ethertype" in faults:
        frame = frame[:12] + rng.choice([b"\x86\xdd", b"\x88\xb5", b"\x09\0", b"\x08\1"]) + frame[14:]
    return frame + rng.randbytes(max(0, 60 - len(frame)))


TAGS = (b"\x81\0", b"\x88\xa8")  # EtherTypes of VLAN tags

# What is added to UDP's length
UDP_ERRORS = {"udp_longer": 1, "udp_shorter": -4}

FAULTS = ["vlan", "options", "ethertype", "ip_version", "tcp", "more_fragments", "offset", "cut", "ip_checksum"]
FAULTS += ["udp_longer", "udp_shorter", "icrc"]


def _one(faults, names):
    """Returns the first of the faults that has one of the names."""
    return next((name for name in names if name in faults), None)


def mac_bytes(text):
    return bytes.fromhex(text.replace(":", ""))


def ip_number(text):
    return int(ipaddress.ip_address(text))


def leaving(header, payload, ecn, macs=None):
    """Returns the frame in which a sum leaves in a header: ROCE.md, section 4.

    ecn: the merged mark; its two bits replace those of IP. macs: the new MAC addresses, destination first,
    if they change.
    """
    frame = bytearray(header)
    if macs is not None:
        frame[:12] = mac_bytes(macs[0]) + mac_bytes(macs[1])
    frame[15] = frame[15] & 0xFC | ecn
    frame[24:26] = ip_checksum(frame[14:34])
    frame[40:42] = b"\0\0"
    frame += payload
    return bytes(frame) + icrc(frame)


# -- The model ---------------------------------------------------------------------------------------


def judge(frame, bad, largest, connections, ethernet=0):
    """Returns the verdict on a frame that came to an Ethernet port.

    bad: the MAC found a wrong FCS. Such a frame, a runt and one of more than `largest` bytes are dropped
    for that, before anything is read of them; their verdict here is NONE.
    """
    if bad or not 60 <= len(frame) <= largest:
        return Verdict(NONE)
    if hides(frame, connections):
        return Verdict(DROPPED, "roce_hidden")
    if frame[12:14] != b"\x08\0" or frame[23] != 17 or frame[14] & 15 > 5 or _number(frame, 36, 2) != PORT:
        return Verdict(NONE)
    receiver = _number(frame, 30, 4), _number(frame, 47, 3)
    connection = next((c for c in connections if (c.ip, c.qpn) == receiver), None)
    if connection is None or frame[42] in (ACKNOWLEDGE, CNP):
        return Verdict(NONE)
    reason = fault(frame, connection, ethernet)
    if reason is not None:
        return Verdict(DROPPED, reason)
    end = HEADERS[CODES[frame[42]]]
    header, payload = frame[:end], frame[end : end + connection.mtu]
    return Verdict(
        TAKEN,
        connection=connection,
        offset=(_number(frame, 51, 3) - connection.psn) % (1 << 24),
        ecn=frame[15] & 3,
        header=header,
        payload=payload,
        part=icrc_part(header, len(payload)),
    )


def hides(frame, connections):
    """Returns whether a frame hides its transport header, and could be of a connection."""
    tagged = frame[12:14] in TAGS
    at = 18 if tagged else 14  # of the IP header
    if frame[at - 2 : at] != b"\x08\0" or frame[at + 9] != 17:
        return False
    return (tagged or frame[at] & 15 > 5) and _number(frame, at + 16, 4) in [c.ip for c in connections]


def fault(frame, connection, ethernet):
    """Returns the reason for which a packet of a connection is dropped, None if it is not."""
    length = _number(frame, 16, 2)
    whole = frame[14] == 0x45 and ones_sum(frame[14:34]) == 0xFFFF and not _number(frame, 20, 2) & 0x3FFF
    sized = 44 <= length <= len(frame) - 14 and _number(frame, 38, 2) == length - 20
    if not (whole and sized and frame[43] & 15 == 0):
        return "roce_header"
    end = 14 + length - 4
    if icrc(frame[:end]) != frame[end : end + 4]:
        return "roce_icrc"
    if (_number(frame, 26, 4), ethernet) != (connection.source, connection.ethernet):
        return "roce_source"
    if frame[42] not in CODES:
        return "roce_opcode"
    if end - HEADERS[CODES[frame[42]]] != connection.mtu or frame[43] & 0x30:
        return "roce_length"
    return None


def _number(frame, at, size):
    return int.from_bytes(frame[at : at + size], "big")
