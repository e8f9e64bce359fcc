"""Protocol constants.

Printed from the tables in driver/wire; change them, then run: go test ./hwgen/tables -update
"""

# Header: place and width of each field, in bits
HDR_VERSION_LSB = 0x0
HDR_VERSION_BITS = 0x4
HDR_KIND_LSB = 0x4
HDR_KIND_BITS = 0x4
HDR_FLAGS_LSB = 0x8
HDR_FLAGS_BITS = 0x8
HDR_JOB_LSB = 0x10
HDR_JOB_BITS = 0x8
HDR_FORMAT_LSB = 0x18
HDR_FORMAT_BITS = 0x8
HDR_EPOCH_LSB = 0x20
HDR_EPOCH_BITS = 0x10
HDR_RANK_LSB = 0x30
HDR_RANK_BITS = 0x8
HDR_CODE_LSB = 0x38
HDR_CODE_BITS = 0x8
HDR_VID_LSB = 0x40
HDR_VID_BITS = 0x20
HDR_LENGTH_LSB = 0x60
HDR_LENGTH_BITS = 0x10
HDR_MASK_LSB = 0x70
HDR_MASK_BITS = 0x40
HDR_RECEIVERS_LSB = 0xB0
HDR_RECEIVERS_BITS = 0x40
HDR_BASE_BYTES = 0xE
HDR_MASK_BYTES = 0x16
HDR_MAX_BYTES = 0x1E

# Kinds
VERSION = 0x2
KIND_DATA = 0x1
KIND_ASK = 0x2
KIND_FINISH = 0x3
KIND_REGREAD = 0x4
KIND_REGWRITE = 0x5
KIND_RESULT = 0x8
KIND_REPLAY = 0x9
KIND_STATUS = 0xA
KIND_REPLY = 0xB

# Flags and ECN
FLAG_PARTIAL = 0x4
FLAG_NONFINITE = 0x8
ECN_NOT_ECT = 0x0
ECN_ECT1 = 0x1
ECN_ECT0 = 0x2
ECN_CE = 0x3

# Codes
CODE_DONE = 0x0
CODE_WAIT = 0x1
CODE_SEND = 0x2
CODE_BUSY = 0x3
CODE_OVERDUE = 0x4
CODE_BAD_VERSION = 0x10
CODE_BAD_KIND = 0x11
CODE_BAD_JOB = 0x12
CODE_BAD_EPOCH = 0x13
CODE_BAD_RANK = 0x14
CODE_BAD_FORMAT = 0x15
CODE_BAD_LENGTH = 0x16
CODE_LATE = 0x17
CODE_EARLY = 0x18
CODE_NOT_READY = 0x19
CODE_DUPLICATE = 0x1A
CODE_PAYLOAD_CRC = 0x1B
CODE_EVICTED = 0x1C
CODE_BAD_ADDRESS = 0x20
CODE_READ_ONLY = 0x21
CODE_BAD_PORTS = 0x22
CODE_BAD_CHUNK = 0x23
CODE_BAD_WINDOW = 0x24
CODE_STALE_EPOCH = 0x25
CODE_EPOCH_IN_USE = 0x26
CODE_NO_SLOTS = 0x27
CODE_BAD_DEADLINE = 0x28
CODE_BAD_MEMBER = 0x29
CODE_BAD_PARENT = 0x2A
CODE_BAD_RANKS = 0x2B
CODE_BAD_CONNECTION = 0x2C

# Formats, sums, shells
FORMAT_FP32 = 0x1
FORMAT_BF16 = 0x2
FORMAT_FP16 = 0x3
FORMAT_FP8E4M3 = 0x4
FORMAT_FP8E5M2 = 0x5
FORMAT_INT32 = 0x6
SUM_TREE = 0x1
SUM_FUSED = 0x2
SUM_EXACT = 0x3
SUM_MAX = 0x4
SHELL_NONE = 0x0
SHELL_STREAM = 0x1
SHELL_UDP = 0x2
SHELL_ROCE = 0x3

