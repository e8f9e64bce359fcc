// What both testbenches feed their adders: random finite operands that repeat
// after a few chunks, and their sums, made by the host's processor.

#ifndef OPERANDS_H
#define OPERANDS_H

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

static_assert(FLT_EVAL_METHOD == 0, "host floats must be rounded at every step");

template <int PORTS, int LANES, int BEATS>
class Operands {
    static_assert((PORTS & (PORTS - 1)) == 0, "the trees have all their nodes");

  public:
    Operands() : elements(size_t(PORTS) * POOL), sums(POOL) {
        std::mt19937 random(1);
        // Exponents as close together as gradients have them: sums are rounded and cancel.
        for (auto &e : elements) {
            float sign = random() % 2 ? 1.0f : -1.0f;
            e = sign * std::ldexp(1.0f + float(random() >> 9) / float(1 << 23), int(random() % 24) - 12);
        }
        for (size_t i = 0; i < POOL; i++) sums[i] = tree(i, 0, PORTS);
    }

    // The beat of a chunk as a worker sends it: LANES elements.
    const float *beat(int worker, uint32_t chunk, int beat) const { return &elements[worker * POOL + place(chunk, beat)]; }

    // The beat of the chunk's sum.
    const float *sum(uint32_t chunk, int beat) const { return &sums[place(chunk, beat)]; }

  private:
    static constexpr size_t CHUNKS = 4;
    static constexpr size_t POOL = CHUNKS * BEATS * LANES;  // elements of a worker

    static size_t place(uint32_t chunk, int beat) { return (chunk % CHUNKS * BEATS + size_t(beat)) * LANES; }

    // The sum of element i of n workers, a power of two, neighbours first.
    float tree(size_t i, int first, int n) const {
        if (n == 1) return elements[first * POOL + i];
        return tree(i, first, n / 2) + tree(i, first + n / 2, n / 2);
    }

    std::vector<float> elements, sums;
};

#endif
