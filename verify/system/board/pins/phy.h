// A USB transceiver as the link sees it: the PHY of the UTMI+ Low Pin Interface (ULPI), revision
// 1.1, in synchronous mode, and the wire behind it.
//
// One side has the gateware's pins, a cycle of the 60 MHz clock at a time. The other side has
// packets, with the time of their bits, and the line states of a host's bus reset. Packets are
// bytes from the PID to the CRC, which the PHY neither builds nor checks. It follows the ULPI and
// USB 2.0 specifications, whose sections the comments name.
//
// A violation by the gateware throws a Violation.
#pragma once

#include <algorithm>

#include "wire.h"

namespace usb {

// The pins, named as the gateware names them.
struct Pins {
    uint8_t data_in = 0;  // PHY to link
    bool driven = false;  // by the PHY; while dir is high and this is false, the pins float
    bool dir = false;
    bool nxt = false;
    uint8_t data_out = 0;  // link to PHY
    bool data_oe = false;
    bool stp = false;
    bool rst = false;
};

class Phy : public Wire {
  public:
    using Pins = usb::Pins;

    // The PHY's choices where the specification allows several.
    struct Style {
        int accept = 1;         // cycles before a command is accepted
        int receive = 4;        // cycles from the end of SYNC on the wire to the first byte
        int end = 1;            // cycles from the end of packet on the wire to the end for the link
        bool drop_dir = false;  // dir falls at the end of a packet, before the RXCMD that reports it
    };

    Style style;
    int interrupt = 0;  // interrupts the next register write at its command, value or stp: 1, 2, 3
    int abandon = 0;    // abandons the device's next packet after this many cycles; 0: not

    bool high_speed() const override { return transceiver() == 0; }
    bool pulled_up() const override { return function & 0x04; }
    bool terminated() const override { return high_speed() && !pulled_up() && mode() == 0; }
    bool chirping() const override { return state == State::TRANSMIT && chirp; }

    void send(const Bytes &packet) override {
        incoming = {packet, spans(packet)};
        receiving = true;
        position = 0;
        // SYNC comes first, and the link does not see the first bits.
        due = now + cycles(sync_bits()) + style.receive;
        uint64_t bits = sync_bits() + end_bits();
        for (int span : incoming.spans) bits += span;
        busy_until = now + cycles(bits);
    }

    bool transmitting() const override { return state == State::TRANSMIT; }

    // Sets the PHY's outputs of this cycle.
    void drive(Pins &pins) {
        pins.dir = pins.nxt = false;
        pins.data_in = 0;
        pins.driven = state == State::RXCMD || state == State::RECEIVE;
        switch (state) {
        case State::START:
            pins.dir = true;
            return;
        case State::IDLE:
            return;
        case State::ACCEPT:
            pins.nxt = wait == 0;
            return;
        case State::WRITE:
            pins.nxt = true;
            return;
        case State::WRITTEN:
            return;
        case State::TRANSMIT:
            pins.nxt = debt <= 0;
            return;
        case State::TURN_RXCMD:
            pins.dir = true;
            return;
        case State::RXCMD:
            pins.dir = true;
            pins.data_in = rxcmd(false);
            return;
        case State::TURN_RECEIVE:
            pins.dir = pins.nxt = true;
            return;
        case State::RECEIVE:
            pins.dir = true;
            pins.nxt = byte_now();
            pins.data_in = pins.nxt ? incoming.bytes[position] : rxcmd(carried());
            return;
        case State::TURN_BACK:
            return;
        }
    }

    // Takes the link's outputs of this cycle.
    void sample(const Pins &pins) {
        check(pins);
        advance(pins);
        now++;
    }

  private:
    enum class State {
        START,
        IDLE,
        ACCEPT,
        WRITE,
        WRITTEN,
        TRANSMIT,
        TURN_RXCMD,
        RXCMD,
        TURN_RECEIVE,
        RECEIVE,
        TURN_BACK
    };

