// Cases of the control endpoint: descriptors, requests, device states.
#pragma once

#include "device/judge.h"

namespace {

const Bytes DEVICE = hex("12 01 00 02 00 00 00 40 09 12 01 00 00 02 01 02 03 01");
const char *const CONFIGURATION_HIGH_SPEED =
    "09 02 29 00 01 01 00 c0 00"
    "09 04 00 00 00 ff 54 02 00"
    "09 04 00 01 02 ff 54 02 00"
    "07 05 01 02 00 02 00"
    "07 05 81 02 00 02 00";
const char *const CONFIGURATION_FULL_SPEED =
    "09 02 29 00 01 01 00 c0 00"
    "09 04 00 00 00 ff 54 02 00"
    "09 04 00 01 02 ff 54 02 00"
    "07 05 01 02 40 00 00"
    "07 05 81 02 40 00 00";
const Bytes CONFIGURATION = hex(HIGH_SPEED ? CONFIGURATION_HIGH_SPEED : CONFIGURATION_FULL_SPEED);

// Requests with all relevant lengths: too short, the descriptor's, whole packets, the maximum.
void asks(Device &d, uint8_t kind, uint8_t request, uint16_t value, uint16_t index, const Bytes &want,
          const std::string &what) {
    for (size_t length : {size_t(0), size_t(1), size_t(8), size_t(63), size_t(64), size_t(65), want.size() - 1,
                          want.size(), want.size() + 1, size_t(255), size_t(4096)}) {
        Bytes got;
        same(d.control(kind, request, value, index, length, got), Result::DONE, what);
        same(got, Bytes(want.begin(), want.begin() + std::min(length, want.size())), what);
    }
}

void stalls(Device &d, uint8_t kind, uint8_t request, uint16_t value, uint16_t index, uint16_t length,
            const std::string &what) {
    Bytes data(length);
    same(d.control(kind, request, value, index, length, data), Result::STALLED, what);
}

void status(Device &d, uint8_t kind, uint16_t index, uint8_t want, const std::string &what) {
    asks(d, kind, 0, 0, index, {want, 0}, what);
}

void descriptors(Device &d) {
    d.host.reset();
    // The first request of a host, at address 0.
    Bytes got;
    same(d.control(0x80, 6, 0x0100, 0, 64, got), Result::DONE, "device descriptor");
    same(got, DEVICE, "device descriptor");
    d.attach();
    asks(d, 0x80, 6, 0x0100, 0, DEVICE, "device descriptor");
    asks(d, 0x80, 6, 0x0200, 0, CONFIGURATION, "configuration descriptor");
    asks(d, 0x80, 6, 0x0300, 0, hex("04 03 09 04"), "languages");
    asks(d, 0x80, 6, 0x0301, 0x0409, string_descriptor("Tributary"), "manufacturer");
    // With 31 letters this string fills a packet, so a longer request ends with an empty packet.
    same(string_descriptor("Tributary card " + config_hash).size(), size_t(64), "size of the product's name");
    asks(d, 0x80, 6, 0x0302, 0x0409, string_descriptor("Tributary card " + config_hash), "product");
    asks(d, 0x80, 6, 0x0303, 0x0409, string_descriptor(serial), "serial number");
    for (int value : {0x0304, 0x03ee, 0x0600, 0x0700, 0x0101, 0x0201, 0x0400, 0x0500, 0x0000, 0x2100}) {
        stalls(d, 0x80, 6, value, 0, 64, "descriptor " + std::to_string(value));
    }
}

void identify(Device &d) {
    d.host.reset();
    same(ident.size(), size_t(104), "size of the identification block");
    asks(d, 0xc0, 1, 0, 0, ident, "Identify, without an address");
    d.attach();
    check(d.link_up(), "the link is up");
    asks(d, 0xc0, 1, 0, 0, ident, "Identify, link up");
    check(d.link_up() && d.link_falls == 0, "Identify leaves the link alone");
    d.set(0x01, 11, 0, 0);
    asks(d, 0xc0, 1, 0, 0, ident, "Identify, link down");
    stalls(d, 0xc0, 1, 1, 0, 104, "Identify with wValue 1");
    stalls(d, 0xc0, 1, 0, 1, 104, "Identify with wIndex 1");
    stalls(d, 0xc0, 1, 256, 0, 104, "Identify with wValue 256");
    stalls(d, 0xc1, 1, 0, 0, 104, "Identify to the interface");
    stalls(d, 0x40, 1, 0, 0, 0, "Identify as a command");
}

// The device stalls an unknown or impossible request; the next request clears the stall.
void refused(Device &d) {
    Bytes got;
    auto works = [&] {
        same(d.control(0x80, 6, 0x0100, 0, 18, got), Result::DONE, "the request after one that was stalled");
        same(got, DEVICE, "the answer after one that was stalled");
    };
    d.host.reset();
    // Without a configuration there is no interface 0 and no endpoint 1.
    for (auto [kind, request, value, index, length] : {std::tuple{0x01, 11, 1, 0, 0},
                                                       {0x81, 10, 0, 0, 1},
                                                       {0x81, 0, 0, 0, 2},
                                                       {0x82, 0, 0, 1, 2},
                                                       {0x82, 0, 0, 0x81, 2},
                                                       {0x02, 3, 0, 1, 0}}) {
        stalls(d, kind, request, value, index, length, "a request without configuration");
        works();
    }
    d.attach();
    for (auto [kind, request, value, index, length] :
         {std::tuple{0x00, 9, 2, 0, 0},                       // no such configuration
          {0x00, 9, 0x0101, 0, 0},      {0x01, 11, 2, 0, 0},  // no such alternate setting
          {0x01, 11, 1, 1, 0},                                // no such interface
          {0x81, 10, 0, 1, 1},          {0x81, 0, 0, 1, 2},
          {0x82, 0, 0, 2, 2},  // no such endpoint
          {0x82, 0, 0, 0x82, 2},        {0x02, 3, 0, 2, 0},
          {0x02, 1, 0, 0x82, 0},        {0x02, 3, 0, 0, 0},    // endpoint 0 cannot be halted
          {0x02, 3, 1, 1, 0},                                  // another feature
          {0x00, 3, 1, 0, 0},                                  // remote wakeup
          {0x00, 3, 2, 0x0100, 0},                             // USB's test modes
          {0x00, 1, 1, 0, 0},           {0x00, 5, 128, 0, 0},  // not an address
          {0x00, 7, 0x0100, 0, 18},                            // descriptors cannot be set
          {0x82, 12, 0, 0x81, 2},                              // no endpoint is isochronous
          {0xc0, 2, 0, 0, 8},           {0x40, 0, 0, 0, 0},
          {0x21, 0x22, 3, 0, 0},  // class request
          {0xa1, 0x21, 0, 0, 7},        {0xff, 0xff, 0xffff, 0xffff, 64},
          {0x00, 0xff, 0, 0, 0}}) {
        stalls(d, kind, request, value, index, length,
               "request " + std::to_string(kind) + " " + std::to_string(request));
        works();
    }
    check(d.link_up() && d.link_falls == 0, "refused requests leave the link alone");
    // A stall lasts until the next request.
    Pipe pipe{d.address, 0};
    Bytes request = usb::Setup{0xc0, 9, 0, 0, 8}.bytes(), data;
    same(d.host.out(pipe, usb::SETUP, request.data(), 8), Result::DONE, "SETUP");
    for (int i = 0; i < 3; i++) same(d.host.in(pipe, data), Result::STALLED, "IN of a request that is stalled");
    for (int i = 0; i < 3; i++)
        same(d.host.out(pipe, usb::OUT, nullptr, 0), Result::STALLED, "OUT of a request that is stalled");
    works();
}

// The device states of USB, chapter 9, and the requests that report them.
void states(Device &d) {
    d.host.reset();
    auto configuration = [&](uint8_t want) { asks(d, 0x80, 8, 0, 0, {want}, "GET_CONFIGURATION"); };
    auto setting = [&](uint8_t want) { asks(d, 0x81, 10, 0, 0, {want}, "GET_INTERFACE"); };
    configuration(0);
    check(!d.configured() && !d.link_up(), "nothing is configured after a reset");
    status(d, 0x80, 0, 1, "status of the device: powered by itself");
    d.set(0x00, 5, 93, 0);
    d.address = 93;
    d.host.pass(15000);
    configuration(0);
    d.set(0x00, 9, 1, 0);
    configuration(1);
    setting(0);
    check(d.configured() && !d.link_up(), "the link is down in alternate setting 0");
    status(d, 0x81, 0, 0, "status of the interface");
    status(d, 0x82, 0, 0, "status of endpoint 0");
    stalls(d, 0x82, 0, 0, 1, 2, "status of an endpoint that the setting does not have");
    d.claim();
    setting(1);
    check(d.link_up(), "the link is up in alternate setting 1");
    status(d, 0x82, 0x01, 0, "status of endpoint 1 OUT");
    status(d, 0x82, 0x81, 0, "status of endpoint 1 IN");
    d.set(0x01, 11, 0, 0);
    setting(0);
    d.host.pass(100);
    check(!d.link_up(), "the link goes down with alternate setting 0");
    d.claim();
    d.set(0x00, 9, 1, 0);
    d.host.pass(100);
    check(!d.link_up(), "the link goes down with the configuration that is set");
    setting(0);
    d.claim();
    d.set(0x00, 9, 0, 0);
    configuration(0);
    d.host.pass(100);
    check(!d.configured() && !d.link_up(), "configuration 0 takes the link down");
    // Absent endpoints do not answer.
    Bytes data(8);
    same(d.host.out(d.out, usb::OUT, data.data(), 8), Result::FAILED, "OUT without configuration");
    same(d.host.in(d.in, data), Result::FAILED, "IN without configuration");
    // A device does not answer at another address.
    d.address = 92;
    same(d.control(0x80, 8, 0, 0, 1, data), Result::FAILED, "another address");
}

// After an abandoned or restarted request, the device is ready for the next.
void abandoned(Device &d) {
    d.attach();
    Bytes data, request = usb::Setup{0xc0, 1, 0, 0, 104}.bytes(), got;
    for (int packets : {0, 1, 2}) {
        Pipe pipe{d.address, 0};
        same(d.host.out(pipe, usb::SETUP, request.data(), 8), Result::DONE, "SETUP");
        for (int i = 0; i < packets; i++) {
            Result r;
            do r = d.host.in(pipe, data);
            while (r == Result::NAKED);
            same(r, Result::DONE, "IN");
        }
        same(d.control(0x80, 6, 0x0100, 0, 64, got), Result::DONE, "the request after one that was given up");
        same(got, DEVICE, "the answer after one that was given up");
    }
    // A SETUP packet of another size is ignored, without an answer.
    Pipe pipe{d.address, 0};
    same(d.host.out(pipe, usb::SETUP, request.data(), 7), Result::FAILED, "a SETUP of 7 bytes");
    Bytes longer(64);
    pipe = {d.address, 0};
    same(d.host.out(pipe, usb::SETUP, longer.data(), 64), Result::FAILED, "a SETUP of 64 bytes");
    same(d.control(0x80, 6, 0x0100, 0, 64, got), Result::DONE, "the request after one that was none");
    same(got, DEVICE, "the answer after one that was none");
}

}  // namespace
