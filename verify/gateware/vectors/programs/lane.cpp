// A Verilated lane, or the leaf of one, as a filter: operands from standard input, sums to standard
// output, in their order. A new set of operands goes in every cycle, as in a card.
//
// In:  PORTS words of 32 bits a set, an element of every port.
// Out: two words a set: the sum; and flags: 1 it overflowed, 2 the lane could not decide it.
//
// The exact unit, if there is one (EXACT_UNIT), sums the vectors that the lane cannot decide.
//
// module.h, made with the lane, has PORTS, LATENCY, and the functions that set the ports and prepare
// an element for the lane.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "Vlane.h"
#ifdef EXACT_UNIT
#include "Vunit.h"
#endif
#include "module.h"

double sc_time_stamp() { return 0; }

namespace {

struct Set {
  uint32_t x[PORTS];
};

struct Sum {
  uint32_t y;
  uint32_t flags;
};

constexpr uint32_t kOverflowed = 1;
constexpr uint32_t kUndecided = 2;

#ifdef EXACT_UNIT
constexpr size_t kUndecidedLead = 2;  // cycles from output undecided to its sum

// The unit takes a number every third cycle, and starts the next set after the last sum.
class Unit {
 public:
  Unit() {
    top_.rst = 1;
    idle(4);
    top_.rst = 0;
    idle(40);
  }

  Sum sum(const Set& set) {
    for (int p = 0; p < PORTS; p++) {
      top_.in_valid = 1;
      top_.in_last = p == PORTS - 1;
      top_.in_x = operand(set.x[p]);
      tick();
      idle(2);
    }
    for (int waited = 0; !top_.done; waited++) {
      if (waited == 1000) {
        fputs("the exact unit is never done\n", stderr);
        exit(1);
      }
      tick();
    }
    Sum sum{static_cast<uint32_t>(top_.y), top_.over ? kOverflowed : 0u};
    idle(1);
    return sum;
  }

 private:
  void idle(int cycles) {
    top_.in_valid = 0;
    top_.in_last = 0;
    for (int i = 0; i < cycles; i++) tick();
  }
  void tick() {
    top_.clk = 0;
    top_.eval();
    top_.clk = 1;
    top_.eval();
  }
  Vunit top_;
};
#endif

class Lane {
 public:
  // step enters a set, and writes the sum of the set that entered LATENCY cycles ago.
  void step(const Set& set, std::vector<Sum>* out) {
    window_[now_ % kWindow] = set;
    set_operands(&top_, set.x);
    top_.clk = 0;
    top_.eval();
#ifdef EXACT_UNIT
    undecided_[(now_ + kUndecidedLead) % kWindow] = top_.undecided;
#endif
    if (now_ >= LATENCY) out->push_back(sum(window_[(now_ - LATENCY) % kWindow]));
    top_.clk = 1;
    top_.eval();
    now_++;
  }

 private:
  Sum sum(const Set& set) {
    Sum s{static_cast<uint32_t>(top_.y), top_.over ? kOverflowed : 0u};
#ifdef EXACT_UNIT
    if (undecided_[now_ % kWindow]) {
      s = unit_.sum(set);
      s.flags |= kUndecided;
    }
#else
    (void)set;
#endif
    return s;
  }

  static constexpr size_t kWindow = LATENCY + 1;
  Vlane top_;
#ifdef EXACT_UNIT
  bool undecided_[kWindow] = {};  // for the sums of this cycle and the next ones
  Unit unit_;
#endif
  Set window_[kWindow] = {};
  size_t now_ = 0;
};

void write_all(std::vector<Sum>* sums) {
  if (fwrite(sums->data(), sizeof(Sum), sums->size(), stdout) != sums->size()) exit(1);
  sums->clear();
}

}  // namespace

int main() {
  static Set sets[4096];
  static Lane lane;
  std::vector<Sum> sums;
  size_t n;
  while ((n = fread(sets, sizeof(Set), sizeof sets / sizeof *sets, stdin)) > 0) {
    for (size_t i = 0; i < n; i++) lane.step(sets[i], &sums);
    write_all(&sums);
  }
  for (size_t i = 0; i < LATENCY; i++) lane.step(Set{}, &sums);
  write_all(&sums);
  return fflush(stdout);
}