    struct Incoming {
        Bytes bytes;
        std::vector<int> spans;  // bits on the wire of each
    };

    // A bit takes 5 units of time; a cycle has 40 of them at high speed, 1 at full speed.
    int rate() const { return high_speed() ? 40 : 1; }
    uint64_t cycles(uint64_t bits) const { return (bits * 5 + rate() - 1) / rate(); }
    int sync_bits() const { return high_speed() ? 32 : 8; }  // USB 7.1.10
    int end_bits() const { return high_speed() ? 8 : 3; }    // USB 7.1.13.2

    // The number of bits of each byte: a zero is stuffed after six ones (USB 7.1.9). The final
    // one of SYNC counts.
    static std::vector<int> spans(const Bytes &bytes) {
        std::vector<int> all;
        int ones = 1;
        for (uint8_t byte : bytes) all.push_back(span(byte, ones));
        return all;
    }

    static int span(uint8_t byte, int &ones) {
        int bits = 8;
        for (int i = 0; i < 8; i++) {
            ones = byte >> i & 1 ? ones + 1 : 0;
            if (ones == 6) {
                bits++;
                ones = 0;
            }
        }
        return bits;
    }

    // Registers: function control 04, OTG control 0a (ULPI 4.2).
    int transceiver() const { return function & 0x03; }
    int mode() const { return function >> 3 & 0x03; }

    // LineState (ULPI 3.8.1.2, UTMI+ 4.3): the lines at full speed and during chirps, else
    // whether there is a signal.
    int line_state() const {
        if (terminated()) return state == State::RECEIVE && carried() ? 1 : 0;
        if (chirping()) return 2;
        if (state == State::RECEIVE && carried()) return 2;  // or 1, depending on the bits
        switch (lines) {
        case Lines::SE0:
            return 0;
        case Lines::J:
            return 1;
        case Lines::K:
            return 2;
        case Lines::IDLE:
            break;
        }
        return pulled_up() && !high_speed() ? 1 : 0;
    }

    uint8_t rxcmd(bool active) const {
        uint8_t vbus_state = vbus ? 3 : 0;
        return 0x40 | active << 4 | vbus_state << 2 | line_state();
    }

    // The incoming packet has not ended.
    bool carried() const { return position < incoming.bytes.size() || now < last_end; }

    // A byte of the packet is complete.
    bool byte_now() const { return position < incoming.bytes.size() && now >= due; }

    static void demand(bool holds, const char *what) {
        if (!holds) throw Violation(std::string("ULPI: the link ") + what);
    }

    void check(const Pins &pins) const {
        demand(pins.data_oe != pins.dir,
               pins.dir ? "drives the data while dir is high" : "leaves the data while dir is low");
        if (state == State::IDLE || state == State::TURN_BACK)
            demand(!pins.stp, "raises stp where nothing is to be stopped");
    }

    void advance(const Pins &pins) {
        if (pins.rst) {
            restart();
            return;
        }
        switch (state) {
        case State::START:
            if (--wait == 0) state = State::TURN_BACK;
            return;
        case State::IDLE:
        case State::TURN_BACK:
            idle(state == State::TURN_BACK ? 0 : pins.data_out);
            return;
        case State::ACCEPT:
            accept(pins);
            return;
        case State::WRITE:
            value = pins.data_out;
            state = interrupts(3) ? State::TURN_RXCMD : State::WRITTEN;
            return;
        case State::WRITTEN:
            demand(pins.stp, "does not end a register's write with stp");
            write();
            state = State::IDLE;
            return;
        case State::TRANSMIT:
            transmit(pins);
            return;
        case State::TURN_RXCMD:
            state = State::RXCMD;
            return;
        case State::RXCMD:
            told = rxcmd(false);
            if (!begins())
                state = State::TURN_BACK;
            else
                turn_receive();
            return;
        case State::TURN_RECEIVE:
            state = State::RECEIVE;
            return;
        case State::RECEIVE:
            receive();
            return;
        }
    }

