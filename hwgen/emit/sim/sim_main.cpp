// The virtual card: moves bytes between a socket and the gateware's link pins. It contains no
// protocol and no arithmetic.
//
//   card --listen unix:PATH|tcp:HOST:PORT [--once] [--end-with-stdin] [--trace FILE]
//
// A connected host is a link that is up. The card serves one host at a time and
// closes a second connection at once, without a byte. After a host leaves, the card
// still moves its bytes; the link goes down when nothing moves any more, or when the
// next host connects. While nothing moves, the card sleeps, and its clock stops. It
// ends on SIGINT and SIGTERM; with --once, after its first host; with
// --end-with-stdin, when its standard input ends, for example because the other end
// of a pipe died.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "card.h"
#include "verilated.h"
#ifdef TRACE
#include "verilated_fst_c.h"
#endif

namespace {

constexpr size_t WORD = LINK_BITS / 8;          // bytes per cycle on the link
constexpr size_t BUFFER = 256 * 1024;           // capacity in bytes, in each direction
constexpr uint64_t IDLE_CYCLES = 4096;          // cycles without movement before sleep
constexpr uint64_t LOOK_CYCLES = 1024;          // cycles between polls of the sockets while busy
constexpr uint64_t RECEIVE_CYCLES = 16;         // cycles between reads while the host is silent
constexpr uint64_t SEND_CYCLES = 32;            // silent cycles before the card's bytes are sent
constexpr size_t SEND_BYTES = 16 * 1024;        // bytes that are sent without waiting for silence
constexpr int RESET_CYCLES = 16;
constexpr int DOWN_CYCLES = 64;                 // cycles for which a link is down between hosts

[[noreturn]] void fail(const std::string &what) {
    fprintf(stderr, "card: %s\n", what.c_str());
    exit(1);
}

[[noreturn]] void fail_errno(const std::string &what) { fail(what + ": " + strerror(errno)); }

[[noreturn]] void fail_bind(const std::string &where) {
    fail(where + ": " + strerror(errno) + (errno == EADDRINUSE ? "; stop the program that listens there, or use another address" : ""));
}

volatile sig_atomic_t stopped = 0;
void stop(int) { stopped = 1; }

// A byte FIFO in one piece of memory.
class Buffer {
  public:
    size_t size() const { return end - begin; }
    const uint8_t *data() const { return memory.get() + begin; }
    void drop(size_t n) {
        begin += n;
        if (begin == end) begin = end = 0;
    }
    void clear() { begin = end = 0; }
    // Makes room for at least `want` bytes after the last one; `added` reports how many came.
    uint8_t *room(size_t want) {
        if (CAPACITY - end < want) {
            memmove(memory.get(), data(), size());
            end -= begin;
            begin = 0;
        }
        return memory.get() + end;
    }
    void added(size_t n) { end += n; }

  private:
    static constexpr size_t CAPACITY = 2 * BUFFER;
    std::unique_ptr<uint8_t[]> memory{new uint8_t[CAPACITY]};
    size_t begin = 0, end = 0;
};

// The gateware, its clock, and the words at its link pins.
class Gateware {
  public:
    explicit Gateware(const char *trace_file) {
        top.rst = 1;
        top.link_up = 0;
        top.link_rx_tvalid = 0;
        top.link_tx_tready = 1;
#ifdef TRACE
        if (trace_file) {
            context.traceEverOn(true);
            top.trace(&trace, 99);
            trace.open(trace_file);
            if (!trace.isOpen()) fail(std::string("cannot write ") + trace_file);
            tracing = true;
        }
#else
        if (trace_file) fail("built without waveforms; use card_trace (make trace)");
#endif
        for (int i = 0; i < RESET_CYCLES; i++) cycle();
        top.rst = 0;
        cycle();
    }

    ~Gateware() {
        top.final();
#ifdef TRACE
        if (tracing) trace.close();
#endif
    }

    void link(bool up) {
        top.link_rx_tvalid = 0;
        top.link_tx_tready = 1;
        top.link_up = up;
        for (int i = 0; i < DOWN_CYCLES; i++) cycle();
    }

    // Runs one cycle: offers the card bytes from rx and appends its output to tx. Returns whether
    // anything moved.
    bool step(Buffer &rx, Buffer &tx) {
        size_t n = std::min(rx.size(), WORD);
        uint64_t word = 0;
        memcpy(&word, rx.data(), n);
        top.link_rx_tdata = word;
        top.link_rx_tkeep = (1u << n) - 1;
        top.link_rx_tvalid = n > 0;
        top.link_tx_tready = tx.size() < BUFFER;
        low();  // evaluates the card's outputs for these pins
        bool taken = top.link_rx_tvalid && top.link_rx_tready;
        bool sent = top.link_tx_tvalid && top.link_tx_tready;
        if (sent) {
            uint64_t out = top.link_tx_tdata;
            size_t m = __builtin_popcount(top.link_tx_tkeep);
            memcpy(tx.room(WORD), &out, WORD);
            tx.added(m);
            tx_bytes += m;
        }
        if (taken) {
            rx.drop(n);
            rx_bytes += n;
        }
        bool beat = top.beat_strobe;
        beats += beat;
        high();
        return taken || sent || beat;
    }

