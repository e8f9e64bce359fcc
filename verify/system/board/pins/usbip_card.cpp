// A card on a board, served over USB/IP (the protocol is in Linux,
// Documentation/usb/usbip_protocol.rst). A host attaches the gateware's own device; a bus, a
// transceiver and a host controller connect them. All numbers on the connection are big-endian.
//
//    usbip_card [--faults PERCENT]
//
// It prints its port on 127.0.0.1, then a line for each change of an LED, and ends with its
// standard input. One host connects at a time; its connection is the cable. --faults damages or
// loses this percentage of the packets on the wire, but never makes a transfer fail. Its tasks
// (tasks.h), after this many more bytes to the card:
//
//    after BYTES unplug   pulls the cable,
//    after BYTES reset    resets the bus,
//    after BYTES halt N   halts endpoint N,
//    after BYTES flip     inverts a bit of the next byte from the host

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "board.h"
#include "tasks.h"

namespace {

using usb::Bytes;
using usb::fail;
using usb::Transfer;

// Numbers in the encoding of a message.
class Message {
  public:
    Message &u8(uint8_t n) {
        bytes.push_back(n);
        return *this;
    }
    Message &u16(uint16_t n) { return u8(n >> 8).u8(n); }
    Message &u32(uint32_t n) { return u16(n >> 16).u16(n); }
    Message &text(const char *letters, size_t size) {
        std::string padded(letters);
        padded.resize(size);
        bytes.insert(bytes.end(), padded.begin(), padded.end());
        return *this;
    }
    Message &add(const Bytes &more) {
        bytes.insert(bytes.end(), more.begin(), more.end());
        return *this;
    }
    Bytes bytes;
};

uint32_t u32(const uint8_t *at) { return at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3]; }

constexpr const char *BUS_ID = "1-1";
constexpr size_t REQUEST = 8, NAME = 32, HEAD = 48;  // bytes
constexpr uint64_t QUIET = 15'000;                   // idle cycles after which the clock stops
constexpr uint64_t LOOK = 2'000;                     // cycles between polls of the connection

class Server : usb::Told {
  public:
    explicit Server(usb::Board &card)
        : card(card), controller(card.host, [this](const Transfer &t, int32_t status) { ended(t, status); }) {
        listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof a;
        if (bind(listener, reinterpret_cast<sockaddr *>(&a), size) < 0 || listen(listener, 8) < 0)
            fail(strerror(errno));
        getsockname(listener, reinterpret_cast<sockaddr *>(&a), &size);
        printf("listening 127.0.0.1:%d\n", ntohs(a.sin_port));
        fflush(stdout);
    }

    void run() {
        while (!over) {
            if (host < 0 || !imported || quiet()) {
                look(-1);
                worked = card.host.now();
                continue;
            }
            if (controller.work()) worked = card.host.now();
            if (carry_out()) worked = card.host.now();
            if (card.host.now() - looked > LOOK) {
                look(0);
                looked = card.host.now();
            }
        }
    }

  private:
    bool quiet() const { return card.host.now() - worked > QUIET; }

