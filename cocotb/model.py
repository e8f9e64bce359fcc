"""A model of a card's replies, written from driver/wire/SPEC.md alone, for comparison with the gateware.

It shares only the tables (zwire.py) with the Go model, so a misreading of the specification in one of the three
(gateware, Go, Python) shows as a difference. arithmetic.py computes the sums; the CRC is bitwise.

Card processes one packet at a time and settles after each: before the next packet, it finishes the reduction that
the packet completed and sends the results owed. Benches that compare with it wait until the gateware is quiet.
For events that overlap in time, the benches themselves check the same sums and the rules.

The model has no clock. The bench decides when a slot is overdue, and checks the time; it also counts lags.
"""

import binascii

import zwire
from arithmetic import Arithmetic

SYNC = zwire.SYNC.to_bytes(4, "little")

# Bytes of an element, by the number of its format.
ELEMENT_BYTES = {row[0]: row[1] // 8 for row in zwire.FORMATS.values()}

# The merge's order, from its identity to what no other mark overrides.
ECN_ORDER = [zwire.ECN_ECT1, zwire.ECN_ECT0, zwire.ECN_NOT_ECT, zwire.ECN_CE]

# What is counted of a job (7.7), and kept when it has ended.
JOB_COUNTS = [
    *("JOB_NONFINITE_IN", "JOB_NONFINITE_OUT", "JOB_OVERFLOW"),
    *("JOB_FIRST_IN", "JOB_FIRST_OUT", "JOB_FIRST_OVERFLOW"),
]

EMPTY, COLLECTING, REDUCED = "empty", "collecting", "reduced"

# What became of a data packet (section 5, "Verdict").
STORED, REPEATED, OWED, REFUSED, FLUSHED = range(5)

# The histogram of each rank of a job (JOB_LAG).
LAG_BUCKETS = 16
LAG_JOB_STRIDE, LAG_RANK_STRIDE = 0x2000, 0x80


# Marks (section 5)


def merge_ecn(marks):
    """Returns the ECN mark of a result, given its contributions' marks."""
    return max(marks, key=ECN_ORDER.index)


# Header and frame (sections 2 and 3)


def header_bytes(kind, shared):
    """Returns the length in bytes of a kind's header, without its CRC."""
    _, mask, receivers, _, _ = zwire.KINDS[kind]
    return 14 + 8 * mask + 8 * (receivers and shared)


def pack(header, size):
    """Returns a header's bytes, given a dict of fields, 0 if absent; size is 14, 22 or 30."""
    number = 0
    for name, value in header.items():
        lsb, bits = zwire.FIELDS[name]
        assert 0 <= value < 1 << bits, f"{name} = {value} has more than {bits} bits"
        number |= value << lsb
    return number.to_bytes(30, "little")[:size]


def unpack(raw):
    """Returns the fields of a header's bytes."""
    number = int.from_bytes(raw, "little")
    return {
        name: number >> lsb & ((1 << bits) - 1)
        for name, (lsb, bits) in zwire.FIELDS.items()
        if lsb < 8 * len(raw)
    }


def crc16(data, start=0xFFFF):
    """Returns the CRC-16/CCITT-FALSE."""
    return binascii.crc_hqx(data, start)


def frame(header, payload=b""):
    """Returns a frame's bytes on the shared link. header["kind"] determines whether it has a payload."""
    out, crc = frame_header(header, header_bytes(header["kind"], shared=True))
    if zwire.KINDS[header["kind"]][3]:
        out += payload + crc16(payload, crc).to_bytes(2, "big")
    return out


def frame_header(header, size):
    """Returns a frame's bytes including its header's CRC, and that CRC; size is the header's."""
    raw = pack({"version": zwire.VERSION, **header}, size)
    crc = crc16(raw)
    return SYNC + raw + crc.to_bytes(2, "big"), crc


def from_host(kind):
    """Returns whether hosts send that kind."""
    return kind in zwire.KINDS and not zwire.KINDS[kind][4]


def parse_frames(data):
    """Splits a card's bytes into (header, payload) pairs; raises an error for any defect."""
    out, rest = whole_frames(data)
    assert not rest, f"a card sent a part of a frame: {rest.hex()}"
    return out


def whole_frames(data):
    """Like parse_frames, but also returns the bytes of an incomplete last frame."""
    out = []
    while (end := _frame_end(data)) is not None and len(data) >= end:
        out.append(_parse(data[:end]))
        data = data[end:]
    return out, data


def _frame_end(data):
    """Returns the length of the first frame in a card's bytes; None while it is unknown."""
    assert SYNC.startswith(data[:4]), f"no sync word but {data[:4].hex()} in a card's bytes"
    if len(data) < 5:
        return None
    kind = data[4] >> 4
    assert kind in zwire.KINDS and zwire.KINDS[kind][4], f"a card sent kind {kind}"
    end = 4 + header_bytes(kind, shared=True) + 2
    if len(data) < end or not zwire.KINDS[kind][3]:
        return end
    header = unpack(data[4 : end - 2])
    return end + ELEMENT_BYTES[header["format"]] * header["length"] + 2


def _parse(data):
    """Returns the header and payload of a card's frame."""
    size = header_bytes(data[4] >> 4, shared=True)
    raw, rest = data[4 : 4 + size], data[4 + size :]
    crc = crc16(raw)
    assert rest[:2] == crc.to_bytes(2, "big"), f"a card sent a wrong header CRC: {raw.hex()}"
    payload = rest[2:-2]
    assert not rest[2:] or rest[-2:] == crc16(payload, crc).to_bytes(2, "big"), "a card sent a wrong payload CRC"
    return unpack(raw), payload


class Card:
    """A card, and the jobs on it.

    packet() processes a packet from a port; it and register() return the packets that the card sends until it is
    quiet: a list of (header, payload, mask of ports). receive() processes link bytes. Payloads are bytes.
    shared: all ranks share one link, so results have receivers.
    """

    def __init__(self, lanes, ports, chunk, window, ident, shared, arithmetic=None, jobs=1):
        """ident: values of registers that the model cannot derive (LINK, LATENCY, CONFIG_HASH, ...).

        arithmetic: formats and sum, by default the fp32 tree. jobs: number of jobs at a time.
        """
        self.lanes, self.ports, self.chunk, self.window = lanes, ports, chunk, window
        self.arithmetic = arithmetic or Arithmetic()
        self.shared = shared
        self.values = {
            "MAGIC": zwire.MAGIC,
            "VERSION": 2,
            "LANES": lanes,
            "PORTS": ports,
            **self.arithmetic.idents,
            "SHELL": zwire.SHELL_STREAM if shared else zwire.SHELL_NONE,
            "CHUNK": chunk,
            "WINDOW": window,
            "JOBS": jobs,
            "CYCLES": 0,  # no clock here
            **ident,
        }
        self.values["CONFIG_HASH"] = config_hash(self.values)
        self.counters = {name: 0 for name, _ in zwire.COUNTER_NAMES}
        self.owner = self.last_code = 0
        self.staged = dict.fromkeys(["JOB_TOKEN", "JOB_PORTS", "JOB_CHUNK", "JOB_WINDOW", "JOB_DEADLINE"], 0)
        self.blocks = [Block(number, ports) for number in range(jobs)]
        self.link = b""  # bytes received that are no whole frame yet
        self.judged = False  # the header at their beginning has been counted
        self.verdict = None  # on the last data packet: port, slot, VID, result, code

    # Link (sections 3 and 6)

    def receive(self, data):
        """Processes link bytes; returns the card's packets for the frames that they complete."""
        self.link += data
        sent = []
        while (step := self._next_frame()) is not None:
            sent += step
        return sent

    def link_down(self):
        """The host disconnects."""
        self.link = b""
        self.judged = False
        self._end_all()
        self.counters["link_down"] += 1

    def _next_frame(self):
        """Processes the next frame, or skips a byte; returns what the card sends, or None if more bytes are needed."""
        if len(self.link) < 4:
            if SYNC.startswith(self.link):
                return None
            return self._hunt(1)
        if self.link[:4] != SYNC:
            return self._hunt(1)
        if len(self.link) < 5:
            return None
        kind = self.link[4] >> 4
        size = header_bytes(kind, shared=True) if from_host(kind) else 14
        if len(self.link) < 4 + size + 2:
            return None
        raw = self.link[4 : 4 + size]
        crc = crc16(raw)
        if self.link[4 + size : 6 + size] != crc.to_bytes(2, "big"):
            self.counters["header_crc"] += 1
            return self._hunt(1)
        self.counters["frames"] += not self.judged
        self.judged = True
        header = unpack(raw)
        refusal = self._frame_refusal(header)
        element = self.arithmetic.format.bytes
        payload_size = element * header["length"] if kind == zwire.KIND_DATA and not refusal else 0
        end = 6 + size + (payload_size + 2 if payload_size else 0)
        if len(self.link) < end:
            return None
        payload = self.link[6 + size : 6 + size + payload_size]
        trailer = self.link[6 + size + payload_size : end]
        self.link = self.link[end:]
        self.judged = False
        if refusal:
            self.counters[refusal] += 1
            return []
        if kind in (zwire.KIND_REGREAD, zwire.KIND_REGWRITE):
            return [self.register(header)]
        bad = payload_size and trailer != crc16(payload, crc).to_bytes(2, "big")
        members = self.block(header).members
        port = members[header["rank"]] if header["rank"] < len(members) else None
        return self.packet(port, header, payload, bad)

    def _hunt(self, count):
        self.counters["hunted"] += count
        self.link = self.link[count:]
        return []

    def _frame_refusal(self, header):
        if header["version"] != zwire.VERSION:
            return "bad_version"
        if not from_host(header["kind"]):
            return "bad_kind"
        if header["kind"] == zwire.KIND_DATA and not 1 <= header["length"] <= self.chunk:
            return "bad_length"
        return None

    # Registers (section 4)

    def register(self, header):
        """Returns the reply to a register access: (header, payload, None)."""
        name, block = self._register_at(header["vid"])
        if name is None:
            code, value = zwire.CODE_BAD_ADDRESS, 0
        elif header["kind"] == zwire.KIND_REGREAD:
            code, value = zwire.CODE_DONE, self._read(name, block)
        else:
            code = self._write(name, header["mask"], block)
            value = self._read(name, block) if code == zwire.CODE_DONE else 0
        if header["kind"] == zwire.KIND_REGWRITE:
            self.last_code = code
        reply = {"kind": zwire.KIND_REPLY, "code": code, "vid": header["vid"], "length": header["length"]}
        return ({**reply, "mask": value}, b"", None)

    def _register_at(self, address):
        """Returns the register's name, or None; and its job's block, if it has one."""
        for name, (at, _, _) in zwire.REGISTERS.items():
            for block in self.blocks if of_a_job(name) else [None]:
                if address == self.address_of(name, block.number if block else 0):
                    return name, block
        if self._is_lag(address):
            return "JOB_LAG", None
        return next(((name, None) for name in self.counters if address == self.address_of(name)), (None, None))

    def address_of(self, name, job=0):
        """Returns the byte address of a register or a counter of this card."""
        return address_of(name, job)

    def _is_lag(self, address):
        """Returns whether the address is a histogram's count, for a job and a rank that the card supports."""
        job, place = divmod(address - zwire.REG_JOB_LAG, LAG_JOB_STRIDE)
        rank, bucket = divmod(place, LAG_RANK_STRIDE)
        return 0 <= job < len(self.blocks) and rank < self.ports and bucket % 8 == 0

    def _read(self, name, block):
        if name in self.counters:
            return self.counters[name] & 0xFFFFFFFF
        if name == "JOB_LAG":
            return 0  # no clock here
        if zwire.REGISTERS[name][1] == "WO":
            return 0
        if name in self.staged:
            return self.staged[name]
        if block is not None:
            return block.read(name)
        if name == "OWNER":
            return self.owner
        if name == "LAST_CODE":
            return self.last_code
        return self.values[name]

    def _write(self, name, value, block):
        if name in self.staged:
            self.staged[name] = value
            return zwire.CODE_DONE
        if name == "OWNER":
            self.owner = self.owner or value
            return zwire.CODE_DONE
        if name == "RELEASE":
            return self._release(value)
        if name == "RESET":
            return self._reset(value)
        if name == "JOB_COMMIT":
            return self._commit(value & 0xFFFFFFFF, value >> 32 & 0xFFFF, value >> 48 & 0xFF)
        if name == "JOB_ABORT":
            return self._abort(value >> 32 & 0xFFFF, value >> 48 & 0xFF)
        return zwire.CODE_READ_ONLY

    def _release(self, token):
        if self.owner == 0:
            return zwire.CODE_DONE
        if token != self.owner:
            return zwire.CODE_BUSY
        self._end_all()
        return zwire.CODE_DONE

    def _reset(self, token):
        if self.owner not in (0, token):
            return zwire.CODE_BUSY
        self._end_all()
        self.staged = dict.fromkeys(self.staged, 0)
        self.counters = dict.fromkeys(self.counters, 0)
        return zwire.CODE_DONE

    def _commit(self, first, epoch, number):
        names = ("JOB_PORTS", "JOB_CHUNK", "JOB_WINDOW", "JOB_DEADLINE")
        ports, chunk, window, deadline = (self.staged[n] for n in names)
        if self.owner == 0 or self.staged["JOB_TOKEN"] != self.owner:
            return zwire.CODE_BUSY
        if number >= len(self.blocks):
            return zwire.CODE_BAD_JOB
        block = self.blocks[number]
        if block.job is not None and block.last_epoch == epoch:
            same = block.job.parameters == (ports, chunk, window, first, deadline)
            same = same and self._members_same(number, ports)
            return zwire.CODE_DONE if same else zwire.CODE_EPOCH_IN_USE
        if block.last_epoch is not None:
            ahead = (epoch - block.last_epoch) % (1 << 16)
            if ahead == 0 or ahead >= 1 << 15:
                return zwire.CODE_STALE_EPOCH
        if ports == 0 or ports >> self.ports:
            return zwire.CODE_BAD_PORTS
        if not self._members_whole(ports):
            return zwire.CODE_BAD_MEMBER
        refusal = self._tree_refusal(ports, deadline)
        if refusal is not None:
            return refusal
        if chunk == 0 or chunk % self.lanes or chunk > self.chunk:
            return zwire.CODE_BAD_CHUNK
        if window == 0 or window & (window - 1) or window > self.window:
            return zwire.CODE_BAD_WINDOW
        if deadline >> 33 or (deadline >> 32 and not deadline & 0xFFFFFFFF):
            return zwire.CODE_BAD_DEADLINE
        base = self._free_slots(2 * window, block)
        if base is None:
            return zwire.CODE_NO_SLOTS
        self._set_up(block, epoch, Job(ports, chunk, window, first, deadline, base))
        return zwire.CODE_DONE

    def _set_up(self, block, epoch, job):
        """Starts a job under the block's number."""
        block.set_up(epoch, job)

    def _members_whole(self, ports):
        """Returns whether the card can reach the members at these ports."""
        return True

    def _members_same(self, number, ports):
        """Returns whether the members that are staged are those of the job."""
        return True

    def _tree_refusal(self, ports, deadline):
        """Returns the code of the check that fails in what is staged of a tree of cards, or None."""
        return None

    def _free_slots(self, count, block):
        """Returns the first of that many free slots for the block's next job, or None."""
        others = [b.job for b in self.blocks if b is not block and b.job is not None]
        used = {job.base + s for job in others for s in range(len(job.slots))}
        for base in range(0, 2 * self.window, count):
            if used.isdisjoint(range(base, base + count)):
                return base
        return None

    def _abort(self, epoch, number):
        if self.owner == 0 or self.staged["JOB_TOKEN"] != self.owner:
            return zwire.CODE_BUSY
        if number >= len(self.blocks):
            return zwire.CODE_BAD_JOB
        block = self.blocks[number]
        if block.job is None:
            return zwire.CODE_DONE
        if epoch != block.last_epoch:
            return zwire.CODE_BAD_EPOCH
        block.job = None
        return zwire.CODE_DONE

    def _end_all(self):
        """Clears the owner and ends all jobs."""
        self.owner = 0
        for block in self.blocks:
            block.job = None

    # Packets of a job (section 5)

    def block(self, header):
        """Returns the block of the packet's job; an unknown number counts by its low bits."""
        return self.blocks[header["job"] % len(self.blocks)]

    def packet(self, port, header, payload=b"", bad=False):
        """Processes a port's packet (None: no port has the rank); returns what the card sends.

        bad: its payload failed the CRC. The list includes answered refusals; a card may omit one within 1,024
        cycles of another.
        """
        slot, stored = self._slot_number(header), self.counters["stored"]
        refusal = self._check(port, header, payload, bad)
        if refusal is None:
            handle = {
                zwire.KIND_DATA: self._data,
                zwire.KIND_ASK: self._ask,
                zwire.KIND_FINISH: self._finish,
            }[header["kind"]]
            refusal, sent = handle(self.block(header), header, payload)
        else:
            sent = []
        if refusal is not None:
            self.counters[refusal] += 1
            if self._answers(port, header, refusal):
                sent = [self._status(header, code_of(refusal))] + sent
        if header["kind"] == zwire.KIND_DATA:
            self.verdict = (port, slot, header["vid"], *self._verdict(refusal, self.counters["stored"] > stored))
        return sent + self._send_owed()

    def _slot_number(self, header):
        """Returns the card's number of the packet's slot; 0 if its job is not set up."""
        job = self.block(header).job if header["job"] < len(self.blocks) else None
        return job.base + header["vid"] % len(job.slots) if job else 0

    def _verdict(self, refusal, stored):
        """Returns the result and the code of the verdict on a data packet."""
        if refusal is None:
            return (STORED, zwire.CODE_DONE) if stored else (OWED, code_of("duplicate"))
        return REPEATED if refusal == "duplicate" else REFUSED, code_of(refusal)

    def _check(self, port, header, payload, bad):
        """Returns the first failed check, or None."""
        block = self.block(header)
        if header["version"] != zwire.VERSION:
            return "bad_version"
        if header["kind"] not in (zwire.KIND_DATA, zwire.KIND_ASK, zwire.KIND_FINISH):
            return "bad_kind"
        confirms = block.all_finished and header["kind"] == zwire.KIND_FINISH and header["epoch"] == block.last_epoch
        if header["job"] >= len(self.blocks) or (block.job is None and not confirms):
            return "bad_job"
        if header["epoch"] != block.last_epoch:
            return "bad_epoch"
        if not self._rank_belongs(port, header):
            return "bad_rank"
        if header["rank"] in block.evicted:
            return "evicted"
        if header["kind"] != zwire.KIND_DATA:
            return None
        if header["format"] != self.arithmetic.format.number:
            return "bad_format"
        chunk = block.job.chunk
        if header["length"] != chunk or len(payload) != self.arithmetic.format.bytes * chunk:
            return "bad_length"
        return "payload_crc" if bad else None

    def _rank_belongs(self, port, header):
        members = self.block(header).members
        return header["rank"] < len(members) and members[header["rank"]] == port

    def _answers(self, port, header, refusal):
        return refusal not in ("bad_rank", "payload_crc") and self._rank_belongs(port, header)

    def _status(self, header, code, mask=0):
        self.counters["statuses"] += 1
        status = {"kind": zwire.KIND_STATUS, "code": code, "mask": mask}
        for name in ("job", "epoch", "rank", "vid"):
            status[name] = header[name]
        return (status, b"", 1 << self.block(header).members[header["rank"]])

    def _data(self, block, header, payload):
        job, rank, vid = block.job, header["rank"], header["vid"]
        proven = job.slot(vid - job.window)
        if proven.vid == (vid - job.window) % 2**32 and proven.state == REDUCED:
            proven.done.add(rank)
        slot = job.slot(vid)
        if vid == slot.vid:
            return self._data_at(block, slot, header, payload)
        if vid == (slot.vid + 2 * job.window) % 2**32:
            slot.done.add(rank)
            if slot.state == EMPTY or (slot.state == REDUCED and block.left <= slot.done):
                slot.turn_over(vid)
                return self._data_at(block, slot, header, payload)
            slot.refused |= slot.state == REDUCED
            return "not_ready", []
        return _behind_or_ahead(vid, slot), []

    def _data_at(self, block, slot, header, payload):
        """Processes data with the slot's VID."""
        rank = header["rank"]
        if slot.state == EMPTY:
            return "late", []
        if slot.state == REDUCED:
            slot.owed.add(rank)  # which is the answer: no status
            self.counters["duplicate"] += 1
            return None, []
        if rank in slot.held:
            return "duplicate", []
        bits = self.arithmetic.format.elements(payload)
        slot.held[rank] = (bits, header["flags"] & zwire.ECN_CE)
        self.counters["stored"] += 1
        block.stored[rank] += 1
        self.counters["ce"] += int(header["flags"] & 3 == zwire.ECN_CE)
        strange = int(self.arithmetic.format.nonfinite(bits).any())
        self._count(block, "nonfinite_in", "IN", strange, slot.vid | rank << 32)
        if block.left <= slot.held.keys():
            self._reduce(block, slot)
        return None, []

    def _reduce(self, block, slot):
        inputs = [None] * self.ports
        for rank, (bits, _) in slot.held.items():
            inputs[block.members[rank]] = bits
        total, over = self.arithmetic.sum(inputs)
        flags = merge_ecn([mark for _, mark in slot.held.values()])
        if any(self.arithmetic.format.nonfinite(bits).any() for bits, _ in slot.held.values()):
            flags |= zwire.FLAG_NONFINITE
        if len(slot.held) < block.job.ranks:
            flags |= zwire.FLAG_PARTIAL
            self.counters["partial"] += 1
        slot.result = (flags, self.arithmetic.result.payload(total))
        slot.state = REDUCED
        slot.owed = set(block.left)
        self.counters["chunks"] += 1
        self.counters["beats"] += block.job.chunk // self.lanes
        self._count(block, "nonfinite_out", "OUT", int(self.arithmetic.result.nonfinite(total).sum()), slot.vid)
        self._count(block, "overflow", "OVERFLOW", int(over.sum()), slot.vid)

    def _count(self, block, counter, first, count, place):
        """Increments the counters of the card and of the job, which also records the first occurrence."""
        self.counters[counter] += count
        held = block.found["JOB_" + counter.upper()]
        if count and not held:
            block.found["JOB_FIRST_" + first] = 1 << 63 | place
        block.found["JOB_" + counter.upper()] = min(held + count, 2**32 - 1)

    def _send_owed(self):
        """Sends the results owed, one packet for all receivers of a slot's result."""
        sent = []
        for block, slot in [(b, s) for b in self.blocks if b.job for s in b.job.slots if s.owed]:
            kind = zwire.KIND_REPLAY if slot.owed & slot.sent else zwire.KIND_RESULT
            self.counters["replays" if kind == zwire.KIND_REPLAY else "results"] += 1
            flags, payload = slot.result
            header = {
                "kind": kind,
                "flags": flags,
                "job": block.number,
                "format": self.arithmetic.result.number,
                "epoch": block.last_epoch,
                "vid": slot.vid,
                "length": block.job.chunk,
                "mask": self._result_mask(block, slot),
            }
            if self.shared:
                header["receivers"] = mask_of(slot.owed)
            sent.append((header, payload, sum(1 << block.members[r] for r in slot.owed)))
            slot.sent |= slot.owed
            slot.owed = set()
        return sent

    def _mask(self, block, ranks):
        """Returns the mask that names these ranks of the job in results and statuses."""
        return mask_of(ranks)

    def _result_mask(self, block, slot):
        """Returns the mask of a slot's result."""
        return self._mask(block, slot.held)

    def _ask(self, block, header, _):
        job, rank, vid = block.job, header["rank"], header["vid"]
        slot = job.slot(vid)
        sent = []
        if vid == slot.vid:
            if slot.state == EMPTY:
                return "late", []
            if slot.state == REDUCED:
                slot.owed.add(rank)
            else:
                code = zwire.CODE_WAIT if rank in slot.held else zwire.CODE_SEND
                sent = [self._status(header, code, self._mask(block, block.left - slot.held.keys()))]
        elif vid == (slot.vid + 2 * job.window) % 2**32:
            sent = [self._status(header, zwire.CODE_SEND, self._mask(block, block.left))]
        else:
            return _behind_or_ahead(vid, slot), []
        self.counters["asks"] += 1
        return None, sent

    def _finish(self, block, header, _):
        self.counters["finishes"] += 1
        sent = [self._status(header, zwire.CODE_DONE)]
        if block.job is not None:
            block.job.finished.add(header["rank"])
            block.end_when_all_finished()
        return None, sent

    # Deadlines (section 5)

    def overdue(self, number, vid):
        """Processes an overdue slot of the job's chunk; returns what the card sends.

        The bench knows whether the time has come.
        """
        block = self.blocks[number]
        slot = block.job.slot(vid)
        assert slot.vid == vid and block.may_be_overdue(slot), f"VID {vid} of job {number} waits for nobody"
        self.counters["overdue"] += 1
        missing = block.waits_for(slot)
        if not block.job.partial_sums:
            sent = self._notices(block, slot.vid, zwire.CODE_OVERDUE, block.left - missing, self._mask(block, missing))
        elif slot.state == COLLECTING:
            self._reduce(block, slot)
            sent = []
        else:
            self.counters["evictions"] += 1
            block.evicted |= missing
            evicted = self._mask(block, block.evicted)
            sent = self._notices(block, slot.vid, zwire.CODE_EVICTED, range(block.job.ranks), evicted)
            block.end_when_all_finished()
        return sent + self._send_owed()

    def _notices(self, block, vid, code, ranks, mask):
        """Returns an unsolicited status about the VID for each of the ranks."""
        about = {"job": block.number, "epoch": block.last_epoch, "vid": vid}
        return [self._status(about | {"rank": rank}, code, mask) for rank in ranks]


class Block:
    """The state of one job number: the running job, if any, and the remains of the last one."""

    def __init__(self, number, ports):
        self.number = number
        self.job = None  # the Job that is set up
        self.last_epoch = None
        self.all_finished = False  # so the last one ended
        self.members = list(range(ports))  # port of each rank
        self._forget()

    def _forget(self):
        """Clears the remains of an ended job."""
        self.found = dict.fromkeys(JOB_COUNTS, 0)
        self.evicted = set()
        self.stored = [0] * len(self.members)  # contributions of each rank, which is what its JOB_LAG add up to

    def set_up(self, epoch, job):
        """Starts a job, which replaces the last one."""
        self.job, self.last_epoch, self.all_finished = job, epoch, False
        self.members = job.members
        self._forget()

    @property
    def left(self):
        """Returns the job's ranks that were not evicted."""
        return set(range(len(self.members))) - self.evicted

    def waits_for(self, slot):
        """Returns the ranks that a slot waits for: to contribute, or to receive its result."""
        return self.left - (slot.held.keys() if slot.state == COLLECTING else slot.done)

    def may_be_overdue(self, slot):
        """Returns whether the slot has a running deadline."""
        if not self.job.deadline:
            return False
        if slot.state == COLLECTING:
            return bool(self.waits_for(slot)) or self.job.partial_sums
        return slot.state == REDUCED and slot.refused and bool(self.waits_for(slot))

    def end_when_all_finished(self):
        """Ends the job if all its ranks have finished."""
        if self.left <= self.job.finished:
            self.job = None
            self.all_finished = True

    def read(self, name):
        """Returns the value of a register in the block."""
        if name == "JOB_STATE":
            epoch = 0 if self.last_epoch is None else 2 | self.last_epoch << 16
            return int(self.job is not None) | epoch | self.number << 32
        if name == "JOB_FINISHED":
            return mask_of(self.job.finished) if self.job else 0
        if name == "JOB_MEMBERS":
            return mask_of(self.members)
        if name == "JOB_SLOTS":
            return self.job.base | len(self.job.slots) << 16 if self.job else 0
        if name == "JOB_EVICTED":
            return mask_of(self.evicted)
        return self.found[name]


class Job:
    """A job that is set up, and its slots."""

    def __init__(self, ports, chunk, window, first, deadline, base):
        """deadline: as in JOB_DEADLINE. base: the card's number of its first slot."""
        self.parameters = (ports, chunk, window, first, deadline)
        self.deadline, self.partial_sums = deadline & 0xFFFFFFFF, bool(deadline >> 32)
        self.chunk, self.window, self.base = chunk, window, base
        self.members = [port for port in range(ports.bit_length()) if ports >> port & 1]
        self.ranks = len(self.members)
        self.finished = set()
        count = 2 * window
        self.slots = [Slot((first + (s - first) % count - count) % 2**32, self.ranks) for s in range(count)]

    def slot(self, vid):
        """Returns the VID's slot."""
        return self.slots[vid % len(self.slots)]


class Slot:
    """One slot, initially as after a job's set-up."""

    def __init__(self, vid, ranks):
        self.vid = vid
        self.state = EMPTY
        self.held = {}  # rank: (element bits, ECN mark)
        self.done = set(range(ranks))
        self.owed = set()
        self.sent = set()
        self.refused = False  # the next chunk, because a rank was not done with this one's result
        self.result = None  # (flags, payload)

    def turn_over(self, vid):
        """Makes the slot collect the next chunk."""
        self.__init__(vid, 0)
        self.state = COLLECTING


def mask_of(numbers):
    """Returns the mask with these bits."""
    return sum(1 << number for number in numbers)


def of_a_job(name):
    """Returns whether each job has a register of this name."""
    return name in zwire.REGISTERS and zwire.REGISTERS[name][0] >= zwire.REG_JOBS_BASE


def address_of(name, job=0):
    """Returns the byte address of a register or a counter; if each job has one, of the given job's."""
    if name in zwire.REGISTERS:
        return zwire.REGISTERS[name][0] + zwire.REG_JOB_STRIDE * (job if of_a_job(name) else 0)
    return zwire.REG_COUNTERS + 8 * [n for n, _ in zwire.COUNTER_NAMES].index(name)


def lag_address(job, rank, bucket):
    """Returns the byte address of a count in the rank's histogram."""
    return zwire.REG_JOB_LAG + LAG_JOB_STRIDE * job + LAG_RANK_STRIDE * rank + 8 * bucket


def lag_bucket(cycles):
    """Returns the bucket of a contribution that was stored so many cycles after the first of its chunk."""
    bounds = [0 if bucket == 0 else 4 ** (bucket - 1) for bucket in range(LAG_BUCKETS)]
    return max(bucket for bucket, bound in enumerate(bounds) if cycles >= bound)


def _behind_or_ahead(vid, slot):
    return "late" if (vid - slot.vid) % 2**32 >= 1 << 31 else "early"


def code_of(refusal):
    """Returns the code of a refusal's name."""
    return dict(zwire.COUNTER_NAMES)[refusal]


def config_hash(values):
    """FNV-1a, 64 bits, of the identification block."""
    digest = 0xCBF29CE484222325
    for name, (_, _, covered) in zwire.REGISTERS.items():
        if covered:
            for byte in values[name].to_bytes(8, "little"):
                digest = (digest ^ byte) * 0x100000001B3 % 2**64
    return digest
