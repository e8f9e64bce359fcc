// Operands of a testbench's adders, and the expected sums: elements of every
// worker that repeat after a few chunks, and their sums, from a file that bench
// wrote.

#ifndef OPERANDS_H
#define OPERANDS_H

#include <cstdint>
#include <cstdio>
#include <vector>

#include "bench.h"

// Elements of 32 bits. The file holds whole chunks: the elements of worker 0, of
// worker 1, ..., and the sums.
template <int PORTS, int LANES, int BEATS>
class Operands {
  public:
    explicit Operands(const char *path) {
        FILE *file = fopen(path, "rb");
        check(file && fseek(file, 0, SEEK_END) == 0, "the file of operands is there");
        words.resize(size_t(ftell(file)) / sizeof words[0]);
        chunks = words.size() / ((PORTS + 1) * CHUNK);
        check(chunks && words.size() == chunks * (PORTS + 1) * CHUNK, "operands are whole chunks");
        rewind(file);
        check(fread(words.data(), sizeof words[0], words.size(), file) == words.size(), "operands are read");
        fclose(file);
    }

    // The beat of a chunk as a worker sends it: LANES elements.
    const uint32_t *beat(int worker, uint32_t chunk, int beat) const {
        return &words[((size_t(worker) * chunks + chunk % chunks) * BEATS + size_t(beat)) * LANES];
    }

    // The beat of the chunk's sum.
    const uint32_t *sum(uint32_t chunk, int beat) const { return this->beat(PORTS, chunk, beat); }

  private:
    static constexpr size_t CHUNK = size_t(BEATS) * LANES;  // elements

    std::vector<uint32_t> words;
    size_t chunks;
};

#endif
