// Cases for a PHY, in the terms of ../device_bench.cpp.
#pragma once

namespace {

// A PHY abandons the device's packet; the host retries.
void abandoned_packets(Device &d) {
    d.attach();
    Bytes bytes = pattern(600, 8);
    for (int cycles : {2, 6, 7, 8, 20, 400}) {
        offer(d, bytes);
        d.host.pass(1000);
        d.phy.abandon = cycles;
        Bytes packet;
        same(d.host.in(d.in, packet), Result::FAILED, "IN that the PHY gives up");
        Bytes got;
        packets(d, got);
        same(got, bytes, "IN after one that the PHY gave up");
    }
}

// A PHY may interrupt a register write, which the link then repeats.
void interrupted_writes(Device &d) {
    d.attach();
    for (int step : {1, 2, 3}) {
        d.phy.interrupt = step;
        d.host.reset();
        same(d.phy.interrupt, 0, "a register was written");
        d.attach();
        fresh(d, "after a reset with a write that was interrupted");
    }
}

// A pulled cable acts as a long reset.
void unplugged(Device &d) {
    d.attach();
    in_the_middle(d);
    d.phy.vbus = false;
    d.phy.lines = usb::Lines::SE0;
    d.host.wait(400'000);
    check(!d.configured() && !d.link_up(), "a device that is unplugged has no configuration");
    d.phy.vbus = true;
    d.phy.lines = usb::Lines::IDLE;
    d.host.connect();
    d.attach();
    fresh(d, "plugged in again");
}

// A host without high speed: the same, with packets of 64 bytes.
void full_speed(Device &d) {
    d.host.full_speed = true;
    d.attach();
    check(!d.phy.high_speed() && d.link_up(), "the device is at full speed, and its link is up");
    asks(d, 0x80, 6, 0x0100, 0, DEVICE, "device descriptor");
    asks(d, 0x80, 6, 0x0200, 0, hex(CONFIGURATION_FULL_SPEED), "configuration descriptor");
    asks(d, 0xc0, 1, 0, 0, ident, "Identify");
    for (size_t n : {1, 63, 64, 65, 128, 300}) {
        Bytes bytes = pattern(n, n), got;
        offer(d, bytes);
        std::vector<size_t> want(n / 64, 64), sizes;
        want.push_back(n % 64);
        for (Bytes packet; next(d, packet, 20'000);) {
            sizes.push_back(packet.size());
            got.insert(got.end(), packet.begin(), packet.end());
        }
        check(sizes == want, "a burst of " + std::to_string(n) + " bytes came as " + list(sizes));
        same(got, bytes, "the bytes of a burst");
    }
    Bytes bytes = pattern(4000, 1);
    send(d, bytes, 64);
    d.host.pass(3000);
    same(d.from_host, bytes, "what the card got");
}

// The same device with PHYs that make other choices where the specification allows several.
void phys(Device &d) {
    d.attach();
    for (int accept : {1, 2, 3}) {
        for (int receive : {3, 5, 8}) {
            for (bool drop_dir : {false, true}) {
                d.phy.style = {accept, receive, accept - 1, drop_dir};
                d.claim();
                fresh(d,
                      "PHY " + std::to_string(accept) + " " + std::to_string(receive) + " " + std::to_string(drop_dir));
            }
        }
    }
}

const Cases OWN = {
    {"abandoned_packets", abandoned_packets},
    {"interrupted_writes", interrupted_writes},
    {"unplugged", unplugged},
    {"full_speed", full_speed},
    {"phys", phys},
};

}  // namespace
