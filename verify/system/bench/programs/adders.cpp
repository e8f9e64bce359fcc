// The adders of a card with 16 lanes and 8 workers, alone, as the peer of the card's
// speed. Operands change every cycle, and every sum is checked.
//
//   adders OPERANDS CYCLES LATENCY
//
// OPERANDS is a file for operands.h, LATENCY the latency of agg_lane, from
// operands to sums, in cycles. It prints cycles= and seconds= (of the processor).

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "Vcard.h"
#include "operands.h"

namespace {

constexpr int LANES = 16, WORKERS = 8, BEATS = 16;

}  // namespace

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: adders OPERANDS CYCLES LATENCY\n");
        return 2;
    }
    const Operands<WORKERS, LANES, BEATS> operands(argv[1]);
    const uint32_t cycles = uint32_t(atoi(argv[2])), latency = uint32_t(atoi(argv[3]));
    VerilatedContext context;
    Vcard top{&context};
    void *x[WORKERS] = {&top.x_p0, &top.x_p1, &top.x_p2, &top.x_p3, &top.x_p4, &top.x_p5, &top.x_p6, &top.x_p7};
    const std::clock_t began = std::clock();
    for (uint32_t i = 0; i < cycles; i++) {
        for (int w = 0; w < WORKERS; w++) memcpy(x[w], operands.beat(w, i / BEATS, int(i % BEATS)), 4 * LANES);
        top.clk = 0;
        top.eval();
        uint32_t of = i - latency;  // vector of the current sum
        if (i >= latency && memcmp(&top.y, operands.sum(of / BEATS, int(of % BEATS)), 4 * LANES)) {
            printf("FAILED: the sum of cycle %u\n", of);
            return 1;
        }
        top.clk = 1;
        top.eval();
    }
    printf("cycles=%u seconds=%.6f\n", cycles, double(std::clock() - began) / CLOCKS_PER_SEC);
    return 0;
}
