"""The expected sums of a card: section 7 of driver/wire/SPEC.md in Python integers.

A floating-point number is an integer multiple of its format's smallest subnormal here, so rounding happens only
where the specification asks for it. Elements are bit patterns in NumPy arrays of uint32.
"""

import functools

import numpy as np

import zwire


class Format:
    """One format of the wire table."""

    def __init__(self, name):
        self.name = name
        self.number, self.bits, self.exp, self.frac, self.infinity, self.nan = zwire.FORMATS[name]
        self.bytes = self.bits // 8
        self.float = self.exp > 0
        self.sign = 1 << self.bits - 1
        self.top = (1 << self.exp) - 1  # largest exponent field
        self.bias = (1 << self.exp - 1) - 1 if self.float else 0
        if self.float:
            # The largest finite number's encoding; what lies above it is an infinity or NaN.
            self.largest = (self.top << self.frac) - 1 if self.infinity else (self.sign - 1) - 1

    def __repr__(self):
        return self.name

    @property
    def dtype(self):
        """Returns NumPy's type of an element's bits in a payload."""
        return np.dtype(f"<u{self.bytes}")

    def elements(self, payload):
        """Returns the bit patterns in a payload, as uint32."""
        return np.frombuffer(payload, dtype=self.dtype).astype(np.uint32)

    def payload(self, patterns):
        """Returns the payload with the bit patterns."""
        return np.asarray(patterns).astype(self.dtype).tobytes()

    def nonfinite(self, patterns):
        """Returns which bit patterns are a NaN or an infinity."""
        patterns = np.asarray(patterns, dtype=np.uint32)
        if not self.float:
            return np.zeros(len(patterns), dtype=bool)
        return (patterns & np.uint32(self.sign - 1)) > self.largest

    def is_nan(self, x):
        """Returns whether the bit pattern is a NaN."""
        return x & self.sign - 1 > self.largest + self.infinity

    def field(self, x):
        """Returns the exponent field, with 1 for a zero or subnormal."""
        return max(1, x >> self.frac & self.top)

    def value(self, x):
        """Returns the finite number as a multiple of the smallest subnormal."""
        significand = x & (1 << self.frac) - 1 | (x >> self.frac & self.top > 0) << self.frac
        magnitude = significand << self.field(x) - 1
        return -magnitude if x & self.sign else magnitude

    def rounded(self, value):
        """Rounds a nonzero multiple of the smallest subnormal to nearest, ties to even; returns the bit pattern."""
        sign, value = (self.sign, -value) if value < 0 else (0, value)
        shift = max(0, value.bit_length() - self.frac - 1)
        kept, rest = value >> shift, value & (1 << shift) - 1
        half = 1 << shift >> 1
        kept += rest > half or (shift > 0 and rest == half and kept & 1)
        # The hidden bit of kept carries into the field; so does a significand that rounds up to the next power.
        pattern = (shift << self.frac) + kept
        if pattern > self.largest:
            return sign | self.largest + 1 if self.infinity else self.nan
        return sign | pattern


