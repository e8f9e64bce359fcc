// Adds all 2^32 pairs of a 16-bit format by Verilated nodes and compares every sum with the
// processor's.
//
// The processor adds in binary32, and its sum is rounded once more, to the small format. The second
// rounding is innocuous: a format of p bits gets the right sum by way of one of at least 2p + 2 bits
// (Figueroa, "When is double rounding innocuous?", 1995), and binary32 has 24 = 2 * 11 + 2: just enough
// for fp16, p = 11, and plenty for bf16, p = 8. Where the sum is subnormal in the small format, below
// 2^p of its least number, the first rounding is none at all: both operands are multiples of that
// number, so that binary32, which has it too, holds their sum exactly.
//
// EXP, FRAC and LOG2 (of the number of nodes) are given by the compiler's command line.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <unistd.h>
#include <vector>

#include "Vnodes.h"

double sc_time_stamp() { return 0; }

namespace {

constexpr int kNodes = 1 << LOG2;
constexpr int kBias = (1 << (EXP - 1)) - 1;
constexpr uint32_t kSign = 0x8000;
constexpr uint32_t kInfinity = ((1u << EXP) - 1) << FRAC;
constexpr uint32_t kNaN = kInfinity | 1u << (FRAC - 1);
constexpr uint32_t kEncodings = 1u << 16;

uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// value is the value of an encoding.
float value(uint32_t x) {
  uint32_t field = x >> FRAC & ((1u << EXP) - 1);
  uint32_t fraction = x & ((1u << FRAC) - 1);
  float v;
  if (x % kSign > kInfinity) {
    v = NAN;
  } else if (x % kSign == kInfinity) {
    v = INFINITY;
  } else if (field == 0) {
    v = std::ldexp(static_cast<float>(fraction), 1 - kBias - FRAC);
  } else {
    v = std::ldexp(static_cast<float>(fraction | 1u << FRAC), static_cast<int>(field) - kBias - FRAC);
  }
  return std::copysign(v, x & kSign ? -1.0f : 1.0f);
}

// narrow rounds to nearest, ties to even, and gives the encoding: of the one NaN for every NaN. fp16
// lets the processor drop the places that are too many, by adding 1.5 * 2^23 of the last one that
// stays. bf16, whose largest numbers have no such number above them, adds to the encoding what
// carries if it is to be rounded up.
uint32_t narrow(float x) {
  uint32_t sign = bits_of(x) >> 16 & kSign;
  uint32_t bits = bits_of(x) & 0x7fffffff;
  uint32_t magnitude;
  if (EXP == 8) {
    uint32_t odd = bits >> (23 - FRAC) & 1;
    magnitude = (bits + (1u << (22 - FRAC)) - 1 + odd) >> (23 - FRAC);
  } else {
    constexpr uint32_t smallest = static_cast<uint32_t>(128 - kBias) << 23;  // normal number
    uint32_t exponent = (bits > smallest ? bits : smallest) & 0x7f800000;
    float pusher = float_of(exponent + (static_cast<uint32_t>(23 - FRAC) << 23) | 0x00400000);
    uint32_t places = bits_of(float_of(bits) + pusher) - bits_of(pusher);  // the significand
    magnitude = ((exponent - smallest) >> (23 - FRAC)) + places;
    constexpr uint32_t beyond = static_cast<uint32_t>(128 + kBias) << 23;  // any rounding
    magnitude = bits >= beyond ? kInfinity : magnitude;
  }
  return x != x ? kNaN : sign | magnitude;
}

struct Wrong {
  uint32_t a, b, got, want;
};

// Adder tests all pairs whose first operand is in a range.
class Adder {
 public:
  explicit Adder(const std::vector<float>& values) : values_(values), top_(&context_) {}