    uint64_t cycles = 0, beats = 0, rx_bytes = 0, tx_bytes = 0;

  private:
    void low() {
        top.clk = 0;
        top.eval();
        dump();
    }

    void high() {
        top.clk = 1;
        top.eval();
        dump();
        cycles++;
    }

    void cycle() {
        low();
        high();
    }

    void dump() {
#ifdef TRACE
        if (tracing) trace.dump(context.time());
        context.timeInc(1);
#endif
    }

    VerilatedContext context;
    Vcard top{&context};
#ifdef TRACE
    VerilatedFstC trace;
    bool tracing = false;
#endif
};

// The socket that hosts connect to.
class Listener {
  public:
    explicit Listener(const std::string &address) {
        if (address.rfind("unix:", 0) == 0) {
            listen_unix(address.substr(5));
        } else if (address.rfind("tcp:", 0) == 0) {
            listen_tcp(address.substr(4));
        } else {
            fail("--listen " + address + ": must be unix:PATH or tcp:HOST:PORT");
        }
        if (::listen(fd, 8) < 0) fail_errno(name);
        printf("listening %s\n", name.c_str());
        fflush(stdout);
    }

    ~Listener() {
        close(fd);
        if (!path.empty()) unlink(path.c_str());
    }

    // Returns a new connection, or -1.
    int accept() {
        int host = accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        int one = 1;
        if (host >= 0) setsockopt(host, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        return host;
    }

    int fd = -1;

  private:
    void listen_unix(const std::string &to) {
        sockaddr_un a{};
        a.sun_family = AF_UNIX;
        if (to.empty() || to.size() >= sizeof a.sun_path) fail("--listen unix:" + to + ": the path is empty or too long");
        memcpy(a.sun_path, to.c_str(), to.size() + 1);
        name = "unix:" + to;
        remove_stale(a);
        open_socket(AF_UNIX);
        if (bind(fd, reinterpret_cast<sockaddr *>(&a), sizeof a) < 0) fail_bind(name);
        path = to;
    }

    // Removes a stale socket, which would block a new one.
    void remove_stale(const sockaddr_un &a) {
        struct stat st;
        if (lstat(a.sun_path, &st) < 0 || !S_ISSOCK(st.st_mode)) return;
        int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(probe, reinterpret_cast<const sockaddr *>(&a), sizeof a) < 0 && errno == ECONNREFUSED) unlink(a.sun_path);
        close(probe);
    }

    void listen_tcp(const std::string &to) {
        size_t colon = to.rfind(':');
        if (colon == std::string::npos) fail("--listen tcp:" + to + ": must be tcp:HOST:PORT");
        std::string host = to.substr(0, colon), port = to.substr(colon + 1);
        if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
        addrinfo hints{}, *found = nullptr;
        hints.ai_socktype = SOCK_STREAM;
        hints.ai_flags = AI_PASSIVE;
        int err = getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
        if (err) fail("--listen tcp:" + to + ": " + gai_strerror(err));
        name = "tcp:" + to;
        open_socket(found->ai_family);
        int one = 1;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(fd, found->ai_addr, found->ai_addrlen) < 0) fail_bind(name);
        freeaddrinfo(found);
        name = "tcp:" + to.substr(0, colon) + ":" + std::to_string(bound_port());
    }

    int bound_port() const {
        sockaddr_storage a{};
        socklen_t size = sizeof a;
        if (getsockname(fd, reinterpret_cast<sockaddr *>(&a), &size) < 0) fail_errno(name);
        return ntohs(a.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6 &>(a).sin6_port
                                             : reinterpret_cast<sockaddr_in &>(a).sin_port);
    }

    void open_socket(int family) {
        fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0) fail_errno(name);
    }

    std::string name, path;
};

// Connects the host's socket to the gateware.
class Server {
  public:
    // `input`: the server ends when this descriptor becomes readable; -1 for none.
    Server(Gateware &g, Listener &l, bool once, int input) : gateware(g), listener(l), once(once), input(input) {}

    void run() {
        while (!stopped && !finished) {
            if (host >= 0 && host_left && (idle >= IDLE_CYCLES || (host_deaf && rx.size() == 0))) {
                hang_up();
            } else if (host < 0 || idle >= IDLE_CYCLES) {
                look(-1);
            } else {
                work();
            }
        }
        if (host >= 0) close(host);
    }

  private:
    // Runs cycles until the next poll of the sockets, or until nothing moves any more.
    void work() {
        for (uint64_t i = 0; i < LOOK_CYCLES && idle < IDLE_CYCLES; i++) {
            if (rx.size() == 0 && i % RECEIVE_CYCLES == 0) receive();
            size_t before = tx.size();
            idle = gateware.step(rx, tx) ? 0 : idle + 1;
            silence = tx.size() != before ? 0 : silence + 1;
            if (tx.size() >= SEND_BYTES ? i % SEND_CYCLES == 0 : tx.size() > 0 && silence == SEND_CYCLES) send();
        }
        send();
        look(0);
    }