    void restart() {
        state = State::START;
        wait = 100;
        function = 0x41;  // as after a reset (ULPI 4.2.2)
        told = 0;
        receiving = false;
    }

    // The turnaround and an RXCMD precede the first byte.
    bool begins() const { return receiving && now + 3 >= due; }

    void turn_receive() {
        state = State::TURN_RECEIVE;
        due = std::max(due, now + 3);
    }

    // The bus is idle. Incoming packets take precedence over the link's commands.
    void idle(uint8_t command) {
        if (begins()) {
            turn_receive();
        } else if (told != rxcmd(false)) {
            state = State::TURN_RXCMD;
        } else if (command >> 6 == 2 && interrupts(1)) {
            state = State::TURN_RXCMD;
        } else if (command) {
            held = command;
            wait = style.accept - 1;
            state = State::ACCEPT;
        } else {
            state = State::IDLE;
        }
    }

    // The link holds its command until it is accepted (ULPI 3.8.2).
    void accept(const Pins &pins) {
        demand(pins.data_out == held, "changes a command before it is accepted");
        if (wait-- > 0) return;
        switch (held >> 6) {
        case 1:
            begin_transmit();
            return;
        case 2:
            state = interrupts(2) ? State::TURN_RXCMD : State::WRITE;
            return;
        default:
            demand(false, "gives a command that it has no use for");
        }
    }

    bool interrupts(int step) {
        if (interrupt != step) return false;
        interrupt = 0;
        return true;
    }

    void write() {
        switch (held & 0x3f) {
        case 0x04:
            function = value;
            return;
        case 0x0a:
            return;  // pull-downs and VBUS, which a device does not set
        default:
            demand(false, "writes a register that it has no use for");
        }
    }

    void begin_transmit() {
        state = State::TRANSMIT;
        chirp = mode() == 2;
        demand(chirp == !(held & 0x0f), "sends a packet without PID, or one in the mode without bit stuffing");
        uint8_t pid = held & 0x0f;
        outgoing = {Bytes{uint8_t(~pid << 4 | pid)}, now + 1, 0};
        ones = 1;
        debt = 5 * (sync_bits() + span(outgoing.bytes[0], ones));
    }

    // Takes a byte whenever the wire has sent the last one.
    void transmit(const Pins &pins) {
        if (abandon && --abandon == 0) {
            told = 0;
            state = State::TURN_RXCMD;
            return;
        }
        if (pins.stp) {
            if (!chirp) {
                outgoing.end = now + cycles(std::max(debt, 0) / 5 + end_bits());
                sent.push_back(outgoing);
            }
            chirp = false;
            state = State::IDLE;
            return;
        }
        if (pins.nxt && !chirp) {
            outgoing.bytes.push_back(pins.data_out);
            debt += 5 * span(pins.data_out, ones);
        }
        debt = chirp ? 0 : std::max(debt - rate(), -rate());
    }

    void receive() {
        if (position < incoming.bytes.size()) {
            if (byte_now()) {
                units += 5 * incoming.spans[position];
                due += units / rate();
                units %= rate();
                position++;
                if (position == incoming.bytes.size()) last_end = due + cycles(end_bits()) + style.end;
                if (position == incoming.bytes.size() && style.drop_dir && high_speed()) finish();
            }
        } else if (now >= last_end) {
            finish();
        }
    }

    void finish() {
        told = style.drop_dir ? 0 : rxcmd(false);
        receiving = false;
        units = 0;
        state = State::TURN_BACK;
    }

    State state = State::START;
    int wait = 100;
    uint8_t function = 0x41;
    uint8_t held = 0, value = 0, told = 0;
    bool chirp = false;

    Sent outgoing;
    int ones = 0;
    int debt = 0;  // time units that the wire needs for the bytes taken

    bool receiving = false;
    Incoming incoming;
    size_t position = 0;
    uint64_t due = 0, last_end = 0;
    int units = 0;
};

}  // namespace usb
