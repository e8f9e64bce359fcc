"""Random packets and register accesses for a card: mostly legal next packets, often illegal ones."""

import model
import zwire

TOKEN = 0x1234_5678_9ABC_DEF0


def elements(rng, count, format, special=0.1):
    """Returns a payload of count random elements; special: probability of a special value or random bits.

    Exponents are so close that every addition rounds, and that the order of additions matters.
    """
    usual = integer if not format.float else number
    bits = [usual(rng, format) for _ in range(count)]
    for i in range(count):
        if rng.random() < special:
            bits[i] = rng.choice([*specials(format), rng.getrandbits(format.bits)])
    return format.payload(bits)


def number(rng, format):
    """Returns a floating-point number of medium size."""
    spread = min(9, format.bias - 1)
    field = rng.randint(format.bias - spread, format.bias + spread)
    return rng.getrandbits(1) << format.bits - 1 | field << format.frac | rng.getrandbits(format.frac)


def integer(rng, format):
    """Returns an integer whose sums sometimes overflow the format."""
    return (rng.getrandbits(30) - (1 << 29)) % (1 << format.bits)


def doubtful(rng, format, result, count):
    """Three numbers or more whose sum no narrow window decides: of two that cancel, what is far below them is left; or
    they tie, and several far below them break the tie."""
    top, sign = format.top, rng.getrandbits(1) << format.bits - 1
    field, far = rng.randint(top * 3 // 4, top - 2), rng.randint(1, top // 4)
    large = sign | field << format.frac | rng.getrandbits(format.frac)
    half = field - result.frac - 1
    if count == 3 or rng.random() < 0.5:
        second = large ^ format.sign
    else:
        second = sign | half << format.frac
    small = [x & ~(top << format.frac) | far << format.frac for x in (number(rng, format) for _ in range(count - 2))]
    numbers = [large, second, *small]
    rng.shuffle(numbers)
    return numbers


def specials(format):
    """Returns bit patterns of zeros, largest numbers, subnormals, infinities and NaNs."""
    if not format.float:
        return [0, 1, format.sign, format.sign - 1, 2 * format.sign - 1]
    above = [format.largest + 1, format.nan, format.sign - 1]
    return [x | sign for x in [0, 1, (1 << format.frac) - 1, format.largest, *above] for sign in (0, format.sign)]


class Traffic:
    """Sends random packets to a card, for all its jobs in turn, and compares each outcome with the model."""

    def __init__(self, card, rng, deadlines=(0,)):
        """deadlines: values for JOB_DEADLINE; requires a bench that handles deadlines."""
        self.card, self.model, self.rng, self.deadlines = card, card.model, rng, deadlines
        self.block = card.model.blocks[0]  # of the job whose turn it is
        self.epochs = [rng.getrandbits(16) for _ in card.model.blocks]  # while none was ever set

    @property
    def job(self):
        """Returns the running job whose turn it is, or None."""
        return self.block.job

    @property
    def epoch(self):
        """Returns the epoch for packets."""
        last = self.block.last_epoch
        return self.epochs[self.block.number] if last is None else last

    async def step(self):
        """Sends one packet or one register access."""
        self.block = self.rng.choice(self.model.blocks)
        if self.job is None and self.rng.random() < 0.5:
            await self.set_up()
            return
        actions = {
            self.progress: 60,
            self.near: 16,
            self.wrong: 12,
            self.finish: 2,
            self.any_register: 5,
            self.commit_something: 3,
            self.end_job: 1,
        }
        (action,) = self.rng.choices(list(actions), actions.values())
        await action()

    # Packets

    async def progress(self):
        """Sends data that a slot lacks, from one of the missing ranks."""
        job = self.job
        if job is None:
            return await self.near()
        slot = min(job.slots, key=lambda s: (s.vid - job.parameters[3] + 2 * len(job.slots)) % 2**32)
        collecting = [s for s in job.slots if s.state == model.COLLECTING]
        if collecting and self.rng.random() < 0.7:
            slot = self.rng.choice(collecting)
            rank = self.rng.choice([r for r in range(job.ranks) if r not in slot.held])
            return await self.data(rank, slot.vid)
        await self.data(self.rng.randrange(job.ranks), slot.vid + len(job.slots))

    async def near(self):
        """Sends data or an ask near a slot's chunk: repeated, late, early, next."""
        job = self.job
        window, slots = (job.window, job.slots) if job else (1, [model.Slot(7, 1)])
        vid = self.rng.choice(slots).vid + self.rng.choice([-2, 0, 0, 0, 0, 2, 2, 4, 2**31]) * window
        rank = self.rng.randrange(len(self.block.members))
        if self.rng.random() < 0.5:
            await self.data(rank, vid)
        else:
            await self.ask(rank, vid)

    async def wrong(self):
        """Sends a packet that a check refuses."""
        rng, job = self.rng, self.job
        rank = rng.randrange(len(self.block.members))
        vid = rng.choice(job.slots).vid if job else rng.getrandbits(32)
        wrong = rng.choice(["version", "kind", "job", "epoch", "rank", "format", "length", "bad"])
        if wrong == "bad":
            return await self.data(rank, vid, bad=True)
        change = {
            "version": rng.choice([0, 1, 3, 15]),
            "kind": rng.choice([0, 6, 7, 8, 9, 10, 11, 15]),
            "job": (self.block.number + rng.choice([1, rng.randint(1, 255)])) % 256,
            "epoch": rng.getrandbits(16),
            "rank": rng.choice([rank ^ 1, len(self.block.members), 255]),
            "format": rng.choice([0, self.card.format.number % 6 + 1, 255]),
            "length": self.card.lanes * rng.randint(0, self.card.chunk // self.card.lanes + 1),
        }
        if rng.random() < 0.5:
            return await self.data(rank, vid, {wrong: change[wrong]})
        wrong = wrong if wrong not in ("format", "length") else "job"
        await self.ask(rank, vid, {wrong: change[wrong]})

    async def finish(self):
        """Sends a rank's finish."""
        rank = self.rng.randrange(len(self.block.members))
        await self.header_alone(zwire.KIND_FINISH, rank, self.rng.getrandbits(32))

    async def data(self, rank, vid, change=None, bad=False):
        """Sends correct data, except for the fields in change."""
        header = self.fields(zwire.KIND_DATA, rank, vid)
        header["format"] = self.card.format.number
        header["length"] = self.job.chunk if self.job else self.card.chunk
        header |= change or {}
        payload = elements(self.rng, header["length"], self.card.format)
        await self.card.exchange(self.port(rank), header, payload, bad)

    async def ask(self, rank, vid, change=None):
        """Sends a correct ask, except for the fields in change."""
        await self.header_alone(zwire.KIND_ASK, rank, vid, change)

    async def header_alone(self, kind, rank, vid, change=None):
        """Sends a packet without payload; fields that its kind does not use are random."""
        header = self.fields(kind, rank, vid)
        header |= {"format": self.rng.getrandbits(8), "length": self.rng.getrandbits(16)}
        await self.card.exchange(self.port(rank), header | (change or {}))

    def fields(self, kind, rank, vid):
        return {
            "kind": kind,
            "flags": self.rng.getrandbits(8),
            "job": self.block.number,
            "epoch": self.epoch,
            "rank": rank,
            "code": self.rng.getrandbits(8),
            "vid": vid % 2**32,
        }

    def port(self, rank):
        return self.block.members[rank]

    # Registers

    async def set_up(self):
        """Sets up a job with random members, chunk, window, first VID and deadline, if slots are free."""
        rng, card = self.rng, self.card
        window = 1 << rng.randrange(card.window.bit_length())
        await card.set_up(
            (self.epoch + rng.choice([1, 2, 1000])) % 2**16,
            ports=rng.randint(1, (1 << card.ports) - 1),
            chunk=card.lanes * rng.randint(1, card.chunk // card.lanes),
            window=window,
            first=rng.choice([0, 5, 2**32 - 3, rng.getrandbits(32)]),
            job=self.block.number,
            deadline=rng.choice(self.deadlines),
            **self.staged_besides(),
        )

    def staged_besides(self):
        """Returns what else a set-up stages."""
        return {"token": TOKEN}

    async def any_register(self):
        """Reads or writes a register that may not exist; writes that would end a job are rare."""
        rng = self.rng
        any_job = zwire.REG_JOBS_BASE + rng.randrange(0, zwire.REG_JOB_STRIDE * (len(self.model.blocks) + 1), 8)
        owned = [zwire.REG_OWNER, zwire.REG_RELEASE]
        at = rng.choice([rng.randrange(0, 0x500, 8), any_job, rng.getrandbits(32), *owned])
        if rng.random() < 0.5:
            await self.card.access({"kind": zwire.KIND_REGREAD, "vid": at, "length": rng.getrandbits(16)})
        else:
            value = rng.getrandbits(64)
            await self.card.access(
                {"kind": zwire.KIND_REGWRITE, "vid": at, "mask": value, "length": rng.getrandbits(16)}
            )

    async def commit_something(self):
        """Commits the running job again, an old one, or one with a bad parameter."""
        rng, card, job = self.rng, self.card, self.job
        await card.write("JOB_TOKEN", rng.choice([TOKEN, TOKEN, TOKEN, 0, 1]))
        ports, chunk, window, first, deadline = job.parameters if job else (1, card.lanes, 1, 0, 0)
        await card.write("JOB_PORTS", rng.choice([ports, ports, 0, 1 << card.ports]))
        await card.write("JOB_CHUNK", rng.choice([chunk, chunk, 0, card.chunk + card.lanes, card.lanes * 2**32]))
        await card.write("JOB_WINDOW", rng.choice([window, window, 0, 3, 2 * card.window, 2**40]))
        await card.write("JOB_DEADLINE", rng.choice([deadline, deadline, deadline, 1 << 32, 1 << 33 | 5, 1 << 63]))
        epoch = rng.choice([self.epoch, self.epoch, self.epoch + 1, self.epoch - 1, self.epoch + 2**15])
        await card.write("JOB_COMMIT", self.some_number() << 48 | epoch % 2**16 << 32 | first)

    async def end_job(self):
        """Sends an abort, a release or a soft reset, valid or invalid."""
        rng, card = self.rng, self.card
        await card.write("JOB_TOKEN", rng.choice([TOKEN, TOKEN, 1]))
        name = rng.choice(["JOB_ABORT", "JOB_ABORT", "RELEASE", "RESET"])
        if name == "JOB_ABORT":
            await card.write(name, rng.choice([self.epoch, self.epoch, 1]) << 32 | self.some_number() << 48)
        else:
            await card.write(name, rng.choice([TOKEN, TOKEN, 1]))
        await card.write("OWNER", TOKEN)

    def some_number(self):
        """Returns the job's number, or rarely an unknown one."""
        return self.rng.choice([*[self.block.number] * 3, len(self.model.blocks)])


def data_header(card, rank, vid, epoch, job=0):
    """Returns the header of a chunk, for a job with the card's largest chunk."""
    return {
        "kind": zwire.KIND_DATA,
        "job": job,
        "format": card.format.number,
        "epoch": epoch,
        "rank": rank,
        "vid": vid % 2**32,
        "length": card.chunk,
    }


class Contributions:
    """The members' contributions to every chunk of a reduction, and the expected sums."""

    def __init__(self, card, rng, chunks, special=0.1, members=None, size=None):
        """members: the ranks' ports, by default all; size: elements per chunk, by default the card's maximum."""
        self.arithmetic, self.ports = card.arithmetic, card.ports
        self.members = members or list(range(card.ports))
        size = size or card.chunk
        self.payloads = [[elements(rng, size, card.format, special) for _ in self.members] for _ in range(chunks)]
        if card.manifest["undecided"]["element_cycles"] and len(self.members) > 2:
            for chunk in self.payloads:
                self._doubt(card, rng, chunk, rng.choice([0, 0.1, 1]))
        self.ecn = [[rng.choice(model.ECN_ORDER) for _ in self.members] for _ in range(chunks)]
        self._totals = {}  # by chunk: its sum, and which elements overflowed

    def _doubt(self, card, rng, chunk, chance):
        """Replaces some elements of a chunk so that one pass through the lanes does not decide them."""
        columns = [card.format.elements(payload) for payload in chunk]
        for i in range(len(columns[0])):
            if rng.random() < chance:
                for column, x in zip(columns, doubtful(rng, card.format, card.result, len(columns))):
                    column[i] = x
        chunk[:] = [card.format.payload(column) for column in columns]

    def __len__(self):
        return len(self.payloads)

    def sum(self, chunk):
        """Returns the payload of the chunk's result."""
        total, _ = self._total(chunk)
        return self.arithmetic.result.payload(total)

    def flags(self, chunk):
        """Returns the flags of the chunk's result."""
        return model.merge_ecn(self.ecn[chunk]) | (zwire.FLAG_NONFINITE if any(self.strange(chunk)) else 0)

    def strange(self, chunk):
        """Returns, by rank, whether the contribution has a NaN or an infinity."""
        return [bool(self.arithmetic.format.nonfinite(bits).any()) for bits in self._bits(chunk)]

    def strange_sums(self, chunk):
        """Returns the numbers of NaNs and infinities, and of overflows, in the chunk's sum."""
        total, over = self._total(chunk)
        return int(self.arithmetic.result.nonfinite(total).sum()), int(over.sum())

    def _total(self, chunk):
        if chunk not in self._totals:
            ports = [None] * self.ports
            for port, bits in zip(self.members, self._bits(chunk)):
                ports[port] = bits
            self._totals[chunk] = self.arithmetic.sum(ports)
        return self._totals[chunk]

    def _bits(self, chunk):
        return [self.arithmetic.format.elements(payload) for payload in self.payloads[chunk]]
