// Declarations that the parts of the testbench share.

#ifndef BENCH_H
#define BENCH_H

#include <cstdio>
#include <cstdlib>

// Damage to a packet on its way to the card.
enum class Damage { NONE, HEADER, PAYLOAD };

// Ends the test if a condition is false.
inline void check(bool holds, const char *what) {
    if (holds) return;
    printf("FAILED: %s\n", what);
    exit(1);
}

#endif
