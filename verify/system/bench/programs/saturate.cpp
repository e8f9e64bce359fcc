// Saturates the ports of a simulated card with shell none: every worker sends
// chunks as fast as its window allows and takes results at once. Every beat
// of every result is compared with the expected sum.
//
//   saturate OPERANDS CHUNKS
//
// OPERANDS is a file for operands.h. It prints latency=, latency_max=
// (cycles from a chunk's last beat in to its result's first beat out, over which
// worker comes last), and of the saturated part in=, trees=, out= (beats a cycle
// at the slowest port in, into the trees, at the slowest port out), beats= (of
// results), undecided=, stalled= (what the card counted of them), cycles= and
// seconds= (of the processor).

#include <algorithm>
#include <cinttypes>
#include <ctime>

#include "bench.h"
#include "card.h"
#include "operands.h"
#include "packet.h"

namespace {

constexpr int BEATS = CHUNK / LANES;
constexpr int KEEP_BYTES = (4 * LANES + 7) / 8;
constexpr uint64_t TOKEN = 1;
constexpr uint16_t EPOCH = 1;
constexpr uint64_t ALL_PORTS = ~uint64_t(0) >> (64 - PORTS);
constexpr uint64_t PATIENCE = 4'000;  // cycles for a beat; undecided beats take long

// The beats at one place, and the cycles from first to last.
struct Meter {
    uint64_t beats = 0, first = 0, last = 0;

    void count(uint64_t cycle) {
        if (beats++ == 0) first = cycle;
        last = cycle;
    }

    double rate() const { return double(beats) / double(last - first + 1); }
};

// A worker's position in the job's stream.
struct Worker {
    uint32_t sending = 0;    // current or next chunk to send
    uint32_t receiving = 0;  // chunk of the next result
    int beat_in = 0;         // next beat of the chunk to send
    int beat_out = 0;        // next beat of the result
    Meter in, out;
};

class Bench {
  public:
    explicit Bench(const char *path) : pins(pins_of(top)), operands(path) {
        top.rst = 1;
        top.link_up = 0;
        top.s_reg_valid = 0;
        top.m_reg_ready = 1;
        for (auto &p : pins) {
            p.s_tvalid = 0;
            memset(&p.s_tkeep, 0xff, KEEP_BYTES);
            p.m_tready = 1;
        }
        idle(16);
        top.rst = 0;
        top.link_up = 1;
        idle(16);
    }

    // Sets the job up on all ports.
    void set_up() {
        write(CARD(REG_OWNER), TOKEN);
        write(CARD(REG_JOB_TOKEN), TOKEN);
        write(CARD(REG_JOB_PORTS), ALL_PORTS);
        write(CARD(REG_JOB_CHUNK), CHUNK);
        write(CARD(REG_JOB_WINDOW), WINDOW);
        write(CARD(REG_JOB_COMMIT), uint64_t(EPOCH) << 32);
    }

    uint64_t counter(uint32_t index) { return access(CARD(REG_COUNTERS) + 8 * index, false, 0); }

    // Sends one more chunk, with worker `last` after all others, and returns the cycles from its
    // last beat in to the first beat out at each port.
    uint64_t latency(int last) {
        uint32_t chunk = workers[0].sending;
        for (int i = 0; i < PORTS; i++) may_send[i] = i == last ? chunk : chunk + 1;
        idle(4 * BEATS + 64);
        may_send[last] = chunk + 1;
        uint64_t began = cycle, sent = 0, came[PORTS] = {};
        while (!received(chunk)) {
            tick();
            if (!sent && workers[last].sending == chunk + 1) sent = cycle;
            for (int p = 0; p < PORTS; p++) {
                if (!came[p] && workers[p].receiving == chunk && workers[p].beat_out > 0) came[p] = cycle;
            }
            check(cycle - began < BEATS * PATIENCE, "every port gets the result");
        }
        for (int p = 0; p < PORTS; p++) check(came[p] == came[0], "every port gets the result at once");
        return came[0] - sent;
    }

    // Sends that many chunks more as fast as the card takes them, to the last
    // result, and returns the cycles.
    uint64_t saturate(uint32_t chunks) {
        uint32_t end = workers[0].sending + chunks;
        for (auto &w : workers) w.in = w.out = Meter();
        trees = Meter();
        for (auto &to : may_send) to = end;
        uint64_t began = cycle;
        while (!received(end - 1)) {
            tick();
            check(cycle - began < chunks * BEATS * PATIENCE, "results come");
        }
        return cycle - began;
    }

    double rate_in() const { return slowest(&Worker::in); }
    double rate_out() const { return slowest(&Worker::out); }
    double rate_trees() const { return trees.rate(); }

  private:
    // Returns whether all workers have that chunk's result.
    bool received(uint32_t chunk) const {
        return std::all_of(workers, workers + PORTS, [=](const Worker &w) { return w.receiving > chunk; });
    }

    double slowest(Meter Worker::*place) const {
        double rate = 1;
        for (auto &w : workers) rate = std::min(rate, (w.*place).rate());
        return rate;
    }

