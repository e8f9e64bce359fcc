// The virtual card on Ethernet: moves frames between a pipe and the gateware's Ethernet ports. It
// contains no protocol and no arithmetic.
//
//   card [--trace FILE]
//
// Records on standard input and output consist of a letter, the number of an Ethernet port, a length
// of two bytes, low byte first, and as many bytes. To the card:
//
//   F  a frame with its FCS, which the MAC here checks
//   A  a number of eight bytes: run until the clock has had so many cycles
//   I  run until nothing moves any more
//
// From the card:
//
//   F  a frame with its FCS
//   I  the clock's cycles, in eight bytes: the answer to A and I
//
// While nothing moves, the card sleeps, and its clock stops. It ends with its standard input, and on
// SIGINT and SIGTERM.

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "mac.h"
#include "verilated.h"
#ifdef TRACE
#include "verilated_fst_c.h"
#endif

namespace {

constexpr uint64_t IDLE_CYCLES = 4096;  // cycles without movement before sleep
constexpr uint64_t LOOK_CYCLES = 64;    // cycles between looks at standard input while busy
constexpr int RESET_CYCLES = 16;
constexpr size_t FCS_BYTES = 4;
constexpr size_t HEAD_BYTES = 4;  // of a record

[[noreturn]] void fail(const std::string &what) {
    fprintf(stderr, "card: %s\n", what.c_str());
    exit(1);
}

uint32_t fcs(const uint8_t *data, size_t n) { return crc32(0xedb88320, data, n); }

// The gateware, its clock, and the MACs at its ports.
class Gateware {
  public:
    explicit Gateware(const char *trace_file) {
        for (EthernetPins &pins : ethernet_pins_of(top)) macs.emplace_back(pins);
#ifdef TRACE
        if (trace_file) {
            context.traceEverOn(true);
            top.trace(&trace, 99);
            trace.open(trace_file);
            if (!trace.isOpen()) fail(std::string("cannot write ") + trace_file);
            tracing = true;
        }
#else
        if (trace_file) fail("built without waveforms; use card_trace (make trace)");
#endif
        top.rst = 1;
        for (int i = 0; i < RESET_CYCLES; i++) step();
        top.rst = 0;
        for (int i = 0; i < RESET_CYCLES; i++) step();
        cycles = 0;
    }

    ~Gateware() {
        top.final();
#ifdef TRACE
        if (tracing) trace.close();
#endif
    }

    // Runs one cycle; returns whether anything moved.
    bool step() {
        for (Mac &m : macs) m.offer(false, true);
        edge(0);
        bool moved = top.beat_strobe;
        for (Mac &m : macs) moved = m.move() || moved;
        edge(1);
        cycles++;
        return moved;
    }

    std::vector<Mac> macs;
    uint64_t cycles = 0;

  private:
    void edge(int clk) {
        top.clk = clk;
        top.eval();
#ifdef TRACE
        if (tracing) trace.dump(context.time());
        context.timeInc(1);
#endif
    }

    VerilatedContext context;
    Vcard top{&context};
#ifdef TRACE
    VerilatedFstC trace;
    bool tracing = false;
#endif
};

// The pipe, and what its other end has asked for.
class Server {
  public:
    explicit Server(Gateware &g) : gateware(g) {}

    void run() {
        while (true) {
            for (uint64_t i = 0; i < LOOK_CYCLES && idle < IDLE_CYCLES; i++) {
                idle = gateware.step() ? 0 : idle + 1;
                send();
            }
            bool sleeps = idle >= IDLE_CYCLES;
            if (!serve(sleeps)) return;
        }
    }

  private:
    // Takes the records that have come, after it has waited for one if the card sleeps. Returns false
    // at the end.
    bool serve(bool sleeps) {
        fflush(stdout);
        pollfd p{STDIN_FILENO, POLLIN, 0};
        int n = poll(&p, 1, sleeps ? -1 : 0);
        if (n < 0 && errno != EINTR) fail(std::string("poll: ") + strerror(errno));
        if (n <= 0) return true;
        uint8_t buffer[64 * 1024];
        ssize_t got = read(STDIN_FILENO, buffer, sizeof buffer);
        if (got < 0 && errno != EINTR) fail(std::string("standard input: ") + strerror(errno));
        if (got == 0) return false;
        if (got > 0) in.insert(in.end(), buffer, buffer + got);
        size_t at = 0;
        while (in.size() - at >= HEAD_BYTES) {
            size_t size = in[at + 2] | in[at + 3] << 8;
            if (in.size() - at < HEAD_BYTES + size) break;
            record(char(in[at]), in[at + 1], in.data() + at + HEAD_BYTES, size);
            at += HEAD_BYTES + size;
        }
        in.erase(in.begin(), in.begin() + long(at));
        return true;
    }

    void record(char kind, size_t port, const uint8_t *data, size_t size) {
        if (kind == 'F') {
            if (port >= gateware.macs.size()) fail("a frame for Ethernet port " + std::to_string(port) + ", which the card lacks");
            take(port, data, size);
        } else if (kind == 'A' && size == 8) {
            uint64_t until = 0;
            memcpy(&until, data, size);
            while (gateware.cycles < until) {
                idle = gateware.step() ? 0 : idle + 1;
                send();
            }
            answer();
        } else if (kind == 'I' && size == 0) {
            for (uint64_t quiet = 0; quiet < IDLE_CYCLES;) {
                quiet = gateware.step() ? 0 : quiet + 1;
                send();
            }
            idle = IDLE_CYCLES;
            answer();
        } else {
            fail("a record that no card knows");
        }
    }

    // A MAC drops what is too short to have an FCS.
    void take(size_t port, const uint8_t *data, size_t size) {
        idle = 0;
        if (size <= FCS_BYTES) return;
        uint32_t sent = 0;
        memcpy(&sent, data + size - FCS_BYTES, FCS_BYTES);
        gateware.macs[port].send(Bytes(data, data + size - FCS_BYTES), sent != fcs(data, size - FCS_BYTES));
    }

    // Passes on the frames that the card has sent.
    void send() {
        for (size_t port = 0; port < gateware.macs.size(); port++) {
            while (gateware.macs[port].receive(frame)) {
                uint32_t crc = fcs(frame.data(), frame.size());
                const uint8_t *bytes = reinterpret_cast<const uint8_t *>(&crc);
                frame.insert(frame.end(), bytes, bytes + FCS_BYTES);
                write('F', port, frame.data(), frame.size());
            }
        }
    }

    void answer() {
        write('I', 0, reinterpret_cast<const uint8_t *>(&gateware.cycles), sizeof gateware.cycles);
        fflush(stdout);
    }

    static void write(char kind, size_t port, const uint8_t *data, size_t size) {
        const uint8_t head[HEAD_BYTES] = {uint8_t(kind), uint8_t(port), uint8_t(size), uint8_t(size >> 8)};
        if (fwrite(head, 1, sizeof head, stdout) != sizeof head || fwrite(data, 1, size, stdout) != size) fail("standard output is closed");
    }

    Gateware &gateware;
    Bytes in, frame;
    uint64_t idle = 0;  // cycles since the last movement
};

void stop(int) { _exit(0); }

}  // namespace

int main(int argc, char **argv) {
    const char *trace = nullptr;
    if (argc == 3 && std::string(argv[1]) == "--trace") {
        trace = argv[2];
    } else if (argc != 1) {
        fputs("usage: card [--trace FILE], with records on standard input and output\n", stderr);
        return 2;
    }
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    Gateware gateware(trace);
    Server(gateware).run();
    return 0;
}
