// Runs agg_fp_add over a file of vectors: a, b and the wanted sum, 32 bits each whatever the format, in
// the host's byte order. Prints the sums that are wrong (ten at most) and "N wrong of M". Used by test_fp_add.py.
//
//   adder_vectors FILE LATENCY

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "Vagg_fp_add.h"
#include "verilated.h"

struct Vector {
    uint32_t a, b, want;
};

int main(int argc, char** argv) {
    FILE* file = argc == 3 ? std::fopen(argv[1], "rb") : nullptr;
    if (!file) return 2;
    const size_t latency = std::strtoul(argv[2], nullptr, 10);
    Vagg_fp_add adder;
    Vector pipe[16] = {};
    size_t wrong = 0, count = 0;
    for (size_t cycle = 0, end = SIZE_MAX; cycle < end; cycle++) {
        Vector& next = pipe[cycle % 16];
        if (end == SIZE_MAX && std::fread(&next, sizeof next, 1, file) != 1) end = cycle + latency - 1;
        adder.a = next.a;
        adder.b = next.b;
        adder.clk = 0;
        adder.eval();
        adder.clk = 1;
        adder.eval();
        if (cycle + 1 < latency || cycle >= end) continue;
        const Vector& v = pipe[(cycle + 1 - latency) % 16];
        count++;
        if (adder.y != v.want && wrong++ < 10) std::printf("%08x + %08x = %08x, not %08x\n", v.a, v.b, v.want, adder.y);
    }
    std::printf("%zu wrong of %zu\n", wrong, count);
    return wrong != 0;
}