# Byte-stream link
SYNC = 0x425254A5
CRC_POLY = 0x1021
CRC_INIT = 0xFFFF
MAX_FRAME_BYTES = 0xFFF

# Registers: byte addresses
MAGIC = 0x5952545542495254
REG_MAGIC = 0x0
REG_VERSION = 0x8
REG_CONFIG_HASH = 0x10
REG_LANES = 0x18
REG_PORTS = 0x20
REG_FORMAT = 0x28
REG_SUM = 0x30
REG_SHELL = 0x38
REG_CHUNK = 0x40
REG_WINDOW = 0x48
REG_JOBS = 0x50
REG_LINK = 0x58
REG_LATENCY = 0x60
REG_OWNER = 0x100
REG_RELEASE = 0x108
REG_RESET = 0x110
REG_CYCLES = 0x118
REG_LAST_CODE = 0x120
REG_JOB_TOKEN = 0x200
REG_JOB_PORTS = 0x208
REG_JOB_CHUNK = 0x210
REG_JOB_WINDOW = 0x218
REG_JOB_DEADLINE = 0x220
REG_JOB_COMMIT = 0x228
REG_JOB_ABORT = 0x230
REG_JOB_STATE = 0x1000
REG_JOB_FINISHED = 0x1008
REG_JOB_MEMBERS = 0x1010
REG_JOB_SLOTS = 0x1018
REG_JOB_NONFINITE_IN = 0x1020
REG_JOB_NONFINITE_OUT = 0x1028
REG_JOB_OVERFLOW = 0x1030
REG_JOB_FIRST_IN = 0x1038
REG_JOB_FIRST_OUT = 0x1040
REG_JOB_FIRST_OVERFLOW = 0x1048
REG_JOB_EVICTED = 0x1050
REG_COUNTERS = 0x400
REG_JOBS_BASE = 0x1000
REG_JOB_LAG = 0x20000
REG_JOB_STRIDE = 0x100

# Counters: index from REG_COUNTERS, in registers
COUNT_FRAMES = 0x0
COUNT_STORED = 0x1
COUNT_ASKS = 0x2
COUNT_FINISHES = 0x3
COUNT_CHUNKS = 0x4
COUNT_BEATS = 0x5
COUNT_RESULTS = 0x6
COUNT_REPLAYS = 0x7
COUNT_STATUSES = 0x8
COUNT_NONFINITE_IN = 0x9
COUNT_NONFINITE_OUT = 0xA
COUNT_OVERFLOW = 0xB
COUNT_UNDECIDED = 0xC
COUNT_STALLED = 0xD
COUNT_CE = 0xE
COUNT_OVERDUE = 0xF
COUNT_PARTIAL = 0x10
COUNT_EVICTIONS = 0x11
COUNT_HUNTED = 0x12
COUNT_HEADER_CRC = 0x13
COUNT_LINK_DOWN = 0x14
COUNT_BAD_VERSION = 0x15
COUNT_BAD_KIND = 0x16
COUNT_BAD_JOB = 0x17
COUNT_BAD_EPOCH = 0x18
COUNT_BAD_RANK = 0x19
COUNT_BAD_FORMAT = 0x1A
COUNT_BAD_LENGTH = 0x1B
COUNT_LATE = 0x1C
COUNT_EARLY = 0x1D
COUNT_NOT_READY = 0x1E
COUNT_DUPLICATE = 0x1F
COUNT_PAYLOAD_CRC = 0x20
COUNT_EVICTED = 0x21
COUNTERS = 0x22

# Registers on a network: byte addresses
REG_LEASE = 0x128
REG_SOURCE = 0x130
REG_SOURCE_MAC = 0x138
REG_CARD_ADDRESS = 0x140
REG_CARD_MAC = 0x148
REG_MEMBER_ADDRESS = 0x800
REG_MEMBER_MAC = 0x808
REG_JOB_ADDRESS = 0x40000
REG_JOB_MAC = 0x40008
REG_MEMBER_STRIDE = 0x10
REG_TABLE_STRIDE = 0x400
MAX_LEASE = 0x10000000000
NETWORK_PORT = 0x5442

