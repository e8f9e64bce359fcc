// What the parts of the testbench share.

#ifndef BENCH_H
#define BENCH_H

#include <cstdio>
#include <cstdlib>

// What happens to a packet on its way to the card.
enum class Damage { NONE, HEADER, PAYLOAD };

// Ends the test when something does not hold.
inline void check(bool holds, const char *what) {
    if (holds) return;
    printf("FAILED: %s\n", what);
    exit(1);
}

#endif
