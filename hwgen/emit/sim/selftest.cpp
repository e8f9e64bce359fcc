// Checks the card against sums computed by the host's processor: random data from all workers,
// in any order and with pauses, and every bit of every sum. Also flips bits in transit, and
// checks asks, replays, repeats, finishes, and the counters of these, of NaNs, infinities and
// overflow. Written from the specification, independently of the generator, the models and the
// driver.

#include <deque>
#include <random>
#include <vector>

#include "arithmetic.h"
#include "bench.h"
#include "card.h"
#include "packet.h"
#ifdef CARD_HAS_LINK
#include "link.h"
#elif defined(CARD_HAS_ETHERNET)
#include "ethernet.h"
#else
#include "ports.h"
#endif

namespace {

using Elements = std::vector<uint32_t>;

constexpr Format F = format_of(FORMAT), R = format_of(RESULT_FORMAT);
static_assert(place_of_sum(SUM) >= 0, "arithmetic.h does not know the card's sum");
constexpr const Sum &S = SUMS[place_of_sum(SUM)];
constexpr uint8_t FLAG_NONFINITE = 8;
constexpr uint64_t TOKEN = 0x0123456789abcdefull;

// Merges two ECN marks: the maximum in ECT(1) < ECT(0) < not-ECT < CE.
uint8_t merge(uint8_t a, uint8_t b) {
    constexpr int PLACE[4] = {2, 0, 1, 3};
    return PLACE[a] > PLACE[b] ? a : b;
}

// One reduction: members, contributions, and expected results.
struct Job {
    std::vector<int> ports;  // of rank 0, 1, ...
    unsigned chunk, window, count;
    uint16_t epoch;
    uint32_t first;
    std::vector<std::vector<Packet>> data;  // for each chunk and rank
    std::vector<Elements> sums;             // for each chunk
    std::vector<uint8_t> flags;             // of each result
    // For each chunk: contributions with NaNs or infinities, such elements of the sum, overflows.
    std::vector<unsigned> nonfinite_in, nonfinite_out, overflows;

    size_t ranks() const { return ports.size(); }
    uint64_t all() const { return ranks() == 64 ? ~uint64_t(0) : (uint64_t(1) << ranks()) - 1; }
};

class Test {
  public:
    void run() {
        identify();
        own();
        unsigned most = unsigned(CHUNK / LANES), few = std::min(most, 3u);
        std::vector<int> all, odd;
        for (int p = 0; p < PORTS; p++) {
            all.push_back(p);
            if (p % 2 || PORTS == 1) odd.push_back(p);
        }
        unsigned window = std::min(WINDOW, 4);
        reduce(make_job(all, few, window, 4 * window + 3, 0xfffffffe));
        reduce(make_job(odd, 1, 1, 5, 0));
        reduce(make_job(all, most, unsigned(WINDOW), 2, 7));
        repair(make_job(all, few, window, 1, 100));
        counters();
        printf("ok: %zu chunks, %zu elements, every sum bit for bit, %llu cycles\n", chunks, elements,
               (unsigned long long)host.cycles);
    }

  private:
    // Checks the identification block against card.h, and its hash against its contents.
    void identify() {
        uint64_t hash = 0xcbf29ce484222325ull;
        for (uint32_t addr = CARD(REG_LANES); addr <= CARD(REG_LATENCY); addr += 8) {
            uint64_t v = read(addr);
            for (int i = 0; i < 8; i++) hash = (hash ^ uint8_t(v >> (8 * i))) * 0x100000001b3ull;
        }
        check(read(CARD(REG_MAGIC)) == 0x5952545542495254ull, "MAGIC");
        check(read(CARD(REG_LANES)) == LANES, "LANES");
        check(read(CARD(REG_PORTS)) == PORTS, "PORTS");
        check(read(CARD(REG_CHUNK)) == CHUNK, "CHUNK");
        check(read(CARD(REG_WINDOW)) == WINDOW, "WINDOW");
        check(read(CARD(REG_LINK)) == LINK_BITS, "LINK");
        check(read(CARD(REG_LATENCY)) == LATENCY, "LATENCY");
        check(read(CARD(REG_FORMAT)) == (FORMAT | RESULT_FORMAT << 8), "FORMAT");
        check(read(CARD(REG_SUM)) == (SUM | unsigned(SATURATE) << 8), "SUM");
        check(hash == CONFIG_HASH, "the hash of the identification block is the one that the card was made with");
        check(read(CARD(REG_CONFIG_HASH)) == hash, "CONFIG_HASH");
    }

