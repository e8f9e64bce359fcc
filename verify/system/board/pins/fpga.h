// An FPGA on a board: the complete Verilated design with its oscillator, a supply that it may
// switch, and LEDs. The board.h of a folder for each kind of link has the devices at the link's
// pins; facts.h has the differences between boards.
//
// Time is in femtoseconds. The oscillator, the devices at the link's pins and the FPGA's PLL run
// independently: no edge of one waits for another.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <string>

#include "facts.h"
#include "verilated.h"
#include "wire.h"

namespace usb {

constexpr uint64_t US = 1'000'000'000, MS = 1000 * US;

// The names of its LEDs, in the order of their bits.
constexpr const char *LEDS[] = {"link", "traffic", "error"};

// A template, so that pins which a board lacks are never accessed.
template <class Top> class FpgaOf {
  public:
    // LED: its index, whether it is lit now, and the time.
    using Led = std::function<void(int, bool, uint64_t)>;

    uint64_t time() const { return context->time(); }

  protected:
    explicit FpgaOf(Led led) : led(std::move(led)) {}
    ~FpgaOf() { top.final(); }

    static constexpr uint64_t LIMIT = 50 * MS;  // of any wait

    static void demand(bool holds, const char *what) {
        if (!holds) throw Violation(std::string("board: ") + what);
    }

    // Switches power on. The devices at the link's pins are ready.
    void begin() {
        top.clk_in = 0;
        top.eval();
        look();
        demand(shown == 0, "an LED is lit from the beginning");
        if constexpr (Facts::HELD_PINS > 0)
            demand(top.led_held == Facts::HELD_LEVELS, "what LEDs have in common has another level");
    }

    // Time at which the FPGA's supply has risen; 0 while it is off, or if the FPGA switches none.
    uint64_t supplied() const { return enabled ? enabled + RISE : 0; }

    // ---- Time ----

    // The next edge of the oscillator or of the PLL.
    uint64_t next() { return top.eventsPending() ? std::min(top.nextTimeSlot(), oscillates) : oscillates; }

    // Advances time to `then`, and handles the events of that moment.
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

  private:
    std::unique_ptr<VerilatedContext> context = std::make_unique<VerilatedContext>();

  protected:
    Top top{context.get()};

  private:
    // A filter sets the level of a supply, which rises after switching on. The times are typical
    // of a board's parts.
    static constexpr double FILTER = 5.0 * MS;
    static constexpr uint64_t RISE = 4 * MS;
    static constexpr double TOLERANCE = 1;  // per cent

    // ---- What is looked at after whatever happens ----

    virtual void look_at_link() = 0;

    void look() {
        look_at_link();
        int lit = ~(top.led_link | top.led_traffic << 1 | top.led_error << 2) & 7;
        if (Facts::LIT_LEVEL) lit ^= 7;
        if (lit != shown) {
            for (int i = 0; i < 3; i++) {
                if ((lit ^ shown) >> i & 1) led(i, lit >> i & 1, time());
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

    Led led;
    uint64_t half_periods = 1, oscillates = US / (2 * Facts::OSCILLATOR_MHZ);  // of the oscillator, and its next edge
    int shown = 0;                                                             // lit LEDs
    bool setting = false;
    uint64_t set_at = 0, enabled = 0;
    double level = 0;  // of the supply, in per cent
};

}  // namespace usb
