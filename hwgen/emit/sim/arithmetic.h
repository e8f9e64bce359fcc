// The expected sums of a card, bit for bit, for the testbench beside this file. Written from the
// specification, independently of the generator and the card's models.
//
// A floating-point number is an integer multiple of its format's smallest subnormal here, so
// rounding happens only where the specification asks for it. The fp32 tree uses the processor's
// additions.

#ifndef ARITHMETIC_H
#define ARITHMETIC_H

#include <algorithm>
#include <cfloat>
#include <cstdint>
#include <cstring>
#include <vector>

static_assert(FLT_EVAL_METHOD == 0, "host floats must be rounded at every step; on x86 use -msse2 -mfpmath=sse");

struct Format {
    uint8_t number;
    int bits, exp, frac;  // exp 0: an integer
    bool infinity;
    uint32_t nan;  // the canonical NaN

    constexpr uint32_t sign() const { return 1u << (bits - 1); }
    constexpr int top() const { return (1 << exp) - 1; }
    constexpr int bias() const { return (1 << (exp - 1)) - 1; }
    // Largest finite magnitude; above it are the infinity, if the format has one, and NaNs.
    constexpr uint32_t largest() const { return infinity ? (uint32_t(top()) << frac) - 1 : sign() - 2; }

    constexpr uint32_t magnitude(uint32_t x) const { return x & (sign() - 1); }
    constexpr bool nonfinite(uint32_t x) const { return exp && magnitude(x) > largest(); }
    constexpr bool is_nan(uint32_t x) const { return nonfinite(x) && !is_infinity(x); }
    constexpr bool is_infinity(uint32_t x) const { return exp && infinity && magnitude(x) == largest() + 1; }
    // Returns the exponent field, with 1 for zeros and subnormals.
    constexpr int field(uint32_t x) const { return std::max(1, int(magnitude(x) >> frac)); }
    constexpr uint32_t significand(uint32_t x) const {
        uint32_t fraction = x & ((1u << frac) - 1);
        return magnitude(x) >> frac ? fraction | 1u << frac : fraction;
    }
};

constexpr Format FORMATS[] = {
    {1, 32, 8, 23, true, 0x7fc00000}, {2, 16, 8, 7, true, 0x7fc0}, {3, 16, 5, 10, true, 0x7e00},
    {4, 8, 4, 3, false, 0x7f},        {5, 8, 5, 2, true, 0x7e},    {6, 32, 0, 0, false, 0},
};

constexpr Format format_of(int number) { return FORMATS[number - 1]; }

// A 352-bit integer in two's complement: holds any sum of 64 fp32 numbers in units of the smallest
// subnormal.
class Whole {
  public:
    void add(uint64_t magnitude, int shift, bool negative) {
        uint64_t low = magnitude << (shift % 32), high = shift % 32 ? magnitude >> (64 - shift % 32) : 0;
        uint32_t parts[3] = {uint32_t(low), uint32_t(low >> 32), uint32_t(high)};
        uint64_t carry = negative;
        for (int i = shift / 32, k = 0; i < LIMBS; i++, k++) {
            uint32_t part = k < 3 ? parts[k] : 0;
            carry += uint64_t(limbs[i]) + (negative ? ~part : part);
            limbs[i] = uint32_t(carry);
            carry >>= 32;
        }
    }
    bool negative() const { return limbs[LIMBS - 1] >> 31; }
    void negate() {
        uint64_t carry = 1;
        for (uint32_t &l : limbs) {
            carry += uint32_t(~l);
            l = uint32_t(carry);
            carry >>= 32;
        }
    }
    bool bit(int i) const { return limbs[i / 32] >> (i % 32) & 1; }
    int length() const {
        int n = 32 * LIMBS;
        while (n && !bit(n - 1)) n--;
        return n;
    }
    // Returns the bits from `at` on, as many as a significand has.
    uint32_t from(int at) const {
        uint32_t v = 0;
        for (int i = 0; i < 32 && at + i < 32 * LIMBS; i++) v |= uint32_t(bit(at + i)) << i;
        return v;
    }
    bool any_below(int at) const {
        for (int i = 0; i < at; i++) {
            if (bit(i)) return true;
        }
        return false;
    }

  private:
    static constexpr int LIMBS = 11;
    uint32_t limbs[LIMBS] = {};
};

// Rounds to nearest, ties to even; a zero is +0.
inline uint32_t rounded(Format f, Whole v) {
    uint32_t sign = v.negative() ? f.sign() : 0;
    if (sign) v.negate();
    int shift = std::max(0, v.length() - f.frac - 1);
    uint32_t kept = v.from(shift);
    if (shift && v.bit(shift - 1) && ((kept & 1) || v.any_below(shift - 1))) kept++;
    // The hidden bit increments the field, as does rounding up to the next power of two.
    uint64_t x = (uint64_t(shift) << f.frac) + kept;
    if (x > f.largest()) return f.infinity ? sign | (f.largest() + 1) : f.nan;
    return sign | uint32_t(x);
}

// Returns the same number in a wider format.
inline uint32_t widened(Format f, Format r, uint32_t x) {
    if (f.is_nan(x)) return r.nan;
    uint32_t sign = x & f.sign() ? r.sign() : 0;
    if (f.is_infinity(x)) return sign | (r.largest() + 1);
    Whole v;
    v.add(f.significand(x), f.field(x) - 1 + (r.bias() + r.frac) - (f.bias() + f.frac), false);
    return sign | rounded(r, v);
}