    void own() {
        write(CARD(REG_OWNER), TOKEN);
        check(read(CARD(REG_OWNER)) == TOKEN, "OWNER");
        write(CARD(REG_JOB_TOKEN), TOKEN);
    }

    // Makes a job of random data, with beats per chunk, and its expected results.
    Job make_job(const std::vector<int> &ports, unsigned beats, unsigned window, unsigned count, uint32_t first) {
        Job j{ports, beats * LANES, window, count, ++epoch, first, {}, {}, {}, {}, {}, {}};
        for (unsigned c = 0; c < count; c++) {
            std::vector<Packet> contributions;
            uint8_t ecn = 1, marks = 0;
            unsigned in = 0, out = 0, over = 0;
            for (size_t r = 0; r < j.ranks(); r++) {
                Packet p = packet(j, DATA, r, c);
                p.format = FORMAT;
                p.length = uint16_t(j.chunk);
                p.flags = random() % 4;
                ecn = merge(ecn, p.flags);
                bool strange = false;
                for (unsigned i = 0; i < j.chunk; i++) {
                    p.payload.push_back(element());
                    strange = strange || F.nonfinite(p.payload.back());
                }
                if (strange) marks = FLAG_NONFINITE;
                in += strange;
                contributions.push_back(p);
            }
            Elements sum;
            for (unsigned i = 0; i < j.chunk; i++) {
                std::vector<uint32_t> leaves(PORTS, S.identity(F));
                for (size_t r = 0; r < j.ranks(); r++) leaves[size_t(ports[r])] = contributions[r].payload[i];
                Total t = total(S, F, R, SATURATE, leaves);
                sum.push_back(t.bits);
                out += R.nonfinite(t.bits);
                over += t.over;
            }
            j.data.push_back(contributions);
            j.sums.push_back(sum);
            j.flags.push_back(ecn | marks);
            j.nonfinite_in.push_back(in);
            j.nonfinite_out.push_back(out);
            j.overflows.push_back(over);
        }
        return j;
    }

    // Returns a random element: mostly of a size at which sums are rounded, and now and then a
    // special one, rarely enough that most sums stay finite.
    uint32_t element() {
        uint32_t bits = uint32_t(random()) & (F.sign() | (F.sign() - 1)), sign = bits & F.sign();
        bool special = random() % (3 * PORTS) == 0;
        if (!F.exp) return special ? F.sign() - random() % 3 : uint32_t(int32_t(bits) >> random() % 8);
        uint32_t fraction = (1u << F.frac) - 1, middle = uint32_t(F.bias()), spread = std::min(12u, middle - 1);
        const uint32_t specials[] = {0, 1, fraction, fraction + 1, F.largest(), F.largest() + 1, F.nan, F.sign() - 1};
        if (special) return sign | specials[random() % 8];
        return sign | (bits & fraction) | uint32_t(middle - spread + random() % (2 * spread)) << F.frac;
    }

    static Packet packet(const Job &j, Kind kind, size_t rank, unsigned chunk) {
        Packet p;
        p.kind = kind;
        p.epoch = j.epoch;
        p.rank = uint8_t(rank);
        p.vid = j.first + chunk;
        return p;
    }

    void commit(const Job &j) {
        uint64_t ports = 0;
        for (int p : j.ports) ports |= uint64_t(1) << p;
        write(CARD(REG_JOB_PORTS), ports);
        host.stage_members(j.ports, [this](uint32_t addr, uint64_t value) { write(addr, value); });
        write(CARD(REG_JOB_CHUNK), j.chunk);
        write(CARD(REG_JOB_WINDOW), j.window);
        write(CARD(REG_JOB_COMMIT), j.first | uint64_t(j.epoch) << 32);
        check((read(CARD(REG_JOB_STATE)) & 1) == 1, "the job is set up");
    }

