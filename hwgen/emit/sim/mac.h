// The MAC of one of the simulated card's Ethernet ports: frames without FCS, in words.

#ifndef MAC_H
#define MAC_H

#include <algorithm>
#include <deque>
#include <vector>

#include "bench.h"
#include "card.h"
#include "pins.h"

using Bytes = std::vector<uint8_t>;

// A CRC over bytes, low bit first, from ones, inverted at the end.
inline uint32_t crc32(uint32_t polynomial, const uint8_t *data, size_t n) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= data[i];
        for (int b = 0; b < 8; b++) crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
    }
    return ~crc;
}

class Mac {
  public:
    explicit Mac(EthernetPins pins) : pins(pins) {
        pins.rx_tvalid = 0;
        pins.tx_tready = 0;
    }

    // Queues a frame for the card; bad: its FCS was wrong.
    void send(Bytes frame, bool bad = false) { out.push_back({std::move(frame), bad}); }

    size_t queued() const { return out.size(); }

    // Returns whether a frame is queued or partly received.
    bool busy() const { return !out.empty() || !in.empty(); }

    // Takes the next whole frame from the card, if there is one.
    bool receive(Bytes &frame) {
        if (frames.empty()) return false;
        frame = std::move(frames.front());
        frames.pop_front();
        return true;
    }

    // Before a clock edge: offers the card a word, unless the MAC pauses, and takes one if it is ready.
    void offer(bool pause, bool ready) {
        pins.tx_tready = ready;
        pins.rx_tvalid = !pause && !out.empty() && gap == 0;
        gap -= gap > 0;
        if (!pins.rx_tvalid) return;
        const Frame &f = out.front();
        size_t n = std::min(WORD, f.bytes.size() - at);
        for (size_t i = 0; i < WORD; i++) put_byte(pins.rx_tdata, i, i < n ? f.bytes[at + i] : 0);
        pins.rx_tkeep = ~uint64_t(0) >> (64 - n);
        pins.rx_tlast = at + n == f.bytes.size();
        pins.rx_tuser = pins.rx_tlast && f.bad;
    }

    // After the card has seen these pins, before the edge: returns whether a word moved.
    bool move() {
        bool moved = pins.rx_tvalid || pins.tx_tvalid;
        if (pins.rx_tvalid) {
            at += WORD;
            if (pins.rx_tlast) {
                out.pop_front();
                at = 0;
                gap = GAP;
            }
        }
        check(in.empty() || pins.tx_tvalid, "a frame has no pause inside");
        if (pins.tx_tvalid && pins.tx_tready) take();
        return moved;
    }

  private:
    static constexpr size_t WORD = LINK_BITS / 8;
    static constexpr size_t GAP = 24 / WORD;  // cycles of preamble, FCS and the gap between frames

    struct Frame {
        Bytes bytes;
        bool bad;
    };

    void take() {
        size_t n = 0;
        while (n < WORD && (uint64_t(pins.tx_tkeep) >> n & 1)) in.push_back(get_byte(pins.tx_tdata, n++));
        check(n > 0 && pins.tx_tkeep == ~uint64_t(0) >> (64 - n), "a word's bytes are contiguous from the first");
        check(n == WORD || pins.tx_tlast, "words before a frame's last one are full");
        if (!pins.tx_tlast) return;
        check(in.size() >= 60, "a frame has 60 bytes or more");
        frames.push_back(std::move(in));
        in.clear();
    }

    EthernetPins pins;
    std::deque<Frame> out;
    std::deque<Bytes> frames;
    Bytes in;
    size_t at = 0, gap = 0;
};

#endif