// Returns the sum, rounded once, after dropping the bits below place `cut` of each magnitude.
inline uint32_t rounded_once(Format f, const std::vector<uint32_t> &all, int cut) {
    bool plus = false, minus = false, zeros = true;
    Whole v;
    for (uint32_t x : all) {
        if (f.is_nan(x)) return f.nan;
        bool negative = x & f.sign();
        if (f.is_infinity(x)) (negative ? minus : plus) = true;
        zeros = zeros && x == f.sign();
        int at = f.field(x) - 1;
        if (f.nonfinite(x)) continue;
        int lost = std::max(0, cut - at);
        v.add(lost < 32 ? f.significand(x) >> lost : 0, at + lost, negative);
    }
    if (plus && minus) return f.nan;
    if (plus || minus) return (minus ? f.sign() : 0) | (f.largest() + 1);
    return zeros ? f.sign() : rounded(f, v);
}

inline uint32_t host_add(uint32_t a, uint32_t b) {
    float x, y;
    memcpy(&x, &a, 4);
    memcpy(&y, &b, 4);
    float s = x + y;
    if (s != s) return format_of(1).nan;
    uint32_t r;
    memcpy(&r, &s, 4);
    return r;
}

// Returns the tree's sum over the card's ports: neighbours pair up, an odd one passes.
inline uint32_t sum_tree(Format f, std::vector<uint32_t> level) {
    if (level.size() == 1) return rounded_once(f, level, 0);
    while (level.size() > 1) {
        std::vector<uint32_t> above;
        for (size_t i = 0; i < level.size(); i += 2) {
            if (i + 1 == level.size()) above.push_back(level[i]);
            else if (f.number == 1) above.push_back(host_add(level[i], level[i + 1]));
            else above.push_back(rounded_once(f, {level[i], level[i + 1]}, 0));
        }
        level = above;
    }
    return level[0];
}

// Cut four places below the last of the largest, and rounded once.
inline uint32_t sum_fused(Format f, std::vector<uint32_t> all) {
    int field = 1;
    for (uint32_t x : all) field = std::max(field, f.field(x));
    return rounded_once(f, all, field - 1 - 4);
}

inline uint32_t sum_exact(Format f, std::vector<uint32_t> all) { return rounded_once(f, all, 0); }

struct Total {
    uint32_t bits;
    bool over;  // it overflowed
};

inline Total sum_integers(bool saturate, const std::vector<uint32_t> &all) {
    int64_t s = 0, held;
    for (uint32_t x : all) s += int32_t(x);
    held = std::min<int64_t>(std::max<int64_t>(s, INT32_MIN), INT32_MAX);
    return {uint32_t(saturate ? held : s), held != s};
}

// Returns the larger of two numbers; -0 is below +0.
inline uint32_t larger(Format f, uint32_t a, uint32_t b) {
    bool a_negative = a & f.sign(), b_negative = b & f.sign();
    if (a_negative != b_negative) return a_negative ? b : a;
    return (f.magnitude(a) > f.magnitude(b)) == a_negative ? b : a;
}

inline uint32_t sum_max(Format f, std::vector<uint32_t> all) {
    uint32_t top = all[0];
    for (uint32_t x : all) {
        if (f.is_nan(x)) return f.nan;
        top = larger(f, top, x);
    }
    return top;
}

inline Total max_integer(bool, const std::vector<uint32_t> &all) {
    int32_t top = INT32_MIN;
    for (uint32_t x : all) top = std::max(top, int32_t(x));
    return {uint32_t(top), false};
}

// The identity of a maximum: -infinity, or the lowest number of a format without infinities.
constexpr uint32_t lowest(Format f) {
    if (!f.exp) return f.sign();
    return f.sign() | (f.infinity ? f.largest() + 1 : f.largest());
}

// The identity of sums that add: -0, or the integer 0.
constexpr uint32_t zero(Format f) { return f.exp ? f.sign() : 0; }

// A sum: the contribution of a port that is not a member, and the sums of floating-point numbers
// of one format and of integers.
struct Sum {
    int number;
    uint32_t (*identity)(Format);
    uint32_t (*floats)(Format, std::vector<uint32_t>);
    Total (*integers)(bool saturate, const std::vector<uint32_t> &);
};

constexpr Sum SUMS[] = {
    {1, zero, sum_tree, sum_integers},   // tree
    {2, zero, sum_fused, sum_integers},  // fused
    {3, zero, sum_exact, sum_integers},  // exact
    {4, lowest, sum_max, max_integer},   // max
};

// Returns the index of the sum with that number, or -1.
constexpr int place_of_sum(int number) {
    int i = 0;
    for (const Sum &s : SUMS) {
        if (s.number == number) return i;
        i++;
    }
    return -1;
}

// Returns the card's expected result for the contributions of all ports to one element.
inline Total total(const Sum &sum, Format f, Format r, bool saturate, std::vector<uint32_t> all) {
    if (!f.exp) return sum.integers(saturate, all);
    bool strange = false;
    for (uint32_t &x : all) {
        strange = strange || f.nonfinite(x);
        x = widened(f, r, x);
    }
    uint32_t bits = sum.floats(r, all);
    return {bits, r.nonfinite(bits) && !strange};
}

#endif
