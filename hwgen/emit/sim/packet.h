// The aggregation packet from a host's view, for the testbench beside this file. Written from the
// specification, independently of the generator and the driver.

#ifndef PACKET_H
#define PACKET_H

#include <cstdint>
#include <vector>

enum Kind : uint8_t { DATA = 1, ASK = 2, FINISH = 3, READ = 4, WRITE = 5, RESULT = 8, REPLAY = 9, STATUS = 10, REPLY = 11 };
enum Code : uint8_t { DONE = 0, WAIT = 1, SEND = 2 };

struct Packet {
    Kind kind{};
    uint8_t flags = 0, job = 0, format = 0, rank = 0, code = 0;
    uint16_t epoch = 0, length = 0;
    uint32_t vid = 0;
    uint64_t mask = 0, receivers = 0;
    std::vector<uint32_t> payload;

    bool has_payload() const { return kind == DATA || kind == RESULT || kind == REPLAY; }
    bool has_mask() const { return kind == WRITE || kind >= RESULT; }
    bool has_receivers(bool shared) const { return shared && (kind == RESULT || kind == REPLAY); }
    size_t header_bytes(bool shared) const { return 14 + 8 * has_mask() + 8 * has_receivers(shared); }
};

constexpr uint8_t PROTOCOL = 2;

inline void put_bytes(std::vector<uint8_t> &to, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) to.push_back(uint8_t(value >> (8 * i)));
}

inline uint64_t get_bytes(const uint8_t *from, size_t bytes) {
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++) v |= uint64_t(from[i]) << (8 * i);
    return v;
}

inline std::vector<uint8_t> encode_header(const Packet &p, bool shared) {
    std::vector<uint8_t> h;
    put_bytes(h, PROTOCOL | p.kind << 4, 1);
    put_bytes(h, p.flags, 1);
    put_bytes(h, p.job, 1);
    put_bytes(h, p.format, 1);
    put_bytes(h, p.epoch, 2);
    put_bytes(h, p.rank, 1);
    put_bytes(h, p.code, 1);
    put_bytes(h, p.vid, 4);
    put_bytes(h, p.length, 2);
    if (p.has_mask()) put_bytes(h, p.mask, 8);
    if (p.has_receivers(shared)) put_bytes(h, p.receivers, 8);
    return h;
}

// Parses a header of its kind's length; leaves the payload empty.
inline Packet decode_header(const uint8_t *h, bool shared) {
    Packet p;
    p.kind = Kind(h[0] >> 4);
    p.flags = h[1];
    p.job = h[2];
    p.format = h[3];
    p.epoch = uint16_t(get_bytes(h + 4, 2));
    p.rank = h[6];
    p.code = h[7];
    p.vid = uint32_t(get_bytes(h + 8, 4));
    p.length = uint16_t(get_bytes(h + 12, 2));
    if (p.has_mask()) p.mask = get_bytes(h + 14, 8);
    if (p.has_receivers(shared)) p.receivers = get_bytes(h + 22, 8);
    return p;
}

#endif