    void idle(int cycles) {
        for (int i = 0; i < cycles; i++) tick();
    }

    // One clock cycle.
    void tick() {
        for (int i = 0; i < PORTS; i++) offer(i);
        top.clk = 0;
        top.eval();
        cycle++;
        for (int i = 0; i < PORTS; i++) move(i);
        if (top.beat_strobe) trees.count(cycle);
        top.clk = 1;
        top.eval();
    }

    // Offers the card a worker's next beat, if its window allows one.
    void offer(int i) {
        Pins &p = pins[size_t(i)];
        Worker &w = workers[i];
        p.s_tvalid = w.sending < std::min(may_send[i], w.receiving + WINDOW);
        if (!p.s_tvalid) return;
        if (w.beat_in == 0) show_header(p, i, w.sending);
        memcpy(&p.s_tdata, operands.beat(i, w.sending, w.beat_in), 4 * LANES);
        p.s_tlast = w.beat_in == BEATS - 1;
    }

    void show_header(Pins &p, int rank, uint32_t vid) {
        Packet h;
        h.kind = DATA;
        h.format = 1;
        h.epoch = EPOCH;
        h.rank = uint8_t(rank);
        h.length = CHUNK;
        h.vid = vid;
        std::vector<uint8_t> bytes = encode_header(h, false);
        memcpy(&p.s_tuser, bytes.data(), bytes.size());
    }

    // Records a port's beats in this cycle.
    void move(int i) {
        Pins &p = pins[size_t(i)];
        Worker &w = workers[i];
        if (p.s_tvalid && p.s_tready) {
            w.in.count(cycle);
            if (++w.beat_in == BEATS) {
                w.beat_in = 0;
                w.sending++;
            }
        }
        if (p.m_tvalid) {
            w.out.count(cycle);
            if (w.beat_out == 0) check_header(p, w.receiving);
            check(!memcmp(&p.m_tdata, operands.sum(w.receiving, w.beat_out), 4 * LANES), "the sum, bit for bit");
            if (++w.beat_out == BEATS) {
                w.beat_out = 0;
                w.receiving++;
            }
        }
    }

    static void check_header(const Pins &p, uint32_t vid) {
        uint8_t bytes[22];
        memcpy(bytes, &p.m_tuser, sizeof bytes);
        Packet h = decode_header(bytes, false);
        check(h.kind == RESULT && h.vid == vid, "results come in order, and nothing else");
    }

    void write(uint32_t addr, uint64_t value) { access(addr, true, value); }

    // Reads or writes a register and returns its new value.
    uint64_t access(uint32_t addr, bool is_write, uint64_t value) {
        top.s_reg_valid = 1;
        top.s_reg_write = is_write;
        top.s_reg_addr = addr;
        top.s_reg_wdata = value;
        for (int i = 0; i < 1000; i++) {
            top.clk = 0;
            top.eval();
            bool taken = top.s_reg_valid && top.s_reg_ready, answered = top.m_reg_valid;
            value = top.m_reg_value;
            check(!answered || top.m_reg_code == DONE, "a register is accessed");
            top.clk = 1;
            top.eval();
            if (taken) top.s_reg_valid = 0;
            if (answered) return value;
        }
        check(false, "a register access is answered");
        return 0;
    }

    VerilatedContext context;
    Vcard top{&context};
    std::vector<Pins> pins;
    Operands<PORTS, LANES, BEATS> operands;
    Worker workers[PORTS];
    uint32_t may_send[PORTS] = {};  // chunks below this one
    Meter trees;
    uint64_t cycle = 0;
};

}  // namespace

int main(int argc, char **argv) {
    check(argc == 3, "usage: saturate OPERANDS CHUNKS");
    Bench bench(argv[1]);
    bench.set_up();
    uint64_t least = ~uint64_t(0), most = 0;
    for (int last = 0; last < PORTS; last++) {
        uint64_t latency = bench.latency(last);
        least = std::min(least, latency);
        most = std::max(most, latency);
    }
    const uint32_t chunks = uint32_t(atoi(argv[2]));
    const uint64_t undecided = bench.counter(CARD(COUNT_UNDECIDED));
    const uint64_t stalled = bench.counter(CARD(COUNT_STALLED));
    const std::clock_t began = std::clock();
    const uint64_t cycles = bench.saturate(chunks);
    const double seconds = double(std::clock() - began) / CLOCKS_PER_SEC;
    printf("latency=%" PRIu64 " latency_max=%" PRIu64 " in=%.9g trees=%.9g out=%.9g beats=%" PRIu64 " undecided=%" PRIu64
           " stalled=%" PRIu64 " cycles=%" PRIu64 " seconds=%.6f\n",
           least, most, bench.rate_in(), bench.rate_trees(), bench.rate_out(), uint64_t(chunks) * BEATS,
           bench.counter(CARD(COUNT_UNDECIDED)) - undecided, bench.counter(CARD(COUNT_STALLED)) - stalled,
           cycles, seconds);
    return 0;
}
