// A card's USB device alone: the Verilated module, with a host behind its pins. A test offers and
// takes the bytes at its stream ports.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "Vdevice.h"
#include "gateware.h"
#include "host.h"
#include "verilated.h"

namespace usb {

class Device {
  public:
    Device() : host(phy, [this](Model::Pins &p) { settle(p); }, [this] { rise(); }) {
        host.full_speed = PACKET == 64;
        if (host.full_speed) host.reset_us = 1000;
        top.rst = 1;
        top.link_clear = 1;
        top.tx_tvalid = top.rx_tready = 0;
        for (int i = 0; i < 8; i++) host.cycle();
        top.rst = 0;
        host.connect();
    }
    ~Device() { top.final(); }

    Model phy;
    Host host;

    // The stream ports. The functions are called in each cycle.
    std::deque<uint8_t> to_host;                         // bytes to send
    Bytes from_host;                                     // received bytes
    std::function<bool()> offers = [] { return true; };  // whether to offer the next byte of to_host
    std::function<bool()> takes = [] { return true; };   // whether to take an offered byte
    bool echo = false;                                   // send received bytes back
    int clear_after = 20;                                // cycles until link_clear follows link_up

    uint64_t link_falls = 0;
    bool link_up() const { return top.link_up; }
    bool link_clear() const { return top.link_clear; }
    bool configured() const { return top.configured; }
    bool suspended() const { return top.suspended; }
    uint64_t traffic = 0, moved = 0;  // cycles with `traffic` high, and bytes moved
    bool may_drop = false;            // the link may go down
    bool broken_offer = false;        // the device withdrew or changed an offered byte

    // The first requests of every host: reset, address 5, configuration 1, alternate setting 1.
    void attach() {
        host.reset();
        address = 0;
        set(0x00, 5, 5, 0);
        address = 5;
        host.pass(2 * 7500);
        set(0x00, 9, 1, 0);
        claim();
    }

    void claim() {
        set(0x01, 11, 1, 0);
        out = {address, 1, false, false};
        in = {address, 1, false, false};
    }

    Result control(uint8_t kind, uint8_t request, uint16_t value, uint16_t index, uint16_t length, Bytes &data) {
        return host.control(address, {kind, request, value, index, length}, data);
    }

    // A request without data, which must succeed.
    void set(uint8_t kind, uint8_t request, uint16_t value, uint16_t index) {
        Bytes none;
        if (control(kind, request, value, index, 0, none) != Result::DONE)
            throw Violation("USB: the device does not carry out a request");
    }

    uint8_t address = 0;
    Pipe out, in;

  private:
    void settle(Model::Pins &pins) {
        usb::drive(top, pins);
        offered = offered || (!to_host.empty() && offers());  // an offer stays until the byte is taken
        offered = offered && !to_host.empty();
        top.tx_tvalid = offered;
        top.tx_tdata = offered ? to_host.front() : 0xee;
        top.rx_tready = takes();
        follow_link();
        top.clk = 0;
        top.eval();
        usb::read(top, pins);
        watch_stream();
        if (top.tx_tvalid && top.tx_tready) {
            to_host.pop_front();
            offered = false;
            moved++;
        }
        if (top.rx_tvalid && top.rx_tready) {
            from_host.push_back(top.rx_tdata);
            if (echo) to_host.push_back(top.rx_tdata);
            moved++;
        }
        traffic += top.traffic;
    }

    void rise() {
        top.clk = 1;
        top.eval();
    }

    // The far side sees a change of link_up later. When it sees link_up fall, it drops its bytes.
    void follow_link() {
        if (was_up != bool(top.link_up) && bool(top.link_clear) != bool(top.link_up)) {
            throw Violation(top.link_up ? "the link comes up before the far side is ready"
                                        : "the link goes down before the far side has seen that it was up");
        }
        if (was_up && !top.link_up) link_falls++;
        was_up = top.link_up;
        since = bool(top.link_up) == bool(top.link_clear) ? since + 1 : 0;
        if (since > clear_after) {
            top.link_clear = !top.link_up;
            since = 0;
            if (top.link_clear) {
                to_host.clear();
                offered = false;
            }
        }
    }

    // AXI4-Stream: an offer stays unchanged until it is taken, or the link goes down.
    void watch_stream() {
        bool holds = top.rx_tvalid && top.rx_tdata == offered_byte;
        if (waiting && !holds && !may_drop) broken_offer = true;
        waiting = top.rx_tvalid && !top.rx_tready && top.link_up;
        offered_byte = top.rx_tdata;
    }

    VerilatedContext context;
    Vdevice top{&context};
    bool offered = false;
    bool was_up = false;
    int since = 0;
    bool waiting = false;
    uint8_t offered_byte = 0;
};

}  // namespace usb