    // Runs a job to its end: every rank sends as its window permits, in any order.
    void reduce(const Job &j) {
        commit(j);
        std::vector<unsigned> next(j.ranks()), base(j.ranks());
        std::vector<std::vector<bool>> held(j.ranks(), std::vector<bool>(j.count));
        size_t missing = j.ranks() * j.count;
        uint64_t moved = host.cycles;
        while (missing) {
            size_t r = random() % j.ranks();
            if (next[r] < j.count && next[r] < base[r] + j.window && host.backlog(j.ports[r]) < size_t(8 * j.chunk)) {
                host.send(j.data[next[r]][r], j.ports[r]);
                next[r]++;
            }
            step();
            for (; !results.empty(); results.pop_front()) {
                unsigned c = checked(j, results.front(), RESULT);
                for (size_t k = 0; k < j.ranks(); k++) {
                    if (!(receivers(j, results.front()) >> k & 1)) continue;
                    check(!held[k][c], "a result is sent once unless it is asked for");
                    held[k][c] = true;
                    missing--;
                    while (base[k] < j.count && held[k][base[k]]) base[k]++;
                }
                moved = host.cycles;
            }
            check(statuses.empty(), "nothing is refused");
            check(host.busy() || host.cycles - moved < 100000, "results come");
        }
        chunks += j.count;
        elements += size_t(j.count) * j.chunk;
        finish(j);
    }

    // Runs one chunk of a job with all kinds of damage and loss at rank 0.
    void repair(const Job &j) {
        commit(j);
        uint64_t others = j.all() & ~uint64_t(1);
        for (size_t r = 1; r < j.ranks(); r++) host.send(j.data[0][r], j.ports[r]);
        host.send(j.data[0][0], j.ports[0], Damage::PAYLOAD);
        settle();
        expect_send(j);
        host.send(j.data[0][0], j.ports[0], Damage::HEADER);
        settle();
        expect_send(j);

        host.send(j.data[0][0], j.ports[0]);
        settle();
        uint64_t had = 0;
        for (; !results.empty(); results.pop_front()) {
            checked(j, results.front(), RESULT);
            had |= receivers(j, results.front());
        }
        check(had == (others | 1), "every rank gets the result");

        host.send(packet(j, ASK, 0, 0), j.ports[0]);
        expect_replay(j);
        host.send(j.data[0][0], j.ports[0]);  // a repetition
        expect_replay(j);
        chunks++;
        elements += j.chunk;
        finish(j);
    }

    // Rank 0 asks; the status must request its data and name it as the only missing rank.
    void expect_send(const Job &j) {
        host.send(packet(j, ASK, 0, 0), j.ports[0]);
        settle();
        check(results.empty(), "no result while a rank is missing");
        check(statuses.size() == 1, "an ask is answered once");
        const Packet &s = statuses.front();
        check(s.code == SEND && s.rank == 0 && s.vid == j.first && s.epoch == j.epoch, "send, it says");
        check(s.mask == 1, "rank 0 is missing");
        statuses.clear();
    }

    // Rank 0, and no other, must get the first chunk's sum again.
    void expect_replay(const Job &j) {
        settle();
        check(results.size() == 1, "one replay");
        checked(j, results.front(), REPLAY);
        check(receivers(j, results.front()) == 1, "a replay is for whom it is owed");
        results.clear();
    }

    // Every rank finishes, and the job ends.
    void finish(const Job &j) {
        for (size_t r = 0; r < j.ranks(); r++) host.send(packet(j, FINISH, r, j.count), j.ports[r]);
        settle();
        uint64_t done = 0;
        for (; !statuses.empty(); statuses.pop_front()) {
            const Packet &s = statuses.front();
            check(s.code == DONE && s.epoch == j.epoch && s.vid == j.first + j.count && s.mask == 0, "a finish is done");
            done |= uint64_t(1) << s.rank;
        }
        check(done == j.all(), "every finish is answered");
        check(results.empty(), "no results after the end");
        check((read(CARD(REG_JOB_STATE)) & 1) == 0, "the job has ended");
        found(j, j.nonfinite_in, CARD(REG_JOB_NONFINITE_IN), CARD(REG_JOB_FIRST_IN), "contributions with NaN or infinity");
        found(j, j.nonfinite_out, CARD(REG_JOB_NONFINITE_OUT), CARD(REG_JOB_FIRST_OUT), "sums that are NaN or infinity");
        found(j, j.overflows, CARD(REG_JOB_OVERFLOW), CARD(REG_JOB_FIRST_OVERFLOW), "sums that overflowed");
    }

