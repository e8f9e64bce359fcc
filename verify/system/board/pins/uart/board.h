// A board on a serial line, with a bridge's UART at the other end, which has its own clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "fpga.h"

namespace usb {

template <class Top> class UartBoardOf : public FpgaOf<Top> {
  public:
    explicit UartBoardOf(typename FpgaOf<Top>::Led led) : FpgaOf<Top>(std::move(led)) {
        top.uart_rx = 1;
        this->begin();
        demand(top.uart_tx, "the card's line is not at rest from the beginning");
        advance(2 * MS);  // until reset ends
        demand(top.uart_tx, "the card's line is not at rest after the reset");
    }

    using FpgaOf<Top>::time;

    std::deque<uint8_t> to_card, from_card;
    uint64_t passed = 0;   // bytes sent to the card
    uint64_t damaged = 0;  // bytes from the card with a low stop bit
    bool flips = false;    // the next byte has an inverted bit
    bool cuts = false;     // the next byte has no stop bit, and the line stays low for a while

    // Sets the bridge's bit time.
    void rate(double baud) { bit = uint64_t(1e15 / baud); }

    // The line is idle, and no byte waits.
    bool idle() const { return to_card.empty() && place < 0 && receiving < 0; }

    // Advances time to the next event on the line, or by a fraction of a bit.
    void work() {
        if (place < 0 && !to_card.empty()) begin_byte();
        uint64_t then = time() + bit / 4;
        if (place >= 0) then = std::min(then, sends);
        if (receiving >= 0) then = std::min(then, samples);
        advance(then);
        if (place >= 0 && time() >= sends) next_bit();
        if (receiving >= 0 && time() >= samples) sample();
    }

  private:
    using FpgaOf<Top>::advance;
    using FpgaOf<Top>::demand;
    using FpgaOf<Top>::step;
    using FpgaOf<Top>::top;

    static constexpr int START = 0, STOP = 9;

    void drive(bool level) {
        if (top.uart_rx == level) return;
        top.uart_rx = level;
        step(time());
    }

    void begin_byte() {
        frame = uint16_t(to_card.front() << 1 | 1 << STOP);
        to_card.pop_front();
        if (flips) frame ^= 1 << 4;
        if (cuts) frame &= ~(1 << STOP);
        flips = false;
        place = START;
        drive(false);
        sends = time() + bit;
    }

    // The line changes between bits. After a byte without a stop bit the line first returns to
    // idle.
    void next_bit() {
        if (place == STOP) {
            place = -1;
            passed++;
            if (!cuts) return;
            cuts = false;
            frame = 1 << STOP;
            place = STOP - 1;
            sends += 3 * bit;
            return;
        }
        place++;
        drive(frame >> place & 1);
        sends += bit;
    }

    // Samples the card's line in the middle of each bit, counted from the start bit's edge.
    void look_at_link() override {
        bool level = top.uart_tx;
        if (was && !level && receiving < 0) {
            receiving = START;
            byte = 0;
            samples = time() + bit / 2;
        }
        was = level;
    }

    void sample() {
        bool level = top.uart_tx;
        if (receiving == START) {
            demand(!level, "a start bit of the card is shorter than half a bit");
        } else if (receiving < STOP) {
            byte |= level << (receiving - 1);
        } else {
            if (level)
                from_card.push_back(byte);
            else
                damaged++;
            receiving = -1;
            return;
        }
        receiving++;
        samples += bit;
    }

    uint64_t bit = 1'000'000'000'000 / 3'000;  // fs
    uint16_t frame = 0;                        // the byte in transmission, with its start bit in bit 0
    int place = -1, receiving = -1;            // bits of the current bytes; -1: none
    uint64_t sends = 0, samples = 0;           // times of the next ones
    uint8_t byte = 0;
    bool was = true;
};

}  // namespace usb
