// A board: the whole FPGA, Verilated, with its oscillator, the supply that it may set, and
// at its pins a PHY with a host behind it. What differs between boards is in facts.h.
//
// Time is in femtoseconds. The oscillator, the PHY and the PLL in the FPGA tick by
// themselves: no edge of one waits for another.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <string>

#include "Vboard_top.h"
#include "facts.h"
#include "host.h"
#include "phy.h"
#include "verilated.h"

namespace usb {

constexpr uint64_t US = 1'000'000'000, MS = 1000 * US;

// The names of its lamps, in the order of their bits.
constexpr const char *LAMPS[] = {"link", "traffic", "error"};

// It is a template so that pins which a board lacks are not looked at.
template <class Top> class BoardOf {
  public:
    // lamp: which, whether it is lit now, and the time.
    using Lamp = std::function<void(int, bool, uint64_t)>;

    explicit BoardOf(Lamp lamp)
        : host(phy, [this](Pins &p) { cycle(p); }, [] {}), lamp(std::move(lamp)) {
        power_up();
    }
    ~BoardOf() { top.final(); }

    Phy phy;
    Host host;

    uint64_t time() const { return context->time(); }

  private:
    // A PHY's own clock, a little beside 60 MHz as every crystal is (USB allows 500 ppm), so that all
    // places of its edges between those of the card's clock come to pass.
    static constexpr uint64_t PERIOD = 16'669'999;
    static constexpr uint64_t HALF = 8'333'333;  // a PHY's pins move so long after its clock's edge
    static constexpr uint64_t START = 50 * US;   // of a PHY's clock, after its reset
    static constexpr uint64_t PHY_RESET = MS;    // for which a board resets its PHY
    static constexpr uint64_t LIMIT = 50 * MS;   // until it must have

    // A filter makes the level of a supply, and switched on it rises. The times stand for a board's parts.
    static constexpr double FILTER = 5.0 * MS;
    static constexpr uint64_t RISE = 4 * MS;
    static constexpr double TOLERANCE = 1;  // per cent

    static void demand(bool holds, const char *what) {
        if (!holds) throw Violation(std::string("board: ") + what);
    }

    void power_up() {
        top.clk_in = 0;
        top.ulpi_dir = 1;
        top.ulpi_nxt = 0;
        top.ulpi_data = 0;
        if constexpr (Facts::CLOCK_FROM_PHY) top.ulpi_clk = 0;
        top.eval();
        demand(resets(), "the PHY is not in reset from the beginning");
        look();
        demand(shown == 0, "a lamp is lit from the beginning");
        if constexpr (Facts::HELD_PINS > 0)
            demand(top.led_held == Facts::HELD_LEVELS, "what lamps have in common has another level");
        while (resets()) host.cycle();
        uint64_t powered = Facts::SUPPLY_PINS ? enabled + RISE : 0;
        demand(!Facts::SUPPLY_PINS || enabled, "the PHY leaves its reset without a supply");
        demand(time() > powered + PHY_RESET, "the PHY is reset for less than a millisecond once it has its supply");
    }

    // The PHY is held in reset.
    bool resets() const { return top.ulpi_rst == Facts::RESET_LEVEL; }

    // A cycle of the PHY: its pins move; the link has the rest of the cycle to answer.
    void cycle(Pins &pins) {
        advance(edge + HALF);
        move(pins);
        if constexpr (Facts::CLOCK_FROM_PHY) {
            if (resets()) hold();
            advance(edge + PERIOD);
            observe(pins);
            edge += PERIOD;
            top.ulpi_clk = 1;
            step(edge);
        } else {
            for (bool was = true; was || !top.ulpi_clk; step(next())) {
                was = top.ulpi_clk;
                observe(pins);
                demand(time() < edge + LIMIT, "the PHY has no clock");
            }
            edge = time();
        }
        pins.rst = resets();
    }

    // A PHY in reset gives no clock.
    void hold() {
        while (resets()) {
            demand(time() < edge + LIMIT, "the PHY is kept in reset");
            advance(time() + US);
        }
        edge = time() + START - PERIOD;
    }

    void move(const Pins &pins) {
        phy_drives = pins.driven;
        top.ulpi_dir = pins.dir;
        top.ulpi_nxt = pins.nxt;
        // Where nobody drives them the pins have any level.
        top.ulpi_data = pins.driven ? pins.data_in : noise();
        if constexpr (Facts::CLOCK_FROM_PHY) top.ulpi_clk = 0;
        step(time());
    }

    void observe(Pins &pins) const {
        pins.data_out = top.ulpi_data__out;
        pins.data_oe = top.ulpi_data__en;
        pins.stp = top.ulpi_stp;
    }

    // ---- Time ----

    // The next edge of the oscillator or of the PLL.
    uint64_t next() { return top.eventsPending() ? std::min(top.nextTimeSlot(), oscillates) : oscillates; }

    // Lets time pass, up to what happens then.
    void advance(uint64_t then) {
        for (uint64_t t; (t = next()) < then;) step(t);
        context->time(then);
    }

    void step(uint64_t t) {
        context->time(t);
        if (t == oscillates) {
            top.clk_in = !top.clk_in;
            oscillates = ++half_periods * US / (2 * Facts::OSCILLATOR_MHZ);
        }
        top.eval();
        look();
    }

    // ---- What is looked at after whatever happens ----

    void look() {
        demand(top.ulpi_data__en == 0 || top.ulpi_data__en == 0xff, "some of the data pins are driven, and some not");
        demand(!(phy_drives && top.ulpi_data__en), "PHY and FPGA drive the data pins at once");
        int lit = ~(top.led_link | top.led_traffic << 1 | top.led_error << 2) & 7;
        if (Facts::LIT_LEVEL) lit ^= 7;
        if (lit != shown) {
            for (int i = 0; i < 3; i++) {
                if ((lit ^ shown) >> i & 1) lamp(i, lit >> i & 1, time());
            }
            shown = lit;
        }
        if constexpr (Facts::SUPPLY_PINS > 0) look_at_supply();
    }

    void look_at_supply() {
        const int all = (1 << Facts::SUPPLY_PINS) - 1;
        demand(top.supply_set == 0 || top.supply_set == all, "supplies are set apart");
        if (bool(top.supply_set) != setting || bool(top.supply_enable) != (enabled > 0)) {
            double settled = std::exp((double(set_at) - double(time())) / FILTER);
            level = setting * 100 * (1 - settled) + level * settled;
            setting = top.supply_set;
            set_at = time();
        }
        if (!top.supply_enable) {
            enabled = 0;
        } else {
            if (!enabled) enabled = time();
            demand(std::abs(level - Facts::SUPPLY_PERCENT) < TOLERANCE, "the supply is on, and set to another level");
        }
    }

    uint8_t noise() {
        random ^= random << 13, random ^= random >> 17, random ^= random << 5;
        return random;
    }

    Lamp lamp;
    std::unique_ptr<VerilatedContext> context = std::make_unique<VerilatedContext>();
    Top top{context.get()};

    uint64_t edge = 0;  // of the PHY's clock, the last
    uint64_t half_periods = 1, oscillates = US / (2 * Facts::OSCILLATOR_MHZ);  // the oscillator's, and its next edge
    uint32_t random = 1;
    bool phy_drives = false;
    int shown = 0;  // lamps that are lit
    bool setting = false;
    uint64_t set_at = 0, enabled = 0;
    double level = 0;  // of the supply, in per cent
};

using Board = BoardOf<Vboard_top>;

}  // namespace usb