# Counters on a network: index from the first of them, in registers
COUNT_SHORT = 0x0
COUNT_DATAGRAM_CRC = 0x1
COUNT_STRANGER = 0x2
COUNT_LEASE = 0x3
COUNT_DROPPED = 0x4
COUNT_PASSED = 0x5
COUNT_FCS = 0x6
COUNT_RUNT = 0x7
COUNT_OVERSIZE = 0x8
COUNT_IP_HEADER = 0x9
COUNT_IP_CHECKSUM = 0xA
COUNT_FRAGMENT = 0xB
COUNT_IP_LENGTH = 0xC
COUNT_IP_ADDRESS = 0xD
COUNT_PROTOCOL = 0xE
COUNT_UDP_LENGTH = 0xF
COUNT_CHECKSUM = 0x10
COUNT_UDP_PORT = 0x11
REG_NETWORK_COUNTERS = 0x510
NETWORK_COUNTERS = 0x12

# Registers of trees of cards: byte addresses
REG_PARENT_ADDRESS = 0x150
REG_PARENT_MAC = 0x158
REG_JOB_PARENT = 0x238
REG_JOB_REPEAT = 0x240
REG_TREE_RANKS = 0x248
REG_MEMBER_RANKS = 0xC00
REG_JOB_UP = 0x1058
REG_JOB_TREE = 0x1060
REG_JOB_UP_REFUSAL = 0x1068
REG_JOB_RANKS = 0x44000
REG_RANKS_STRIDE = 0x8
REG_RANKS_TABLE_STRIDE = 0x200
MAX_REPEAT = 0x1000000
SHELL_PARENT = 0x100

# Counters of the up port: index from the first of them, in registers
COUNT_UP_SENT = 0x0
COUNT_UP_REPEATS = 0x1
COUNT_UP_TAKEN = 0x2
COUNT_UP_DROPPED = 0x3
COUNT_UP_REFUSED = 0x4
REG_UP_COUNTERS = 0x600
UP_COUNTERS = 0x5

# Registers of shell roce: byte addresses
REG_JOB_DISCONNECT = 0x250
REG_MEMBER_CONNECTION = 0x2000
REG_NEIGHBOUR_ADDRESS = 0x2400
REG_NEIGHBOUR_MAC = 0x2408
REG_JOB_CONNECTION = 0x48000
REG_CONNECTION_STRIDE = 0x8
REG_CONNECTION_TABLE_STRIDE = 0x200
REG_NEIGHBOUR_STRIDE = 0x10

# Counters of shell roce: index from the first of them, in registers
COUNT_ROCE_HEADER = 0x0
COUNT_ROCE_ICRC = 0x1
COUNT_ROCE_SOURCE = 0x2
COUNT_ROCE_OPCODE = 0x3
COUNT_ROCE_LENGTH = 0x4
COUNT_ROCE_HIDDEN = 0x5
COUNT_RELEASED_EARLY = 0x6
COUNT_RELAYED = 0x7
REG_CONNECTION_COUNTERS = 0x5A0
CONNECTION_COUNTERS = 0x8

# Name of a field: (lowest bit, bits)
FIELDS = {
    "version": (0, 4),
    "kind": (4, 4),
    "flags": (8, 8),
    "job": (16, 8),
    "format": (24, 8),
    "epoch": (32, 16),
    "rank": (48, 8),
    "code": (56, 8),
    "vid": (64, 32),
    "length": (96, 16),
    "mask": (112, 64),
    "receivers": (176, 64),
}

# Kind: (name, has mask, has receivers on a shared link, has payload, from the card)
KINDS = {
    1: ("data", False, False, True, False),
    2: ("ask", False, False, False, False),
    3: ("finish", False, False, False, False),
    4: ("regread", False, False, False, False),
    5: ("regwrite", True, False, False, False),
    8: ("result", True, True, True, True),
    9: ("replay", True, True, True, True),
    10: ("status", True, False, False, True),
    11: ("reply", True, False, False, True),
}