    // Polls the connection, new connections, and the standard input.
    void look(int timeout) {
        pollfd fds[3] = {{listener, POLLIN, 0}, {host, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
        if (poll(fds, 3, timeout) <= 0) return;
        if (fds[2].revents && !listen_to_input()) over = true;
        if (fds[1].revents) receive();
        if (fds[0].revents) welcome();
    }

    uint64_t time() const override { return card.time(); }
    void pass() override { card.host.pass(7500); }
    uint64_t passed() const override { return controller.passed; }

    Task task_of(const std::string &name, std::istream &rest) override {
        int endpoint;
        if (name == "unplug") return [this] { leave(); };
        if (name == "reset") return [this] { controller.reset(); };
        if (name == "halt" && rest >> endpoint) return [this, endpoint] { controller.halt(endpoint); };
        if (name == "flip") return [this] { controller.flip(); };
        return nullptr;
    }

    void welcome() {
        int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) return;
        // After a host disconnects, the next can connect.
        if (host >= 0) receive();
        if (host >= 0) {
            close(fd);
            return;
        }
        int one = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        host = fd;
    }

    void leave() {
        close(host);
        host = -1;
        inbox.clear();
        if (imported) controller.unplug();
        imported = false;
    }

    void receive() {
        for (uint8_t buffer[65536]; host >= 0;) {
            ssize_t n = recv(host, buffer, sizeof buffer, MSG_DONTWAIT);
            if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
            if (n <= 0) {
                leave();
                return;
            }
            inbox.insert(inbox.end(), buffer, buffer + n);
        }
        size_t used = 0;
        for (size_t n; host >= 0 && (n = take(inbox.data() + used, inbox.size() - used)) > 0;) used += n;
        if (host >= 0) inbox.erase(inbox.begin(), inbox.begin() + used);
    }

    // Handles the message at the start of the inbox and returns its length, or 0 while it is
    // incomplete.
    size_t take(const uint8_t *at, size_t n) { return imported ? take_command(at, n) : take_request(at, n); }

    size_t take_request(const uint8_t *at, size_t n) {
        if (n < REQUEST) return 0;
        uint16_t code = at[2] << 8 | at[3];
        if (code == 0x8005) {  // the list of devices
            Message m = answer(0x0005);
            m.u32(1).add(info(controller.plug())).u8(0xff).u8('T').u8(1).u8(0);
            controller.unplug();
            send(m.bytes);
            return REQUEST;
        }
        if (code != 0x8003) {
            leave();
            return 0;
        }
        if (n < REQUEST + NAME) return 0;
        if (strncmp(reinterpret_cast<const char *>(at + REQUEST), BUS_ID, NAME)) {
            send(Message().u16(0x0111).u16(0x0003).u32(4).bytes);
            return REQUEST + NAME;
        }
        Message m = answer(0x0003);
        m.add(info(controller.plug()));
        imported = true;
        send(m.bytes);
        return REQUEST + NAME;
    }

    static Message answer(uint16_t code) { return Message().u16(0x0111).u16(code).u32(0); }

    // The device's entry in a list, with values from its descriptor.
    static Bytes info(const Bytes &d) {
        Message m;
        m.text("/sys/devices/tributary/1-1", 256).text(BUS_ID, 32).u32(1).u32(1).u32(3);  // bus, device, high speed
        m.u16(d[8] | d[9] << 8).u16(d[10] | d[11] << 8).u16(d[12] | d[13] << 8);
        m.u8(d[4]).u8(d[5]).u8(d[6]).u8(0).u8(d[17]).u8(1);
        return m.bytes;
    }

    size_t take_command(const uint8_t *at, size_t n) {
        if (n < HEAD) return 0;
        uint32_t command = u32(at), seq = u32(at + 4);
        bool to_host = u32(at + 12) == 1;
        if (command == 2) {
            bool was_there = controller.unlink(u32(at + 20));
            send(head(4, seq, was_there ? usb::UNLINKED : usb::GOOD, 0).bytes);
            return HEAD;
        }
        size_t length = u32(at + 24);
        if (command != 1 || length > 1 << 24) {
            leave();
            return 0;
        }
        size_t sent = to_host ? 0 : length;
        if (n < HEAD + sent) return 0;
        const uint8_t *s = at + 40;
        uint8_t endpoint = u32(at + 16) | (to_host ? 0x80 : 0);
        usb::Setup setup{s[0], s[1], uint16_t(s[2] | s[3] << 8), uint16_t(s[4] | s[5] << 8),
                         uint16_t(s[6] | s[7] << 8)};
        worked = card.host.now();
        controller.submit({seq, endpoint, setup, Bytes(at + HEAD, at + HEAD + sent), length});
        return HEAD + sent;
    }

    static Message head(uint32_t command, uint32_t seq, int32_t status, uint32_t actual) {
        Message m;
        m.u32(command).u32(seq).u32(0).u32(0).u32(0).u32(status).u32(actual);
        return m.text("", HEAD - m.bytes.size());
    }

    void ended(const Transfer &t, int32_t status) {
        bool to_host = t.endpoint & 0x80;
        size_t actual = to_host ? t.data.size() : (t.endpoint ? t.done : t.data.size());
        Message m = head(3, t.seq, status, actual);
        if (to_host) m.add(t.data);
        send(m.bytes);
    }

    void send(const Bytes &bytes) {
        for (size_t at = 0; host >= 0 && at < bytes.size();) {
            ssize_t n = ::send(host, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
            if (n > 0)
                at += n;
            else if (errno != EINTR)
                return;  // that it has left is seen by reading
        }
    }

    usb::Board &card;
    usb::Device controller;
    int listener = -1, host = -1;
    bool imported = false, over = false;
    Bytes inbox;
    uint64_t worked = 0, looked = 0;
};

// Damages and loses a percentage of the packets, and counts them. After two in a row it lets a
// few pass, so that no transfer fails three times in a row.
[[maybe_unused]] void damage(usb::Host &host, int percent, uint64_t &faults) {
    host.fault = [percent, &faults, row = 0, calm = 0, random = std::mt19937(1)]() mutable {
        const int CALM = 8;
        if (calm > 0)
            calm--;
        else if (int(random() % 100) < percent) {
            if (row++) row = 0, calm = CALM;
            faults++;
            return std::array{usb::Fault::TOKEN, usb::Fault::DATA, usb::Fault::HANDSHAKE}[random() % 3];
        }
        return usb::Fault::NONE;
    };
}

// A chip that is the USB device has no modelled packets on the wire.
[[maybe_unused]] void damage(usb::Bus &, int percent, uint64_t &) {
    if (percent) fail("--faults: the card is behind a chip");
}

void serve(int percent) {
    usb::Board card(usb::say_led);
    uint64_t faults = 0;
    damage(card.host, percent, faults);
    Server(card).run();
    printf("cycles=%llu transactions=%llu faults=%llu\n", (unsigned long long)card.host.now(),
           (unsigned long long)card.host.transactions, (unsigned long long)faults);
}

}  // namespace

int main(int argc, char **argv) {
    int percent = 0;
    if (argc == 3 && !strcmp(argv[1], "--faults"))
        percent = atoi(argv[2]);
    else if (argc != 1) {
        fputs("usage: usbip_card [--faults PERCENT]\n", stderr);
        return 2;
    }
    try {
        serve(percent);
    } catch (const usb::Violation &v) {
        fail(v.what());
    }
    return 0;
}
