// D+ and D- at the pins of an FPGA, at full speed, and a host's transceiver at the other end of
// the wire. It works on bits, where Phy works on bytes. SYNC, NRZI, stuffed bits, ends of
// packets, pull-up and reset follow USB 2.0, chapter 7, whose sections the comments name.
//
// Time is counted in cycles of the device; its bits have five. The host has its own clock, which
// may be off, and its edges may be early or late, anywhere in a cycle. Each bit from the device
// must take five cycles, exactly if the cycles are the device's own, so the host needs no clock
// recovery.
//
// A Violation by the gateware throws.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>

#include "wire.h"

namespace usb {

class Pair : public Wire {
  public:
    // The pins, named as the gateware names them.
    struct Pins {
        bool d_p_in = false, d_n_in = false;
        bool d_p_out = false, d_n_out = false;
        bool oe = false;
        bool pull_up = false;
    };

    // The flaw in the bits of the host's next packet.
    enum class Flaw {
        NONE,
        STUFFING,  // the first stuffed bit is a one
        CUT,       // the last byte lacks half of its bits
        DRIBBLE,   // an extra bit before the end, which hubs may add (7.1.9.1)
    };

    double bit = BIT;    // of the host, in cycles; may be off by 0.25 % (7.1.11)
    double jitter = 0;   // cycles by which each edge is early or late
    double skew = 0.06;  // delay of D- after D+, in cycles
    int slack = 0;       // cycles by which a level may seem longer or shorter: 1 if cycles are not the device's own
    Flaw flaw = Flaw::NONE;

    // Cycles from the end of the host's packet to the start of the answer.
    double fastest = INFINITY, slowest = 0;

    bool high_speed() const override { return false; }
    bool terminated() const override { return false; }
    bool chirping() const override { return false; }
    bool pulled_up() const override { return device.pull_up; }
    bool transmitting() const override { return device.oe; }

    void send(const Bytes &packet) override {
        std::vector<int> levels = encode(packet);
        flaw = Flaw::NONE;
        edges.clear();
        double begin = now + 1 + std::uniform_real_distribution<>(0, 1)(random);
        for (size_t i = 0; i < levels.size(); i++) {
            double off = random() % 2 ? jitter : -jitter;
            edges.push_back({begin + i * bit + off, levels[i]});
        }
        ended = edges[edges.size() - 1].at;
        busy_until = uint64_t(std::ceil(begin + levels.size() * bit));
        passed = 0;
    }

    // Sets the pins for this cycle, after `part` of it; the device samples them at its start.
    void drive(Pins &pins, double part = 0) {
        const double time = now + part;
        while (passed + 1 < edges.size() && edges[passed + 1].at + skew < time) passed++;
        pins.d_p_in = level(time) & 1;
        pins.d_n_in = level(time - skew) >> 1;
    }

    // Takes the device's outputs of this cycle.
    void sample(const Pins &pins) {
        demand(!(pins.oe && carries()), "drives the lines while the host does");
        demand(!(pins.oe && pins.d_p_out && pins.d_n_out), "drives both lines high");
        if (pins.oe) {
            int now_at = pins.d_p_out | pins.d_n_out << 1;
            if (!device.oe) begin(now_at);
            if (now_at != at) change(now_at);
            run++;
        } else if (device.oe) {
            finish();
        }
        device = pins;
        now++;
    }

  private:
    static constexpr int BIT = 5;                     // cycles
    static constexpr int SE0 = 0, J = 1, K = 2;       // D+ is bit 0
    static constexpr double EARLIEST = 2, LATEST = 6.5;  // bits before an answer (7.1.18.1)

    struct Edge {
        double at;
        int level;  // from there on
    };

    static void demand(bool holds, const std::string &what) {
        if (!holds) throw Violation("USB: the device " + what);
    }

    // ---- From the host ----

