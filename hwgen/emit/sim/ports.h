// A host at the simulated card's AXI4-Stream ports and register port, with random pauses in all
// directions.

#ifndef PORTS_H
#define PORTS_H

#include <deque>
#include <random>
#include <vector>

#include "arithmetic.h"
#include "bench.h"
#include "card.h"
#include "packet.h"
#include "pins.h"
#include "registers.h"

constexpr size_t ELEMENT_BYTES = size_t(format_of(FORMAT).bits) / 8, BEAT_BYTES = ELEMENT_BYTES * LANES;
constexpr size_t SUM_BYTES = size_t(format_of(RESULT_FORMAT).bits) / 8, SUM_BEAT_BYTES = SUM_BYTES * LANES;

class Host {
  public:
    static constexpr bool SHARED = false;
    static constexpr bool DATAGRAMS = false;

    explicit Host(std::mt19937_64 &random) : random(random), pins(pins_of(top)), out(PORTS), in(PORTS) {
        top.rst = 1;
        top.link_up = 0;
        for (auto &p : pins) p.s_tvalid = p.m_tready = 0;
        for (int i = 0; i < 16; i++) tick();
        top.rst = 0;
        top.link_up = 1;
        for (int i = 0; i < 64; i++) tick();
    }

    // Queues a packet for a port, or a register access for the register port. A damaged
    // payload is marked as bad, as the port's user does; a packet with a damaged header is
    // never sent.
    void send(const Packet &p, int port, Damage damage = Damage::NONE) {
        if (p.kind == READ || p.kind == WRITE) {
            registers.send(p);
        } else if (damage != Damage::HEADER) {
            add_beats(p, out[size_t(port)], damage == Damage::PAYLOAD);
        }
    }

    // Returns the bytes queued for a port.
    size_t backlog(int port) const { return out[size_t(port)].size() * BEAT_BYTES; }

    // Returns whether anything is queued or partly received.
    bool busy() const {
        for (auto &queue : out) {
            if (!queue.empty()) return true;
        }
        for (auto &packet : in) {
            if (packet.kind) return true;
        }
        return registers.busy() || !received.empty();
    }

    // Takes the next packet from the card, if there is one.
    bool receive(Packet &p) {
        if (received.empty()) return false;
        p = received.front();
        received.pop_front();
        return true;
    }

    // Stages the addresses of a job's members: these have none.
    template <typename Write>
    void stage_members(const std::vector<int> &, Write) {}

    // Runs one clock cycle.
    void tick() {
        for (int i = 0; i < PORTS; i++) offer(i);
        registers.offer(random);
        top.clk = 0;
        top.eval();
        for (int i = 0; i < PORTS; i++) move(i);
        registers.move(received);
        top.clk = 1;
        top.eval();
        for (int i : taken) pins[size_t(i)].s_tvalid = 0;
        taken.clear();
        registers.settle();
        cycles++;
    }

    uint64_t cycles = 0;

  private:
    struct Beat {
        std::vector<uint8_t> header, data;
        bool last, bad;
    };

    void add_beats(const Packet &p, std::deque<Beat> &queue, bool bad) {
        std::vector<uint8_t> header = encode_header(p, false), body;
        for (uint32_t e : p.payload) put_bytes(body, e, ELEMENT_BYTES);
        if (body.empty()) queue.push_back({header, {}, true, false});
        for (size_t at = 0; at < body.size(); at += BEAT_BYTES) {
            bool last = at + BEAT_BYTES >= body.size();
            queue.push_back({header, {body.begin() + long(at), body.begin() + long(at + BEAT_BYTES)}, last, bad && last});
        }
    }

    // Offers the card a port's next beat, or none. An offered beat stays until accepted.
    void offer(int i) {
        Pins &p = pins[size_t(i)];
        auto &queue = out[size_t(i)];
        p.m_tready = random() % 8 != 0;
        if (!p.s_tvalid && !queue.empty() && random() % 8 != 0) {
            const Beat &b = queue.front();
            for (size_t k = 0; k < b.data.size(); k++) put_byte(p.s_tdata, k, b.data[k]);
            for (size_t k = 0; 8 * k < BEAT_BYTES; k++) put_byte(p.s_tkeep, k, b.data.empty() ? 0 : keep_byte(BEAT_BYTES, k));
            for (size_t k = 0; k < 14; k++) put_byte(p.s_tuser, k, b.header[k]);
            put_byte(p.s_tuser, 14, b.bad);
            p.s_tlast = b.last;
            p.s_tvalid = 1;
        }
    }

    // Returns byte k of a tkeep with all bytes valid.
    static uint8_t keep_byte(size_t beat, size_t k) {
        size_t rest = beat - 8 * k;
        return uint8_t(rest >= 8 ? 0xff : (1u << rest) - 1);
    }

    void move(int i) {
        Pins &p = pins[size_t(i)];
        if (p.m_tvalid && p.m_tready) take_beat(i);
        if (p.s_tvalid && p.s_tready) {
            out[size_t(i)].pop_front();
            taken.push_back(i);
        }
    }

    void take_beat(int i) {
        Pins &p = pins[size_t(i)];
        Packet &packet = in[size_t(i)];
        if (packet.kind == 0) {
            uint8_t header[22];
            for (size_t k = 0; k < sizeof header; k++) header[k] = get_byte(p.m_tuser, k);
            packet = decode_header(header, false);
            packet.receivers = packet.has_payload() ? uint64_t(1) << i : 0;
            check((header[0] & 15) == PROTOCOL, "the card speaks its version");
        }
        bool data = packet.has_payload();
        for (size_t k = 0; 8 * k < SUM_BEAT_BYTES; k++) {
            check(get_byte(p.m_tkeep, k) == (data ? keep_byte(SUM_BEAT_BYTES, k) : 0), "tkeep: all of a beat of payload, none of others");
        }
        for (size_t at = 0; data && at < SUM_BEAT_BYTES; at += SUM_BYTES) {
            uint32_t e = 0;
            for (size_t k = 0; k < SUM_BYTES; k++) e |= uint32_t(get_byte(p.m_tdata, at + k)) << (8 * k);
            packet.payload.push_back(e);
        }
        if (p.m_tlast) {
            check(packet.payload.size() == (data ? packet.length : 0u), "a packet is as long as its length says");
            received.push_back(packet);
            packet = Packet{};
        }
    }

    std::mt19937_64 &random;
    VerilatedContext context;
    Vcard top{&context};
    RegisterPort registers{top};
    std::vector<Pins> pins;
    std::vector<std::deque<Beat>> out;   // beats to send, by port
    std::vector<Packet> in;              // packet being received, by port; kind 0: none
    std::vector<int> taken;              // ports whose beat was accepted in this cycle
    std::deque<Packet> received;
};

#endif