    // Accepts hosts and serves the current one; a negative timeout sleeps until an
    // event.
    void look(int timeout) {
        short events = 0;
        if (rx.size() == 0 && !host_left) events |= POLLIN;
        if (tx.size() > 0) events |= POLLOUT;
        // poll ignores a descriptor of -1.
        pollfd fds[3] = {{listener.fd, POLLIN, 0}, {host, events, 0}, {input, POLLIN, 0}};
        timespec now{};
        int n = ppoll(fds, 3, timeout < 0 ? nullptr : &now, &awake);
        if (n < 0 && errno != EINTR) fail_errno("poll");
        if (n <= 0) return;
        bool stuck = timeout < 0 && rx.size() > 0;
        if (fds[1].revents & (POLLIN | POLLHUP | POLLERR)) receive();
        if (fds[1].revents & POLLOUT) {
            send();
            idle = 0;
        }
        // A card that accepts nothing from a gone host would otherwise keep poll busy.
        if (stuck && fds[1].revents & (POLLHUP | POLLERR)) host_left = true;
        if (fds[0].revents) welcome();
        if (fds[2].revents) read_input();
    }

    // Skips pending input, and notes its end.
    void read_input() {
        char unused[256];
        ssize_t n = read(input, unused, sizeof unused);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) finished = true;
    }

    // Accepts a new connection as the host, or closes it while the present host is
    // connected.
    void welcome() {
        int fd = listener.accept();
        if (fd < 0) return;
        if (host >= 0 && (host_left || gone())) hang_up();
        if (host >= 0 || finished) {
            close(fd);
            return;
        }
        host = fd;
        host_left = host_deaf = false;
        idle = silence = 0;
        gateware.link(true);
    }

    // Returns whether the host has closed its side, even with bytes unread.
    bool gone() const {
        pollfd p{host, POLLRDHUP, 0};
        return poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
    }

    void hang_up() {
        close(host);
        host = -1;
        rx.clear();
        tx.clear();
        gateware.link(false);
        finished = once;
    }

    void receive() {
        if (host_left || rx.size() > 0) return;
        ssize_t n = recv(host, rx.room(BUFFER), BUFFER, 0);
        if (n > 0) {
            rx.added(n);
            idle = 0;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            host_left = true;
        }
    }

    // Sends as much as the socket accepts. Drops output for a host that left: a card that repeats
    // its notices of overdue chunks would otherwise continue forever.
    void send() {
        if (tx.size() == 0) return;
        ssize_t n = ::send(host, tx.data(), tx.size(), MSG_NOSIGNAL);
        if (n >= 0) {
            tx.drop(n);
        } else if (errno != EAGAIN && errno != EINTR) {
            host_left = host_deaf = true;
            tx.clear();
        }
    }

    Gateware &gateware;
    Listener &listener;
    const bool once;
    const int input;
    sigset_t awake = [] {
        sigset_t set;
        sigprocmask(SIG_BLOCK, nullptr, &set);
        sigdelset(&set, SIGINT);
        sigdelset(&set, SIGTERM);
        return set;
    }();
    int host = -1;
    bool host_left = false;  // it sends no more; its bytes are still being moved
    bool host_deaf = false;  // nor does it read
    bool finished = false;
    uint64_t idle = 0;     // cycles since the last movement
    uint64_t silence = 0;  // cycles since the card's last byte
    Buffer rx, tx;
};

// Signals are unblocked only while the card polls its sockets, so that none arrives between a check
// and a sleep.
void block_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    struct sigaction action {};
    action.sa_handler = stop;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

int main(int argc, char **argv) {
    const char *usage = "usage: card --listen unix:PATH|tcp:HOST:PORT [--once] [--end-with-stdin] [--trace FILE]\n";
    const char *listen = nullptr, *trace = nullptr;
    bool once = false, end_with_stdin = false;
    for (int i = 1; i < argc; i++) {
        std::string a = argv[i];
        if (a == "--once") {
            once = true;
        } else if (a == "--end-with-stdin") {
            end_with_stdin = true;
        } else if (a == "--listen" && i + 1 < argc) {
            listen = argv[++i];
        } else if (a == "--trace" && i + 1 < argc) {
            trace = argv[++i];
        } else {
            fprintf(stderr, "card: invalid argument %s\n%s", argv[i], usage);
            return 2;
        }
    }
    if (!listen) {
        fputs(usage, stderr);
        return 2;
    }

    block_signals();
    Gateware gateware(trace);
    Listener listener(listen);
    Server(gateware, listener, once, end_with_stdin ? STDIN_FILENO : -1).run();
    printf("cycles=%llu beats=%llu rx_bytes=%llu tx_bytes=%llu\n", (unsigned long long)gateware.cycles,
           (unsigned long long)gateware.beats, (unsigned long long)gateware.rx_bytes,
           (unsigned long long)gateware.tx_bytes);
    return 0;
}