    // The level of each bit of a packet, and a J after it.
    std::vector<int> encode(const Bytes &packet) {
        std::vector<int> levels;
        int level = J, ones = 0;
        auto put = [&](bool bit) {
            ones = bit ? ones + 1 : 0;
            if (!bit) level ^= J ^ K;  // NRZI: a zero is an edge (7.1.8)
            levels.push_back(level);
        };
        for (int i = 0; i < 8; i++) put(i == 7);  // SYNC (7.1.10)
        for (size_t k = 0; k < packet.size(); k++) {
            bool half = flaw == Flaw::CUT && k + 1 == packet.size();
            for (int i = 0; i < (half ? 4 : 8); i++) {
                put(packet[k] >> i & 1);
                if (ones < 6) continue;
                if (flaw == Flaw::STUFFING) {
                    put(1);
                    ones = 0;
                    flaw = Flaw::NONE;
                } else {
                    put(0);  // 7.1.9
                }
            }
        }
        if (flaw == Flaw::DRIBBLE) levels.push_back(level);
        for (int end : {SE0, SE0, J}) levels.push_back(end);  // 7.1.13.2
        return levels;
    }

    // The host sends a packet.
    bool carries() const { return now < busy_until; }

    // The level of the lines.
    int level(double time) const {
        if (device.oe) return device.d_p_out | device.d_n_out << 1;
        if (carries()) {
            size_t i = passed;
            while (i + 1 < edges.size() && edges[i + 1].at < time) i++;
            return edges[i].at < time ? edges[i].level : J;
        }
        switch (vbus ? lines : Lines::IDLE) {
        case Lines::SE0:
            return SE0;
        case Lines::J:
            return J;
        case Lines::K:
            return K;
        case Lines::IDLE:
            break;
        }
        return device.pull_up ? J : SE0;
    }

    // ---- From the device ----

    void begin(int level) {
        double answer = now - ended;
        demand(answer >= EARLIEST * BIT && answer <= LATEST * BIT,
               "answers after " + std::to_string(answer / BIT) + " bit times");
        fastest = std::min(fastest, answer);
        slowest = std::max(slowest, answer);
        demand(level == K, "does not begin with a K");
        began = now;
        bits.clear();
        at = K;
        run = ends = 0;
    }

    // The lines were at a level for `run` cycles, and now change to another.
    void change(int level) {
        level_ends();
        at = level;
        run = 0;
    }

    void level_ends() {
        int n = (run + BIT / 2) / BIT;
        demand(n > 0 && std::abs(run - n * BIT) <= slack, "leaves the lines at a level for " + std::to_string(run) + " cycles");
        if (at == SE0 || ends) {
            ends++;
            demand(ends == 1 ? at == SE0 && n == 2 : ends == 2 && at == J && n == 1, "ends a packet wrongly");
            return;
        }
        bits.push_back(false);
        bits.insert(bits.end(), n - 1, true);
    }

    void finish() {
        level_ends();
        demand(ends == 2, "does not end its packet");
        sent.push_back({decode(), began, now});
    }

    Bytes decode() const {
        const std::vector<bool> sync{0, 0, 0, 0, 0, 0, 0, 1};
        demand(bits.size() > 8 && std::equal(sync.begin(), sync.end(), bits.begin()), "begins without SYNC");
        Bytes bytes;
        int ones = 1, count = 0;
        for (size_t i = 8; i < bits.size(); i++) {
            if (ones == 6) {
                demand(!bits[i], "stuffs no zero behind six ones");
                ones = 0;
                continue;
            }
            ones = bits[i] ? ones + 1 : 0;
            if (count++ % 8 == 0) bytes.push_back(0);
            bytes.back() |= bits[i] << (count - 1) % 8;
        }
        demand(ones < 6, "stuffs no zero at the end");
        demand(count % 8 == 0, "sends a part of a byte");
        return bytes;
    }

    std::mt19937 random{1};
    std::vector<Edge> edges;  // of the host's packet
    size_t passed = 0;        // of them
    double ended = 0;         // when J came after its end

    Pins device;  // in the cycle before
    std::vector<bool> bits;
    uint64_t began = 0;
    int at = J, run = 0, ends = 0;
};

}  // namespace usb
