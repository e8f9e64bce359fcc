// Hosts on a network at the simulated card's Ethernet ports: each port of the core has a member with
// an address of its own, and another host owns the card. Sends and receives datagrams in frames, with
// all their checks, and random pauses. Written from the specification.

#ifndef ETHERNET_H
#define ETHERNET_H

#include <deque>
#include <random>

#include "arithmetic.h"
#include "bench.h"
#include "card.h"
#include "mac.h"
#include "packet.h"

constexpr size_t ELEMENT_BYTES = size_t(format_of(FORMAT).bits) / 8;
constexpr size_t SUM_BYTES = size_t(format_of(RESULT_FORMAT).bits) / 8;

constexpr uint32_t CASTAGNOLI = 0x82f63b78;

// The Internet checksum's sum over bytes; their first one is the high one of a word.
inline uint32_t sum16(const uint8_t *data, size_t n, uint32_t sum = 0) {
    for (size_t i = 0; i < n; i++) sum += i % 2 ? data[i] : data[i] << 8;
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

struct Address {
    uint64_t mac;
    uint32_t ip;
    uint16_t port;
};

class Host {
  public:
    static constexpr bool SHARED = false;  // a member's copy of a result is its own
    static constexpr bool DATAGRAMS = true;

    explicit Host(std::mt19937_64 &random) : random(random) {
        for (EthernetPins &pins : ethernet_pins_of(top)) macs.emplace_back(pins);
        top.rst = 1;
        for (int i = 0; i < 16; i++) tick();
        top.rst = 0;
        for (int i = 0; i < 64; i++) tick();
    }

    // Returns the address of the member at a port of the core; that behind the last port is the owner.
    static Address member(int port) {
        return {0x020000001000ull + uint64_t(port), 0xc0a85401u + uint32_t(port), uint16_t(50000 + port)};
    }

    // Returns the Ethernet port behind which a member or the owner is.
    static int behind(int port) { return port % ETHERNET; }

    void send(const Packet &p, int port, Damage damage = Damage::NONE) {
        bool access = p.kind == READ || p.kind == WRITE;
        int sender = access ? PORTS : port;
        Bytes datagram = encode_header(p, true);
        for (uint32_t e : p.payload) put_bytes(datagram, e, ELEMENT_BYTES);
        put_bytes(datagram, crc32(CASTAGNOLI, datagram.data(), datagram.size()), 4);
        if (damage == Damage::HEADER) datagram[random() % p.header_bytes(true)] ^= uint8_t(1 << random() % 8);
        if (damage == Damage::PAYLOAD) datagram[14 + random() % (datagram.size() - 14)] ^= uint8_t(1 << random() % 8);
        macs[size_t(behind(sender))].send(frame(member(sender), datagram, access ? 2 : p.flags & 3));
    }

    // Returns the bytes queued for a port.
    size_t backlog(int port) const { return macs[size_t(behind(port))].queued() * (CHUNK * ELEMENT_BYTES + 60); }

    // Returns whether anything is queued or partly received.
    bool busy() const {
        for (const Mac &m : macs) {
            if (m.busy()) return true;
        }
        return false;
    }

    // Takes the next packet from the card, if there is one.
    bool receive(Packet &p) {
        Bytes f;
        for (size_t e = 0; e < macs.size(); e++) {
            if (!macs[e].receive(f)) continue;
            p = open(f, int(e));
            return true;
        }
        return false;
    }

    // Stages the addresses of a job's members.
    template <typename Write>
    void stage_members(const std::vector<int> &ports, Write write) {
        for (int p : ports) {
            const Address a = member(p);
            uint32_t at = CARD(REG_MEMBER_STRIDE) * uint32_t(p);
            write(CARD(REG_MEMBER_ADDRESS) + at, a.ip | uint64_t(a.port) << 32);
            write(CARD(REG_MEMBER_MAC) + at, a.mac | uint64_t(behind(p)) << 48);
        }
    }

    // Runs one clock cycle.
    void tick() {
        for (Mac &m : macs) m.offer(random() % 8 == 0, random() % 8 != 0);
        top.clk = 0;
        top.eval();
        for (Mac &m : macs) m.move();
        top.clk = 1;
        top.eval();
        cycles++;
    }

    uint64_t cycles = 0;

  private:
    static void put(Bytes &to, uint64_t value, size_t bytes) {
        while (bytes--) to.push_back(uint8_t(value >> (8 * bytes)));
    }

    static uint64_t get(const Bytes &from, size_t at, size_t bytes) {
        uint64_t v = 0;
        for (size_t i = 0; i < bytes; i++) v = v << 8 | from[at + i];
        return v;
    }

    // Puts a datagram from a host to the card into a frame.
    static Bytes frame(const Address &from, const Bytes &datagram, uint8_t ecn) {
        Bytes f;
        put(f, OWN_MAC, 6);
        put(f, from.mac, 6);
        put(f, 0x0800, 2);
        put(f, 0x4500 | ecn, 2);
        put(f, 28 + datagram.size(), 2);
        put(f, 0x4000, 4);
        put(f, 0x4011, 2);
        put(f, 0, 2);
        put(f, from.ip, 4);
        put(f, OWN_IP, 4);
        set16(f, 24, uint16_t(~sum16(f.data() + 14, 20)));
        put(f, from.port, 2);
        put(f, OWN_PORT, 2);
        put(f, 8 + datagram.size(), 2);
        put(f, 0, 2);
        f.insert(f.end(), datagram.begin(), datagram.end());
        uint16_t sum = udp_sum(f);
        set16(f, 40, uint16_t(sum == 0xffff ? 0xffff : ~sum));
        if (f.size() < 60) f.resize(60);
        return f;
    }

    static void set16(Bytes &f, size_t at, uint16_t value) {
        f[at] = uint8_t(value >> 8);
        f[at + 1] = uint8_t(value);
    }

    // Sum over a frame's UDP datagram and pseudo header.
    static uint16_t udp_sum(const Bytes &f) {
        size_t length = get(f, 38, 2);
        return uint16_t(sum16(f.data() + 34, length, sum16(f.data() + 26, 8, uint32_t(17 + length))));
    }

    // Checks a frame from the card, and returns its packet.
    Packet open(const Bytes &f, int ethernet) {
        size_t total = get(f, 16, 2), size = total - 28;
        check(get(f, 6, 6) == OWN_MAC && get(f, 12, 2) == 0x0800, "the frame is the card's, with an IPv4 packet");
        check(f[14] == 0x45 && get(f, 18, 4) == 0x4000 && get(f, 22, 2) == 0x4011, "UDP, not to be fragmented");
        check(f.size() == total + 14 && get(f, 38, 2) == total - 20, "the frame's lengths");
        check(sum16(f.data() + 14, 20) == 0xffff, "the IP header's checksum");
        check(get(f, 40, 2) != 0 && udp_sum(f) == 0xffff, "the UDP checksum");
        check(get(f, 26, 4) == OWN_IP && get(f, 34, 2) == OWN_PORT, "the frame's sender");
        const uint8_t *d = f.data() + 42;
        check(get_bytes(d + size - 4, 4) == crc32(CASTAGNOLI, d, size - 4), "the datagram's CRC");
        check((d[0] & 15) == PROTOCOL, "the card speaks its version");
        Packet p = decode_header(d, true);
        size_t header = p.header_bytes(true);
        if (p.has_payload()) {
            check(size == header + SUM_BYTES * p.length + 4, "the datagram's size");
            for (size_t i = 0; i < p.length; i++) p.payload.push_back(uint32_t(get_bytes(d + header + SUM_BYTES * i, SUM_BYTES)));
        } else {
            check(size == header + 4, "the datagram's size");
        }
        check((f[15] & 3) == (p.has_payload() ? p.flags & 3 : 2), "the mark in the IP header");
        int to = int(uint32_t(get(f, 30, 4)) - member(0).ip);
        check(to >= 0 && to <= PORTS, "the frame is for one of the hosts");
        const Address a = member(to);
        check(get(f, 0, 6) == a.mac && get(f, 36, 2) == a.port && ethernet == behind(to), "the receiver's address");
        check((p.kind == REPLY) == (to == PORTS), "replies are for the owner alone");
        if (p.has_payload()) p.receivers = uint64_t(1) << to;
        return p;
    }

    std::mt19937_64 &random;
    VerilatedContext context;
    Vcard top{&context};
    std::vector<Mac> macs;
};

#endif