class Arithmetic:
    """A card's arithmetic: its formats and its sum."""

    def __init__(self, format="fp32", result=None, sum="tree", saturate=False):
        if sum not in SUMS:
            raise ValueError(f"this model has no sum {sum!r}; its sums are {', '.join(SUMS)}")
        self.format, self.result = Format(format), Format(result or format)
        self.name, self.saturate = sum, saturate

    @property
    def idents(self):
        """Returns its values in the identification block."""
        number = SUMS[self.name][0]
        return {
            "FORMAT": self.format.number | self.result.number << 8,
            "SUM": number | self.saturate << 8,
        }

    def sum(self, ports):
        """Sums arrays of bit patterns, one for each port, None if not a member; returns sums and overflows."""
        length = len(next(p for p in ports if p is not None))
        absent = np.full(length, zwire.IDENTITIES[self.name][self.format.name], dtype=np.uint32)
        columns = [absent if p is None else np.asarray(p, dtype=np.uint32) for p in ports]
        _, one, integers = SUMS[self.name]
        if not self.format.float:
            return integers(self, columns)
        if self.format.name == "fp32" and self.name == "tree":
            total = fp32_tree(columns)
        else:
            rows = zip(*(map(self._widened, column.tolist()) for column in columns))
            total = np.array([one(self, row) for row in rows], dtype=np.uint32)
        strange = functools.reduce(np.logical_or, map(self.format.nonfinite, columns))
        return total, self.result.nonfinite(total) & ~strange

    def _integers(self, columns):
        total = sum(column.astype(np.int32).astype(np.int64) for column in columns)
        held = np.clip(total, -(2**31), 2**31 - 1)
        return (held if self.saturate else total).astype(np.uint64).astype(np.uint32), held != total

    def _widened(self, x):
        """Returns the element in the result's format, which is exact."""
        narrow, wide = self.format, self.result
        if narrow.is_nan(x):
            return wide.nan
        sign = wide.sign if x & narrow.sign else 0
        if x & narrow.sign - 1 > narrow.largest:
            return sign | wide.largest + 1
        smallest = (wide.bias + wide.frac) - (narrow.bias + narrow.frac)  # binary places between the subnormals
        magnitude = abs(narrow.value(x)) << smallest
        return sign | (wide.rounded(magnitude) if magnitude else 0)

    def _special(self, row):
        """Returns the sum if NaNs or infinities decide it, otherwise None."""
        f = self.result
        if any(map(f.is_nan, row)):
            return f.nan
        infinities = {x for x in row if x & f.sign - 1 > f.largest}
        if infinities:
            return f.nan if len(infinities) > 1 else infinities.pop()
        return None

    def _once(self, row, total):
        """Returns a sum of finite numbers, rounded once."""
        if total:
            return self.result.rounded(total)
        return self.result.sign if all(x == self.result.sign for x in row) else 0

    def _exact(self, row):
        special = self._special(row)
        return self._once(row, sum(map(self.result.value, row))) if special is None else special

    def _fused(self, row):
        special = self._special(row)
        if special is not None:
            return special
        f = self.result
        cut = max(0, max(map(f.field, row)) - 1 - 4)  # places of the smallest subnormal below the unit
        total = 0
        for x in row:
            magnitude = abs(f.value(x)) >> cut << cut
            total += -magnitude if x & f.sign else magnitude
        return self._once(row, total)

    def _largest(self, row):
        f = self.result
        if any(map(f.is_nan, row)):
            return f.nan
        # An infinity's encoding has the value of the next number above the largest.
        return max(row, key=lambda x: (f.value(x), not x & f.sign))

    def _largest_integer(self, columns):
        total = functools.reduce(np.maximum, (column.astype(np.int32) for column in columns))
        return total.astype(np.uint32), np.zeros(len(total), dtype=bool)

    def _tree(self, row):
        level = list(row)
        while len(level) > 1:
            level = [self._exact(level[i : i + 2]) for i in range(0, len(level), 2)]
        return self._exact(level)


# A sum: its number, how it sums a row of floating-point elements, and columns of integers.
SUMS = {
    "tree": (zwire.SUM_TREE, Arithmetic._tree, Arithmetic._integers),
    "fused": (zwire.SUM_FUSED, Arithmetic._fused, Arithmetic._integers),
    "exact": (zwire.SUM_EXACT, Arithmetic._exact, Arithmetic._integers),
    "max": (zwire.SUM_MAX, Arithmetic._largest, Arithmetic._largest_integer),
}


def fp32_tree(columns):
    """Returns the fp32 tree of whole arrays, computed by the processor."""
    nan = zwire.FORMATS["fp32"][5]
    level = [column.view(np.float32) for column in columns]
    with np.errstate(all="ignore"):
        while len(level) > 1:
            pairs = [a + b for a, b in zip(level[0::2], level[1::2])]
            level = pairs + level[len(level) & ~1 :]
    bits = level[0].view(np.uint32).copy()
    bits[np.isnan(level[0])] = nan
    return bits