# Name: (number, bits, bits of the exponent, of the fraction, has infinities, NaN result)
FORMATS = {
    "fp32": (1, 32, 8, 23, True, 0x7FC00000),
    "bf16": (2, 16, 8, 7, True, 0x7FC0),
    "fp16": (3, 16, 5, 10, True, 0x7E00),
    "fp8e4m3": (4, 8, 4, 3, False, 0x7F),
    "fp8e5m2": (5, 8, 5, 2, True, 0x7E),
    "int32": (6, 32, 0, 0, False, 0x0),
}

# Sum: what a port that is no member contributes, in each format
IDENTITIES = {
    "tree": {"fp32": 0x80000000, "bf16": 0x8000, "fp16": 0x8000, "fp8e4m3": 0x80, "fp8e5m2": 0x80, "int32": 0x0},
    "fused": {"fp32": 0x80000000, "bf16": 0x8000, "fp16": 0x8000, "fp8e4m3": 0x80, "fp8e5m2": 0x80, "int32": 0x0},
    "exact": {"fp32": 0x80000000, "bf16": 0x8000, "fp16": 0x8000, "fp8e4m3": 0x80, "fp8e5m2": 0x80, "int32": 0x0},
    "max": {"fp32": 0xFF800000, "bf16": 0xFF80, "fp16": 0xFC00, "fp8e4m3": 0xFE, "fp8e5m2": 0xFC, "int32": 0x80000000},
}

CODES = {
    0: "done",
    1: "wait",
    2: "send",
    3: "busy",
    4: "overdue",
    16: "bad_version",
    17: "bad_kind",
    18: "bad_job",
    19: "bad_epoch",
    20: "bad_rank",
    21: "bad_format",
    22: "bad_length",
    23: "late",
    24: "early",
    25: "not_ready",
    26: "duplicate",
    27: "payload_crc",
    28: "evicted",
    32: "bad_address",
    33: "read_only",
    34: "bad_ports",
    35: "bad_chunk",
    36: "bad_window",
    37: "stale_epoch",
    38: "epoch_in_use",
    39: "no_slots",
    40: "bad_deadline",
    41: "bad_member",
    42: "bad_parent",
    43: "bad_ranks",
    44: "bad_connection",
}

# Name: (address, access, covered by CONFIG_HASH)
REGISTERS = {
    "MAGIC": (0x0, "RO", False),
    "VERSION": (0x8, "RO", False),
    "CONFIG_HASH": (0x10, "RO", False),
    "LANES": (0x18, "RO", True),
    "PORTS": (0x20, "RO", True),
    "FORMAT": (0x28, "RO", True),
    "SUM": (0x30, "RO", True),
    "SHELL": (0x38, "RO", True),
    "CHUNK": (0x40, "RO", True),
    "WINDOW": (0x48, "RO", True),
    "JOBS": (0x50, "RO", True),
    "LINK": (0x58, "RO", True),
    "LATENCY": (0x60, "RO", True),
    "OWNER": (0x100, "RW", False),
    "RELEASE": (0x108, "WO", False),
    "RESET": (0x110, "WO", False),
    "CYCLES": (0x118, "RO", False),
    "LAST_CODE": (0x120, "RO", False),
    "JOB_TOKEN": (0x200, "RW", False),
    "JOB_PORTS": (0x208, "RW", False),
    "JOB_CHUNK": (0x210, "RW", False),
    "JOB_WINDOW": (0x218, "RW", False),
    "JOB_DEADLINE": (0x220, "RW", False),
    "JOB_COMMIT": (0x228, "WO", False),
    "JOB_ABORT": (0x230, "WO", False),
    "JOB_STATE": (0x1000, "RO", False),
    "JOB_FINISHED": (0x1008, "RO", False),
    "JOB_MEMBERS": (0x1010, "RO", False),
    "JOB_SLOTS": (0x1018, "RO", False),
    "JOB_NONFINITE_IN": (0x1020, "RO", False),
    "JOB_NONFINITE_OUT": (0x1028, "RO", False),
    "JOB_OVERFLOW": (0x1030, "RO", False),
    "JOB_FIRST_IN": (0x1038, "RO", False),
    "JOB_FIRST_OUT": (0x1040, "RO", False),
    "JOB_FIRST_OVERFLOW": (0x1048, "RO", False),
    "JOB_EVICTED": (0x1050, "RO", False),
}

