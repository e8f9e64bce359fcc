// Sums arrays element by element on one core, and prints the MB/s of arrays of its fastest pass.
//
//   software FILE ARRAYS BYTES SECONDS
//
// FILE holds the first fp32 elements of every array, one array after another. An array repeats them
// up to BYTES. With PAIRWISE the sum is one pass of additions in the order of a tree; else it is
// exact, by xsum.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#ifndef PAIRWISE
#include "xsum/xsum.hpp"
#endif

using Array = std::vector<float>;

#ifdef PAIRWISE

static void sum4(float* __restrict to, const float* a, const float* b, const float* c, const float* d, size_t n) {
  for (size_t i = 0; i < n; i++) to[i] = (a[i] + b[i]) + (c[i] + d[i]);
}

static void sum8(float* __restrict to, const float* a, const float* b, const float* c, const float* d, const float* e,
                 const float* f, const float* g, const float* h, size_t n) {
  for (size_t i = 0; i < n; i++) to[i] = ((a[i] + b[i]) + (c[i] + d[i])) + ((e[i] + f[i]) + (g[i] + h[i]));
}

// Returns the number of elements that it has summed, from element at on.
static size_t sum(Array& to, const std::vector<Array>& from, size_t) {
  const auto x = [&](size_t p) { return from[p].data(); };
  if (from.size() == 4)
    sum4(to.data(), x(0), x(1), x(2), x(3), to.size());
  else if (from.size() == 8)
    sum8(to.data(), x(0), x(1), x(2), x(3), x(4), x(5), x(6), x(7), to.size());
  else
    exit(2);
  return to.size();
}

#else

static size_t sum(Array& to, const std::vector<Array>& from, size_t at) {
  const size_t some = 4096;  // elements of a pass
  size_t i = at;
  for (; i < to.size() && i < at + some; i++) {
    xsum::xsum_small_accumulator all;
    xsum::xsum_init(&all);
    for (const Array& array : from) xsum::xsum_add(&all, double(array[i]));
    to[i] = float(xsum::xsum_round(&all));
  }
  return i - at;
}

#endif

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  const size_t arrays = atol(argv[2]), elements = atol(argv[3]) / sizeof(float);
  const size_t part = bytes.size() / sizeof(float) / arrays;
  const float* parts = reinterpret_cast<const float*>(bytes.data());
  std::vector<Array> from(arrays, Array(elements));
  for (size_t p = 0; p < arrays; p++)
    for (size_t i = 0; i < elements; i++) from[p][i] = parts[p * part + i % part];
  Array to(elements);

  using Clock = std::chrono::steady_clock;
  const std::chrono::duration<double> seconds(atof(argv[4]));
  double fastest = 0;
  size_t at = 0;
  for (const auto begin = Clock::now(); Clock::now() - begin < seconds;) {
    const auto before = Clock::now();
    const size_t n = sum(to, from, at);
    const std::chrono::duration<double> passed = Clock::now() - before;
    fastest = std::max(fastest, double(n * arrays * sizeof(float)) / passed.count());
    at = (at + n) % elements;
  }
  printf("%g\n", fastest / 1e6);
  return to[elements / 2] == 12345;  // the sums are needed
}
