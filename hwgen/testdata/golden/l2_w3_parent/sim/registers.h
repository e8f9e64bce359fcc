// A host at the simulated card's register port, AXI4-Lite, with random pauses in all directions.

#ifndef REGISTERS_H
#define REGISTERS_H

#include <deque>
#include <random>

#include "bench.h"
#include "card.h"
#include "packet.h"

// Makes accesses, one after another, and replies to each as a card with a byte stream does.
class RegisterPort {
  public:
    explicit RegisterPort(Vcard &top) : top(top) {
        top.s_axil_awvalid = top.s_axil_wvalid = top.s_axil_bready = 0;
        top.s_axil_arvalid = top.s_axil_rready = 0;
        top.s_axil_awprot = top.s_axil_arprot = 0;
        top.s_axil_wstrb = 0xff;
    }

    void send(const Packet &access) { accesses.push_back(access); }

    // Returns whether an access waits for its reply.
    bool busy() const { return !accesses.empty(); }

    // Drives the port for a cycle. Address and data of a write come in either order.
    void offer(std::mt19937_64 &random) {
        if (step == Step::IDLE && !accesses.empty()) {
            reply = Packet{};
            if (accesses.front().kind == WRITE) {
                step = Step::WRITE;
                address = data = true;
            } else {
                read(accesses.front().vid);
            }
        }
        if (step == Step::WRITE && address && random() % 4 != 0) {
            top.s_axil_awvalid = 1;
            top.s_axil_awaddr = accesses.front().vid;
        }
        if (step == Step::WRITE && data && random() % 4 != 0) {
            top.s_axil_wvalid = 1;
            top.s_axil_wdata = accesses.front().mask;
        }
        if (step == Step::READ && address && random() % 4 != 0) {
            top.s_axil_arvalid = 1;
            top.s_axil_araddr = read_address;
        }
        top.s_axil_bready = random() % 4 != 0;
        top.s_axil_rready = random() % 4 != 0;
    }

    // Takes the transfers of the cycle.
    void move(std::deque<Packet> &received) {
        bool aw = top.s_axil_awvalid && top.s_axil_awready, w = top.s_axil_wvalid && top.s_axil_wready;
        bool ar = top.s_axil_arvalid && top.s_axil_arready;
        if (aw || ar) address = false;
        if (w) data = false;
        taken[0] = aw;
        taken[1] = w;
        taken[2] = ar;
        if (top.s_axil_bvalid && top.s_axil_bready) take_write(received);
        if (top.s_axil_rvalid && top.s_axil_rready) take_read(received);
    }

    // Ends the offers that were taken, after the clock's edge.
    void settle() {
        if (taken[0]) top.s_axil_awvalid = 0;
        if (taken[1]) top.s_axil_wvalid = 0;
        if (taken[2]) top.s_axil_arvalid = 0;
    }

  private:
    enum class Step { IDLE, WRITE, READ };
    enum Response { OKAY = 0, SLVERR = 2, DECERR = 3 };

    void read(uint32_t from) {
        step = Step::READ;
        address = true;
        read_address = from;
    }

    // A write's response lacks what a reply has: the register's value, or the reason of a refusal.
    void take_write(std::deque<Packet> &received) {
        check(step == Step::WRITE && !address && !data, "a response answers a write");
        switch (top.s_axil_bresp) {
        case OKAY: return read(accesses.front().vid);
        case SLVERR: return read(CARD(REG_LAST_CODE));
        default:
            check(top.s_axil_bresp == DECERR, "a response is OKAY, SLVERR or DECERR");
            reply.code = CARD(CODE_BAD_ADDRESS);
            answer(received);
        }
    }

    void take_read(std::deque<Packet> &received) {
        check(step == Step::READ && !address, "a response answers a read");
        check(top.s_axil_rresp == OKAY || top.s_axil_rresp == DECERR, "a read is refused for its address alone");
        bool refused = accesses.front().kind == WRITE && read_address != accesses.front().vid;
        if (refused) {
            reply.code = uint8_t(top.s_axil_rdata);
        } else if (top.s_axil_rresp == DECERR) {
            reply.code = CARD(CODE_BAD_ADDRESS);
        } else {
            reply.mask = top.s_axil_rdata;
        }
        answer(received);
    }

    void answer(std::deque<Packet> &received) {
        reply.kind = REPLY;
        reply.vid = accesses.front().vid;
        reply.length = accesses.front().length;
        received.push_back(reply);
        accesses.pop_front();
        step = Step::IDLE;
    }

    Vcard &top;
    std::deque<Packet> accesses;  // the first is under way
    Packet reply;                 // to it
    Step step = Step::IDLE;
    bool address = false, data = false;  // still to be taken
    bool taken[3] = {};                  // in this cycle: address and data of a write, address of a read
    uint32_t read_address = 0;
};

#endif
