// A card on a board with a serial port: a pseudo-terminal, and a bridge's UART at the other end
// of the board's line. The UART has the terminal's rate, and its own clock.
//
//    serial_card PATH [--off PERCENT]
//
// PATH becomes a link to the terminal. The program prints that it listens there, then a line for
// each change of an LED, and ends with its standard input. --off raises the bridge's rate above
// the terminal's. Bytes that the card sends while no host has the port open are lost. Its tasks
// (tasks.h), after this many more bytes to the card:
//
//    after BYTES unplug   unplugs the port and plugs it in again,
//    after BYTES flip     inverts a bit of the next byte,
//    after BYTES cut      sends the next byte without its stop bit; the line then stays low for a while

#include <asm/termbits.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "Vboard_top.h"
#include "tasks.h"
#include "uart/board.h"

namespace {

using usb::fail;

constexpr uint64_t QUIET = 250 * usb::US;  // idle time after which the clock stops
constexpr uint64_t LOOK = 30 * usb::US;    // between polls of the terminal
constexpr int VACANT = 10;                 // ms between polls while no host has the port open
constexpr size_t PIECE = 256;              // bytes that the bridge takes at a time

using Board = usb::UartBoardOf<Vboard_top>;

class Server : usb::Told {
  public:
    Server(Board &card, std::string path, double off) : card(card), path(std::move(path)), off(off) {
        plug();
        printf("listening %s\n", this->path.c_str());
        fflush(stdout);
    }

    ~Server() { unplug(); }

    void run() {
        while (!over) {
            if (card.idle() && card.time() - worked > QUIET) {
                look(-1);
                worked = card.time();
            } else if (card.time() - looked > LOOK) {
                look(0);
            }
            looked = card.time();
            while (!over && card.time() - looked <= LOOK && !(card.idle() && card.time() - worked > QUIET)) {
                card.work();
                if (!card.idle()) worked = card.time();
                carry_out();
            }
            hand_over();
        }
    }

  private:
    void plug() {
        master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
        if (master < 0 || unlockpt(master) < 0) fail(strerror(errno));
        termios2 line{};
        if (ioctl(master, TCGETS2, &line) < 0) fail(strerror(errno));
        line.c_iflag = line.c_oflag = line.c_lflag = 0;
        if (ioctl(master, TCSETS2, &line) < 0) fail(strerror(errno));
        unlink(path.c_str());
        if (symlink(ptsname(master), path.c_str()) < 0) fail(path + ": " + strerror(errno));
        used = false;
    }

    void unplug() {
        unlink(path.c_str());
        close(master);
    }

    // Waits for the host or the standard input, for `timeout` ms or without limit.
    void look(int timeout) {
        for (;;) {
            pollfd fds[2] = {{STDIN_FILENO, POLLIN, 0}, {master, POLLIN, 0}};
            if (poll(fds, 2, timeout) < 0 && errno != EINTR) fail(strerror(errno));
            if (fds[0].revents) {
                if (!listen_to_input()) over = true;
                return;
            }
            if (fds[1].revents & POLLIN) {
                take();
                return;
            }
            if (!(fds[1].revents & POLLHUP)) {
                if (timeout == 0) return;
                continue;
            }
            used = false;
            if (timeout == 0) return;
            pollfd input = {STDIN_FILENO, POLLIN, 0};
            poll(&input, 1, VACANT);
        }
    }

    // Takes the host's bytes, as far as the bridge has room.
    void take() {
        if (card.to_card.size() >= PIECE) return;
        uint8_t buffer[PIECE];
        ssize_t n = read(master, buffer, sizeof buffer);
        if (n <= 0) return;
        used = true;
        termios2 line{};
        if (ioctl(master, TCGETS2, &line) < 0) fail(strerror(errno));
        card.rate(line.c_ospeed * (1 + off / 100));
        card.to_card.insert(card.to_card.end(), buffer, buffer + n);
        worked = card.time();
    }

    // Passes received bytes to the host. Bytes without room are lost, as the line has no flow
    // control.
    void hand_over() {
        if (card.from_card.empty()) return;
        std::string bytes(card.from_card.begin(), card.from_card.end());
        card.from_card.clear();
        for (size_t at = 0; used && at < bytes.size();) {
            ssize_t n = write(master, bytes.data() + at, bytes.size() - at);
            if (n > 0) {
                at += n;
            } else if (errno == EAGAIN) {
                pollfd room = {master, POLLOUT, 0};
                poll(&room, 1, VACANT);  // simulated time stops for the host's process
            } else {
                used = false;
            }
        }
    }

    uint64_t time() const override { return card.time(); }
    void pass() override { card.work(); }
    uint64_t passed() const override { return card.passed; }

    Task task_of(const std::string &name, std::istream &) override {
        if (name == "unplug") return [this] { replug(); };
        if (name == "flip") return [this] { card.flips = true; };
        if (name == "cut") return [this] { card.cuts = true; };
        return nullptr;
    }

    void replug() {
        unplug();
        card.to_card.clear();
        plug();
    }

    Board &card;
    std::string path;
    double off;  // per cent
    int master = -1;
    bool used = false, over = false;
    uint64_t worked = 0, looked = 0;
};

}  // namespace

int main(int argc, char **argv) {
    if (argc != 2 && !(argc == 4 && !strcmp(argv[2], "--off"))) {
        fputs("usage: serial_card PATH [--off PERCENT]\n", stderr);
        return 2;
    }
    try {
        Board card(usb::say_led);
        Server(card, argv[1], argc == 4 ? atof(argv[3]) : 0).run();
        printf("bytes=%llu damaged=%llu\n", (unsigned long long)card.passed, (unsigned long long)card.damaged);
    } catch (const usb::Violation &v) {
        fail(v.what());
    }
    return 0;
}
