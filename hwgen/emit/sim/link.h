// A host at the simulated card's byte-stream link: sends and receives frames with CRCs, in words of
// any number of bytes, with random pauses in both directions.

#ifndef LINK_H
#define LINK_H

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>

#include "arithmetic.h"
#include "bench.h"
#include "card.h"
#include "packet.h"

// CRC-16/CCITT-FALSE, bit by bit.
inline uint16_t crc16(uint16_t crc, const uint8_t *data, size_t n) {
    for (size_t i = 0; i < n; i++) {
        crc ^= uint16_t(data[i] << 8);
        for (int b = 0; b < 8; b++) crc = uint16_t(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
    }
    return crc;
}

constexpr size_t ELEMENT_BYTES = size_t(format_of(FORMAT).bits) / 8;
constexpr size_t SUM_BYTES = size_t(format_of(RESULT_FORMAT).bits) / 8;
constexpr uint8_t SYNC[4] = {0xa5, 'T', 'R', 'B'};

class Host {
  public:
    static constexpr bool SHARED = true;
    static constexpr bool DATAGRAMS = false;

    explicit Host(std::mt19937_64 &random) : random(random) {
        top.rst = 1;
        top.link_up = 0;
        top.link_rx_tvalid = 0;
        top.link_tx_tready = 0;
        for (int i = 0; i < 16; i++) tick();
        top.rst = 0;
        top.link_up = 1;
        for (int i = 0; i < 64; i++) tick();
    }

    // Queues a packet. Only cards with separate ports use the port; on a link, the header's rank
    // identifies the sender.
    void send(const Packet &p, int /*port*/, Damage damage = Damage::NONE) {
        std::vector<uint8_t> f(SYNC, SYNC + 4), h = encode_header(p, true);
        uint16_t crc = crc16(0xffff, h.data(), h.size());
        f.insert(f.end(), h.begin(), h.end());
        put_crc(f, crc);
        if (damage == Damage::HEADER) f[4 + random() % h.size()] ^= uint8_t(1 << random() % 8);
        if (p.has_payload()) {
            std::vector<uint8_t> body;
            for (uint32_t e : p.payload) put_bytes(body, e, ELEMENT_BYTES);
            crc = crc16(crc, body.data(), body.size());
            if (damage == Damage::PAYLOAD) body[random() % body.size()] ^= uint8_t(1 << random() % 8);
            f.insert(f.end(), body.begin(), body.end());
            put_crc(f, crc);
        }
        out.insert(out.end(), f.begin(), f.end());
    }

    // Returns the bytes queued for a port.
    size_t backlog(int /*port*/) const { return out.size(); }

    // Returns whether anything is queued or partly received.
    bool busy() const { return !out.empty() || !in.empty(); }

    // Takes the next packet from the card, if there is one.
    bool receive(Packet &p) {
        if (in.size() < 4 + 14) return false;
        check(memcmp(in.data(), SYNC, 4) == 0, "a frame begins with the sync word");
        size_t header = Packet{Kind(in[4] >> 4)}.header_bytes(true);
        if (in.size() < 4 + header + 2) return false;
        p = decode_header(in.data() + 4, true);
        check((in[4] & 15) == PROTOCOL, "the card speaks its version");
        uint16_t crc = crc16(0xffff, in.data() + 4, header);
        check(crc_at(4 + header) == crc, "the header's CRC");
        size_t frame = 4 + header + 2;
        if (p.has_payload()) {
            size_t body = SUM_BYTES * p.length;
            if (in.size() < frame + body + 2) return false;
            crc = crc16(crc, in.data() + frame, body);
            check(crc_at(frame + body) == crc, "the payload's CRC");
            for (size_t i = 0; i < p.length; i++) {
                p.payload.push_back(uint32_t(get_bytes(in.data() + frame + SUM_BYTES * i, SUM_BYTES)));
            }
            frame += body + 2;
        }
        in.erase(in.begin(), in.begin() + long(frame));
        return true;
    }

    // Stages the addresses of a job's members: these have none.
    template <typename Write>
    void stage_members(const std::vector<int> &, Write) {}

    // Runs one clock cycle.
    void tick() {
        size_t n = std::min(out.size(), size_t(LINK_BITS / 8));
        if (random() % 4 == 0) n = std::min(n, size_t(random() % (LINK_BITS / 8 + 1)));
        uint64_t word = 0;
        for (size_t i = 0; i < n; i++) word |= uint64_t(out[i]) << (8 * i);
        top.link_rx_tdata = word;
        top.link_rx_tkeep = (1u << n) - 1;
        top.link_rx_tvalid = n > 0;
        top.link_tx_tready = random() % 8 != 0;
        top.clk = 0;
        top.eval();
        if (top.link_rx_tvalid && top.link_rx_tready) out.erase(out.begin(), out.begin() + long(n));
        if (top.link_tx_tvalid && top.link_tx_tready) take(top.link_tx_tdata, top.link_tx_tkeep);
        top.clk = 1;
        top.eval();
        cycles++;
    }

    uint64_t cycles = 0;

  private:
    static void put_crc(std::vector<uint8_t> &to, uint16_t crc) {
        to.push_back(uint8_t(crc >> 8));
        to.push_back(uint8_t(crc));
    }

    uint16_t crc_at(size_t i) const { return uint16_t(in[i] << 8 | in[i + 1]); }

    void take(uint64_t word, unsigned keep) {
        check(keep != 0 && (keep & (keep + 1)) == 0, "a word's bytes are contiguous from the first");
        for (; keep; keep >>= 1, word >>= 8) in.push_back(uint8_t(word));
    }

    std::mt19937_64 &random;
    VerilatedContext context;
    Vcard top{&context};
    std::deque<uint8_t> out;
    std::vector<uint8_t> in;
};

#endif
