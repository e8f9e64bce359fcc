// Tests of a card's USB device by a host at its pins. Each case checks a part of
// SPEC.md, section 9. The numbers are literals from there and from the USB
// specification, independent of all other files. There is a build for each kind of
// pins; gateware.h and cases.h of the folder ulpi or pair have the pins and their own
// cases.
//
//   device_bench HASH SERIAL IDENT CASE...    HASH: 16 hex digits; IDENT: 208
//   device_bench --list

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "device/faults.h"
#include "device/links.h"
#include "device/requests.h"
#include "device/stream.h"

namespace {

using Cases = std::map<std::string, void (*)(Device &)>;

}  // namespace

#include "cases.h"

namespace {

const Cases CASES = [] {
    Cases all = {
        {"descriptors", descriptors}, {"identify", identify},   {"refused", refused},
        {"states", states},           {"abandoned", abandoned}, {"garbage", garbage},
        {"out_sizes", out_sizes},     {"bursts", bursts},       {"pressure", pressure},
        {"echo", echo},               {"faults", faults},       {"repeats", repeats},
        {"halts", halts},             {"claims", claims},       {"waiting", waiting},
        {"bus_reset", bus_reset},     {"suspend", suspend},     {"rate", rate},
    };
    all.insert(OWN.begin(), OWN.end());
    return all;
}();

bool run(const std::string &name) {
    Device d;
    d.host.limit = 30'000'000;
    try {
        CASES.at(name)(d);
        printf("ok   %s, %.1f Mcycles\n", name.c_str(), d.host.now() / 1e6);
        return true;
    } catch (const std::exception &e) {
        printf("FAIL %s, cycle %llu: %s\n", name.c_str(), (unsigned long long)d.host.now(), e.what());
        return false;
    }
}

}  // namespace

int main(int argc, char **argv) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    if (argc == 2 && !strcmp(argv[1], "--list")) {
        for (const auto &[name, _] : CASES) puts(name.c_str());
        return 0;
    }
    if (argc < 5) {
        fputs("usage: device_bench HASH SERIAL IDENT CASE... | --list\n", stderr);
        return 2;
    }
    config_hash = argv[1];
    serial = argv[2];
    ident = hex(argv[3]);
    int failed = 0;
    for (int i = 4; i < argc; i++) {
        if (!CASES.count(argv[i])) {
            fprintf(stderr, "there is no case %s\n", argv[i]);
            return 2;
        }
        failed += !run(argv[i]);
    }
    return failed > 0;
}
