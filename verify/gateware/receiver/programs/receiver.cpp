// Verilated receivers of the byte-stream link as filters: a link's bytes on standard input, the
// receiver's output on standard output.
//
//   receiver NAME SEED
//
// NAME is one of module.h's receivers. SEED draws the lengths and times of the link's words, and
// the times at which the output is taken. Each line is one of:
//   packet HEADER PAYLOAD good|bad     in hex; of data, "-" for no payload
//   packet HEADER - bare               of what has no payload
//   register HEADER read|write
//   counts FRAMES HUNTED HEADER_CRC BAD_VERSION BAD_KIND BAD_LENGTH
// Exit status 1: the output broke AXI4-Stream's rules, or the receiver is stuck.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "module.h"

double sc_time_stamp() { return 0; }

namespace {

constexpr int kHeaderBytes = 22;
constexpr int kQuiet = 400;        // idle cycles after which the receiver has finished
constexpr int kStandstill = 100000;  // cycles without progress while bytes wait

// splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014)
struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t x = state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
  }
  int below(int n) { return next() % n; }
};

[[noreturn]] void fail(const char* what) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

std::string hex(const uint8_t* bytes, size_t n) {
  std::string text;
  char two[3];
  for (size_t i = 0; i < n; i++) {
    std::snprintf(two, sizeof two, "%02x", bytes[i]);
    text += two;
  }
  return n ? text : "-";
}

template <class Receiver>
class Bench {
 public:
  Bench(int link, int step, uint64_t seed) : link_(link), step_(step), random_{seed} {
    dut_.rst = 1;
    for (int i = 0; i < 4; i++) cycle();
    dut_.rst = 0;
  }

  void run(const std::vector<uint8_t>& bytes) {
    size_t given = 0;  // bytes given to the receiver, including those on offer
    int offered = 0, quiet = 0;
    while (quiet < kQuiet || given < bytes.size()) {
      if (cycles_++ % 1024 == 0) change();
      if (offered == 0 && given < bytes.size() && random_.below(8) >= idle_) {
        offered = whole_ ? link_ : 1 + random_.below(link_);
        if (size_t left = bytes.size() - given; size_t(offered) > left) offered = left;
        uint64_t word = 0;
        for (int i = 0; i < offered; i++) word |= uint64_t(bytes[given + i]) << 8 * i;
        given += offered;
        dut_.s_axis_tdata = word;
        dut_.s_axis_tkeep = (1 << offered) - 1;
      }
      dut_.s_axis_tvalid = offered != 0;
      dut_.m_axis_tready = random_.below(8) >= stall_;
      dut_.m_register_ready = random_.below(8) >= stall_;
      dut_.eval();
      bool moves = dut_.moves || dut_.m_axis_tvalid || dut_.m_register_valid;
      if (dut_.s_axis_tvalid && dut_.s_axis_tready) offered = 0, moves = true;
      if ((quiet = moves ? 0 : quiet + 1) > kStandstill) fail("the receiver stands still");
      take();
      cycle();
    }
    if (!payload_.empty() || open_) fail("a packet was not ended");
    std::printf("counts");
    for (uint64_t n : counts_) std::printf(" %llu", static_cast<unsigned long long>(n));
    std::printf("\n");
  }

 private:
  // Draws new idle and stall rates for the link and the consumers.
  void change() {
    idle_ = random_.below(3) ? 0 : random_.below(7);
    stall_ = random_.below(3) ? 0 : random_.below(7);
    whole_ = random_.below(2);
  }

  void cycle() {
    dut_.clk = 0;
    dut_.eval();
    dut_.clk = 1;
    dut_.eval();
  }

  // Takes the output of this cycle.
  void take() {
    for (int i = 0; i < 6; i++) counts_[i] += dut_.events >> i & 1;
    uint8_t header[kHeaderBytes];
    for (int i = 0; i < kHeaderBytes; i++) header[i] = dut_.header[i / 4] >> 8 * (i % 4);
    if (dut_.m_register_valid && dut_.m_register_ready)
      std::printf("register %s %s\n", hex(header, kHeaderBytes).c_str(), dut_.m_register_write ? "write" : "read");
    check(header);
    if (!dut_.m_axis_tvalid || !dut_.m_axis_tready) return;
    if (open_ && std::memcmp(header_, header, kHeaderBytes)) fail("the header changed under way");
    std::memcpy(header_, header, kHeaderBytes);
    open_ = !dut_.m_axis_tlast;
    if (!dut_.m_axis_tlast) {
      int n = 0;
      while (n < step_ && dut_.m_axis_tkeep >> n & 1) n++;
      if (n == 0 || dut_.m_axis_tkeep >> n) fail("tkeep of a word of payload is empty or has gaps");
      for (int i = 0; i < n; i++) payload_.push_back(uint64_t(dut_.m_axis_tdata) >> 8 * i);
      return;
    }
    if (dut_.m_axis_tkeep) fail("the last word has bytes");
    const char* how = payload_.empty() ? "bare" : dut_.m_axis_tuser ? "bad" : "good";
    if (payload_.empty() && dut_.m_axis_tuser) fail("a packet without payload is bad");
    std::printf("packet %s %s %s\n", hex(header, kHeaderBytes).c_str(), hex(payload_.data(), payload_.size()).c_str(), how);
    payload_.clear();
  }

  // An offer stays unchanged until it is taken.
  void check(const uint8_t* header) {
    std::string now;
    if (dut_.m_axis_tvalid) {
      uint64_t bytes = 0;
      for (int i = 0; i < step_; i++)
        if (dut_.m_axis_tkeep >> i & 1) bytes |= 0xffull << 8 * i;
      now = hex(header, kHeaderBytes) + " " + std::to_string(dut_.m_axis_tdata & bytes) + " " + std::to_string(dut_.m_axis_tkeep) + " " +
            std::to_string(dut_.m_axis_tlast) + " " + std::to_string(dut_.m_axis_tlast && dut_.m_axis_tuser);
    }
    if (!waiting_.empty() && waiting_ != now) fail("what waited to be taken has changed");
    waiting_ = dut_.m_axis_tvalid && !dut_.m_axis_tready ? now : "";
  }

  Receiver dut_;
  int link_, step_;
  Random random_;
  uint64_t cycles_ = 0;
  int idle_ = 0, stall_ = 0;  // in eighths of the cycles
  bool whole_ = true;         // words
  uint64_t counts_[6] = {};
  bool open_ = false;  // a packet's payload has started
  uint8_t header_[kHeaderBytes];
  std::vector<uint8_t> payload_;
  std::string waiting_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) fail("receiver NAME SEED");
  uint64_t seed = std::strtoull(argv[2], nullptr, 10);
  std::vector<uint8_t> bytes;
  for (int c; (c = std::getchar()) != EOF;) bytes.push_back(c);
#define RECEIVER(name, link, step) \
  if (!std::strcmp(argv[1], #name)) Bench<V##name>(link, step, seed).run(bytes);
  RECEIVERS
}
