// A virtual card whose clock the caller drives: the host of the card's own testbench (ports.h or
// link.h in its folder, with random pauses), controlled by lines on standard input.
//
//    card SEED
//
//    packet PORT KIND JOB FORMAT EPOCH RANK VID LENGTH ELEMENT...   sends a packet
//    read ADDRESS, write ADDRESS VALUE     accesses a register; the reply is "reply CODE VALUE"
//    until CYCLE     runs the clock; the reply is a line for each sent packet, then "now CYCLE":
//    sent KIND FLAGS JOB FORMAT EPOCH RANK CODE VID LENGTH MASK RECEIVERS ELEMENT...
//
// RECEIVERS has a bit for each rank on a link, or for each port. Exit status 1: the card broke a
// rule of its ports, or is still busy at CYCLE.

#include <cinttypes>
#include <cstdio>
#include <deque>
#include <iostream>
#include <random>
#include <sstream>
#include <string>

#include "card.h"
#ifdef CARD_HAS_LINK
#include "link.h"
#else
#include "ports.h"
#endif

namespace {

constexpr uint64_t PATIENCE = 5000;  // limit for a register access

// Reads n numbers.
std::vector<uint64_t> numbers(std::istringstream &line) {
    std::vector<uint64_t> all;
    for (uint64_t n; line >> n;) all.push_back(n);
    return all;
}

class Session {
  public:
    explicit Session(uint64_t seed) : random(seed) {}

    void run() {
        for (std::string text; std::getline(std::cin, text);) {
            std::istringstream line(text);
            std::string verb;
            line >> verb;
            std::vector<uint64_t> n = numbers(line);
            if (verb == "packet") {
                packet(n);
            } else if (verb == "read" || verb == "write") {
                access(verb == "write", n);
            } else {
                check(verb == "until", "the line is understood");
                until(n.at(0));
            }
        }
    }

  private:
    void packet(const std::vector<uint64_t> &n) {
        Packet p;
        p.kind = Kind(n.at(1));
        p.job = uint8_t(n.at(2));
        p.format = uint8_t(n.at(3));
        p.epoch = uint16_t(n.at(4));
        p.rank = uint8_t(n.at(5));
        p.vid = uint32_t(n.at(6));
        p.length = uint16_t(n.at(7));
        p.payload.assign(n.begin() + 8, n.end());
        host.send(p, int(n.at(0)));
    }

    void access(bool write, const std::vector<uint64_t> &n) {
        Packet p;
        p.kind = write ? WRITE : READ;
        p.vid = uint32_t(n.at(0));
        if (write) p.mask = n.at(1);
        host.send(p, 0);
        for (uint64_t i = 0; i < PATIENCE; i++) {
            tick();
            if (!sent.empty() && sent.back().kind == REPLY) {
                printf("reply %u %" PRIu64 "\n", sent.back().code, sent.back().mask);
                fflush(stdout);
                sent.pop_back();
                return;
            }
        }
        check(false, "a register is answered in time");
    }

    void until(uint64_t cycle) {
        while (host.cycles < cycle) tick();
        check(!host.busy(), "the card is at rest");
        for (const Packet &p : sent) {
            printf("sent %u %u %u %u %u %u %u %u %u %" PRIu64 " %" PRIu64, p.kind, p.flags, p.job, p.format, p.epoch, p.rank, p.code,
                   p.vid, p.length, p.mask, p.receivers);
            for (uint32_t e : p.payload) printf(" %u", e);
            printf("\n");
        }
        sent.clear();
        printf("now %" PRIu64 "\n", host.cycles);
        fflush(stdout);
    }

    // Advances one cycle, and collects the packets that the card has sent.
    void tick() {
        host.tick();
        for (Packet p; host.receive(p); p = Packet{}) sent.push_back(p);
    }

    std::mt19937_64 random;
    Host host{random};
    std::deque<Packet> sent;
};

}  // namespace

int main(int argc, char **argv) {
    check(argc == 2, "one argument: the seed");
    Session(strtoull(argv[1], nullptr, 10)).run();
    return 0;
}