    // Compares the job's registers with the chunks that had such elements: count and first one.
    void found(const Job &j, const std::vector<unsigned> &some, uint32_t count, uint32_t first, const char *what) {
        uint64_t all = 0;
        for (unsigned n : some) all += n;
        check(read(count) == all, what);
        uint64_t at = read(first);
        check(all ? at >> 63 && some.at(uint32_t(at) - j.first) : at == 0, what);
    }

    // Checks a result or replay, and returns its chunk.
    static unsigned checked(const Job &j, const Packet &p, Kind kind) {
        unsigned c = p.vid - j.first;
        check(p.kind == kind, kind == RESULT ? "a result, not a replay" : "a replay, not a result");
        check(c < j.count, "a result of a chunk that was sent");
        check(p.epoch == j.epoch && p.job == 0 && p.format == RESULT_FORMAT && p.length == j.chunk, "the result's header");
        check(p.mask == j.all(), "all ranks are in the sum");
        check(p.flags == j.flags[c], "the result's ECN and nonfinite marks");
        for (unsigned i = 0; i < j.chunk; i++) {
            if (p.payload[i] == j.sums[c][i]) continue;
            printf("chunk %u element %u (lane %u): %08x, must be %08x\n", c, i, i % LANES, p.payload[i], j.sums[c][i]);
            check(false, "the sum, bit for bit");
        }
        return c;
    }

    // Returns a result's ranks: on cards with separate ports, those of its output ports.
    static uint64_t receivers(const Job &j, const Packet &p) {
        if (Host::SHARED) return p.receivers;
        for (size_t r = 0; r < j.ranks(); r++) {
            if (p.receivers == uint64_t(1) << j.ports[r]) return uint64_t(1) << r;
        }
        check(false, "results come out of the members' ports alone");
        return 0;
    }

    void counters() {
        check(count(CARD(COUNT_CHUNKS)) == chunks, "COUNT_CHUNKS");
        if (!Host::DATAGRAMS) check(count(CARD(COUNT_PAYLOAD_CRC)) == 1, "COUNT_PAYLOAD_CRC");
        check(count(CARD(COUNT_REPLAYS)) == 2, "COUNT_REPLAYS");
        check(count(CARD(COUNT_DUPLICATE)) == 1, "COUNT_DUPLICATE");
        check(count(CARD(COUNT_ASKS)) == 3, "COUNT_ASKS");
        if (Host::SHARED) check(count(CARD(COUNT_HEADER_CRC)) >= 1, "COUNT_HEADER_CRC");
#ifdef CARD_HAS_ETHERNET
        check(read(CARD(REG_NETWORK_COUNTERS) + 8 * CARD(COUNT_DATAGRAM_CRC)) == 2, "COUNT_DATAGRAM_CRC");
#endif
    }

    uint64_t count(uint32_t i) { return read(CARD(REG_COUNTERS) + 8 * i); }

    uint64_t read(uint32_t addr) { return access(READ, addr, 0); }
    void write(uint32_t addr, uint64_t value) { access(WRITE, addr, value); }

    uint64_t access(Kind kind, uint32_t addr, uint64_t value) {
        Packet p;
        p.kind = kind;
        p.vid = addr;
        p.length = ++tag;
        p.mask = value;
        host.send(p, 0);
        for (int i = 0; i < 100000 && replies.empty(); i++) step();
        check(replies.size() == 1, "a register access is answered");
        Packet reply = replies.front();
        replies.clear();
        check(reply.code == DONE && reply.vid == addr && reply.length == tag, "a register access is done");
        return reply.mask;
    }

    // A card that accepts nothing from a gone host would otherwise keep poll busy.
    void settle() {
        for (int quiet = 0; quiet < 1000; quiet++) {
            if (step() || host.busy()) quiet = 0;
        }
    }

    // Runs one cycle; returns whether a packet came.
    bool step() {
        host.tick();
        Packet p;
        if (!host.receive(p)) return false;
        switch (p.kind) {
        case RESULT:
        case REPLAY: results.push_back(p); break;
        case STATUS: statuses.push_back(p); break;
        case REPLY: replies.push_back(p); break;
        default: check(false, "the card sends results, replays, statuses and replies");
        }
        return true;
    }

    std::mt19937_64 random{1};
    Host host{random};
    std::deque<Packet> results, statuses, replies;
    uint16_t epoch = 0xfffd, tag = 0;
    size_t chunks = 0, elements = 0;
};

}  // namespace

int main() {
    Test().run();
    return 0;
}