# The same for cards on a network; those of the first port and job
NETWORK_REGISTERS = {
    "LEASE": (0x128, "RW", False),
    "SOURCE": (0x130, "RO", False),
    "SOURCE_MAC": (0x138, "RO", False),
    "CARD_ADDRESS": (0x140, "RW", False),
    "CARD_MAC": (0x148, "RW", False),
    "MEMBER_ADDRESS": (0x800, "RW", False),
    "MEMBER_MAC": (0x808, "RW", False),
    "JOB_ADDRESS": (0x40000, "RO", False),
    "JOB_MAC": (0x40008, "RO", False),
}

# The same of trees of cards; those of the first port and job
TREE_REGISTERS = {
    "PARENT_ADDRESS": (0x150, "RW", False),
    "PARENT_MAC": (0x158, "RW", False),
    "JOB_PARENT": (0x238, "RW", False),
    "JOB_REPEAT": (0x240, "RW", False),
    "TREE_RANKS": (0x248, "RW", False),
    "MEMBER_RANKS": (0xC00, "RW", False),
    "JOB_UP": (0x1058, "RO", False),
    "JOB_TREE": (0x1060, "RO", False),
    "JOB_UP_REFUSAL": (0x1068, "RO", False),
    "JOB_RANKS": (0x44000, "RO", False),
}

# The same for shell roce; those of the first port and job
CONNECTION_REGISTERS = {
    "JOB_DISCONNECT": (0x250, "WO", False),
    "MEMBER_CONNECTION": (0x2000, "RW", False),
    "NEIGHBOUR_ADDRESS": (0x2400, "RW", False),
    "NEIGHBOUR_MAC": (0x2408, "RW", False),
    "JOB_CONNECTION": (0x48000, "RO", False),
}

# Counters in order: (name, code of the refusal it counts, or 0)
COUNTER_NAMES = [
    ("frames", 0),
    ("stored", 0),
    ("asks", 0),
    ("finishes", 0),
    ("chunks", 0),
    ("beats", 0),
    ("results", 0),
    ("replays", 0),
    ("statuses", 0),
    ("nonfinite_in", 0),
    ("nonfinite_out", 0),
    ("overflow", 0),
    ("undecided", 0),
    ("stalled", 0),
    ("ce", 0),
    ("overdue", 0),
    ("partial", 0),
    ("evictions", 0),
    ("hunted", 0),
    ("header_crc", 0),
    ("link_down", 0),
    ("bad_version", 16),
    ("bad_kind", 17),
    ("bad_job", 18),
    ("bad_epoch", 19),
    ("bad_rank", 20),
    ("bad_format", 21),
    ("bad_length", 22),
    ("late", 23),
    ("early", 24),
    ("not_ready", 25),
    ("duplicate", 26),
    ("payload_crc", 27),
    ("evicted", 28),
]

# Counters on a network, in order
NETWORK_COUNTER_NAMES = [
    "short",
    "datagram_crc",
    "stranger",
    "lease",
    "dropped",
    "passed",
    "fcs",
    "runt",
    "oversize",
    "ip_header",
    "ip_checksum",
    "fragment",
    "ip_length",
    "ip_address",
    "protocol",
    "udp_length",
    "checksum",
    "udp_port",
]

# Counters of the up port, in order
UP_COUNTER_NAMES = [
    "up_sent",
    "up_repeats",
    "up_taken",
    "up_dropped",
    "up_refused",
]

# Counters of shell roce, in order, after those on a network
CONNECTION_COUNTER_NAMES = [
    "roce_header",
    "roce_icrc",
    "roce_source",
    "roce_opcode",
    "roce_length",
    "roce_hidden",
    "released_early",
    "relayed",
]