  // run returns the number of pairs with a wrong sum, and the first of them.
  uint64_t run(uint32_t from, uint32_t to, std::atomic<uint64_t>* done, Wrong* first) {
    uint64_t latency = find_latency();
    uint64_t begin = static_cast<uint64_t>(from) << (16 - LOG2), end = static_cast<uint64_t>(to) << (16 - LOG2);
    uint64_t wrong = 0;
    for (uint64_t now = begin; now < end + latency; now++) {
      cycle(first_of(now), second_of(now));
      if (now < begin + latency) continue;
      wrong += check(now - latency, wrong == 0 ? first : nullptr);
      if (now % 4096 == 0) done->fetch_add(4096 * kNodes, std::memory_order_relaxed);
    }
    return wrong;
  }

 private:
  static uint32_t first_of(uint64_t step) { return step >> (16 - LOG2) & 0xffff; }
  static uint32_t second_of(uint64_t step) { return step << LOG2 & 0xffff; }

  void cycle(uint32_t a, uint32_t b) {
    top_.a = a;
    top_.b = b >> LOG2;
    top_.clk = 0;
    top_.eval();
    top_.clk = 1;
    top_.eval();
  }

  // find_latency returns the number of cycles before a sum appears.
  uint64_t find_latency() {
    constexpr uint32_t one = static_cast<uint32_t>(kBias) << FRAC;
    for (int i = 0; i < 100; i++) cycle(0, 0);
    if (top_.y[0] & 0xffff) return 0;
    cycle(one, one);
    for (uint64_t latency = 0; latency < 100; latency++) {
      if (top_.y[0] & 0xffff) return latency;
      cycle(0, 0);
    }
    fputs("1 + 1 gives nothing\n", stderr);
    exit(1);
  }

  // check compares the sums of a step.
  uint64_t check(uint64_t step, Wrong* first) {
    float a = values_[first_of(step)];
    const float* b = &values_[second_of(step)];
    uint16_t want[kNodes], got[kNodes];
    for (int i = 0; i < kNodes; i++) want[i] = narrow(a + b[i]);
    for (int i = 0; i < kNodes; i++) got[i] = top_.y[i / 2] >> (i % 2 * 16);
    if (!memcmp(want, got, sizeof want)) return 0;
    uint64_t wrong = 0;
    for (int i = 0; i < kNodes; i++) {
      if (want[i] == got[i]) continue;
      if (wrong++ == 0 && first) *first = {first_of(step), second_of(step) + i, got[i], want[i]};
    }
    return wrong;
  }

  const std::vector<float>& values_;
  VerilatedContext context_;
  Vnodes top_;
};

}  // namespace

int main() {
  std::vector<float> values(kEncodings);
  for (uint32_t x = 0; x < kEncodings; x++) values[x] = value(x);
  for (uint32_t x = 0; x < kEncodings; x++) {
    uint32_t want = x % kSign > kInfinity ? kNaN : x;
    if (narrow(values[x]) != want) {
      fprintf(stderr, "the reference takes %04x for %04x\n", x, narrow(values[x]));
      return 1;
    }
  }

  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  std::atomic<uint64_t> done{0};
  std::atomic<unsigned> running{threads};
  std::vector<uint64_t> wrong(threads);
  std::vector<Wrong> first(threads);
  std::vector<std::thread> pool;
  auto start = std::chrono::steady_clock::now();
  for (unsigned t = 0; t < threads; t++) {
    pool.emplace_back([&, t] {
      Adder adder(values);
      wrong[t] = adder.run(kEncodings * t / threads, kEncodings * (t + 1) / threads, &done, &first[t]);
      running--;
    });
  }
  while (running && isatty(2)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    double part = static_cast<double>(done) / 4294967296.0;
    double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    fprintf(stderr, "\r  %5.1f %%, %.0f s left ", 100 * part, part > 0 ? passed / part - passed : 0);
  }
  for (auto& thread : pool) thread.join();
  if (isatty(2)) fprintf(stderr, "\r%40s\r", "");

  uint64_t all = 0;
  for (unsigned t = 0; t < threads; t++) {
    if (wrong[t]) fprintf(stderr, "%04x + %04x is %04x, not %04x\n", first[t].a, first[t].b, first[t].got, first[t].want);
    all += wrong[t];
  }
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  printf("4,294,967,296 pairs, %llu wrong, %.0f seconds\n", static_cast<unsigned long long>(all), seconds);
  return all != 0;
}
