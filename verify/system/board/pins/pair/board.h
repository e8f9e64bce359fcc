// A board with two USB pins at its FPGA, and a host at the other end of its cable. The device's
// clock does not appear at these pins; the host has its own clock.
#pragma once

#include "fpga.h"
#include "host.h"
#include "pair.h"

namespace usb {

template <class Top> class PairBoardOf : public FpgaOf<Top> {
  public:
    explicit PairBoardOf(typename FpgaOf<Top>::Led led)
        : FpgaOf<Top>(std::move(led)), host(phy, [this](Pair::Pins &p) { cycle(p); }, [] {}) {
        phy.slack = 1;
        host.full_speed = true;
        host.reset_us = 1000;
        power_up();
    }

    Pair phy;
    Host host;

    using FpgaOf<Top>::time;

  private:
    using FpgaOf<Top>::advance;
    using FpgaOf<Top>::demand;
    using FpgaOf<Top>::step;
    using FpgaOf<Top>::top;
    using FpgaOf<Top>::LIMIT;

    // Pair's cycle of the device: 60 MHz less 200 ppm, so that the host's edges take all
    // positions between those of the device's clock. Within a cycle the host's edges have
    // fractional positions.
    static constexpr uint64_t PERIOD = 16'669'999;
    static constexpr int PARTS = 4;
    static constexpr uint64_t HIDDEN = MS;  // the board shows no device for this time

    void power_up() {
        top.usb_d_p = top.usb_d_n = 0;
        this->begin();
        while (!top.usb_pull_up) {
            demand(time() < LIMIT, "D+ is never pulled up");
            host.cycle();
        }
        demand(time() > HIDDEN, "D+ is pulled up in the first millisecond");
    }

    void cycle(Pair::Pins &pins) {
        for (int part = 0; part < PARTS; part++) {
            advance(edge + part * PERIOD / PARTS);
            phy.drive(pins, double(part) / PARTS);
            move(pins);
        }
        edge += PERIOD;
        advance(edge);
        pins.d_p_out = top.usb_d_p__out;
        pins.d_n_out = top.usb_d_n__out;
        pins.oe = top.usb_d_p__en;
        pins.pull_up = top.usb_pull_up;
    }

    void move(const Pair::Pins &pins) {
        if (top.usb_d_p == pins.d_p_in && top.usb_d_n == pins.d_n_in) return;
        top.usb_d_p = pins.d_p_in;
        top.usb_d_n = pins.d_n_in;
        step(time());
    }

    void look_at_link() override {
        demand(top.usb_d_p__en == top.usb_d_n__en, "one of D+ and D- is driven, and the other is not");
        demand(!top.usb_d_p__en || top.usb_pull_up, "the lines are driven without the pull-up of D+");
    }

    uint64_t edge = 0;  // start of the cycle
};

}  // namespace usb
