// Simulates one all-reduce over racks of workers, some of which have a card, in SimGrid's fluid model CM02.
//
// usage: collectives ALGORITHM NAME=NUMBER...    (README.md, "What is simulated", has the model)
//
// It prints one line of JSON: steps_end, when the last member ended its last step, and end, when all streams had
// arrived, both in seconds. Every parameter is required; bytes and rates are in bytes and bytes a second, times in
// seconds. Flows share links max-min. Nothing is lost, and no host spends time on sums.
#include <simgrid/s4u.hpp>
#include <xbt/log.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace s4u = simgrid::s4u;

namespace {

struct Parameters {
  std::map<std::string, double> values;

  double operator[](const std::string& name) const {
    auto found = values.find(name);
    if (found == values.end()) {
      throw std::invalid_argument("the parameter " + name + " is missing");
    }
    return found->second;
  }
  int count(const std::string& name) const { return static_cast<int>((*this)[name]); }
};

// Network is a star: links between racks are never busier than the ends.
class Network {
public:
  Network(const Parameters& p, bool bundled)
      : racks(p.count("racks")), per_rack(p.count("per_rack")), latency_(p["host_latency"]) {
    zone_ = s4u::create_star_zone("network");
    const double rate = p["rate"];
    const int streams = bundled ? per_rack : 1;
    for (int r = 0; r < racks; r++) {
      for (int w = 0; w < per_rack / streams; w++) {
        workers.push_back(add("worker-" + std::to_string(r) + "-" + std::to_string(w), streams * rate, latency_, false));
      }
      // A port for each worker, beside the switch.
      cards.push_back(add("card-" + std::to_string(r), streams * rate, 0, true));
      ports.push_back(add("port-" + std::to_string(r), rate, latency_, false));
      uplinks.push_back(add("uplink-" + std::to_string(r), per_rack * rate, latency_, false));
      servers.push_back(add("server-" + std::to_string(r), rate, latency_, false));
      spines.push_back(add("spine-" + std::to_string(r), rate, latency_, true)); // more than any tree has
    }
    zone_->seal();
  }

  int racks, per_rack;
  std::vector<s4u::Host*> workers; // all racks', or one bundle a rack
  std::vector<s4u::Host*> cards;   // a rack's card, as its workers see it
  std::vector<s4u::Host*> ports;   // the same card, for its stream to and from another rack
  std::vector<s4u::Host*> uplinks; // the rack's links to others, for streams of many cards
  std::vector<s4u::Host*> servers;
  std::vector<s4u::Host*> spines;  // cards of higher levels

private:
  s4u::Host* add(const std::string& name, double rate, double latency, bool crossbar) {
    s4u::Host* host = zone_->create_host(name, 1e9);
    s4u::Link* up = zone_->create_link(name + "-up", rate)->set_latency(latency);
    s4u::Link* down = zone_->create_link(name + "-down", rate)->set_latency(latency);
    if (crossbar) {
      up->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE);
      down->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE);
    }
    zone_->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, {s4u::LinkInRoute(up->seal())}, false);
    zone_->add_route(nullptr, host->get_netpoint(), nullptr, nullptr, {s4u::LinkInRoute(down->seal())}, false);
    return host;
  }

  s4u::NetZone* zone_;
  double latency_;
};

// Times collects the latest events.
struct Times {
  double steps_end = 0, end = 0;
};

// The payload of every message: only its size matters.
char token;

void put(s4u::Mailbox* to, double bytes) {
  to->put_init(&token, static_cast<uint64_t>(std::llround(bytes)))->detach();
}

s4u::CommPtr stream(s4u::Host* from, s4u::Host* to, double bytes) {
  return s4u::Comm::sendto_async(from, to, static_cast<uint64_t>(std::llround(bytes)));
}

// Member of a ring: a worker, or a rack with a card.
struct Member {
  int rack = -1;             // with a card, else -1
  s4u::Host* host = nullptr; // what its neighbours send to
};

// Ring runs the steps of members. Each passes on what it has and takes the next piece from its predecessor. A rack's
// card adds the piece of every worker to what comes in. In the all-gather it hands to each worker what comes in.
class Ring {
public:
  Ring(const Parameters& p, Network& n, Times& t)
      : network_(n), times_(t), alpha_(p["alpha"]), card_(p["card"]), through_(p["agent"] != 0),
        scatter_steps_(p.count("scatter_steps")), gather_steps_(p.count("gather_steps")) {
    const int equipped = p.count("equipped");
    for (int r = 0; r < n.racks; r++) {
      if (r < equipped) {
        members_.push_back({r, through_ ? n.workers[r * n.per_rack] : n.ports[r]});
        continue;
      }
      for (int w = 0; w < n.per_rack; w++) {
        members_.push_back({-1, n.workers[r * n.per_rack + w]});
      }
    }
    piece_ = p["bytes"] / static_cast<double>(members_.size());
    head_ = std::min(p["chunk"], piece_ / 2);
    for (size_t i = 0; i < members_.size(); i++) {
      s4u::Actor::create("member", members_[i].host, [this, i] { run(i); });
    }
  }

private:
  s4u::Mailbox* box(size_t member, const char* part) {
    return s4u::Mailbox::by_name(std::string(part) + std::to_string(member % members_.size()));
  }

  // A stream to a rack is its first chunk and the rest, so that what depends on the first chunk can begin.
  void pass_on(size_t member) {
    if (members_[(member + 1) % members_.size()].rack < 0) {
      put(box(member + 1, "rest"), piece_);
      return;
    }
    put(box(member + 1, "head"), head_);
    put(box(member + 1, "rest"), piece_ - head_);
  }

  void run(size_t me) {
    const int rack = members_[me].rack;
    box(me, "head")->set_receiver(s4u::Actor::self());
    box(me, "rest")->set_receiver(s4u::Actor::self());
    for (int step = 0; step < scatter_steps_ + gather_steps_; step++) {
      s4u::this_actor::sleep_for(alpha_);
      pass_on(me);
      if (rack < 0) {
        box(me, "rest")->get<char>();
      } else if (step < scatter_steps_) {
        scatter(me, rack);
      } else {
        gather(me, rack);
      }
    }
    times_.steps_end = std::max(times_.steps_end, s4u::Engine::get_clock());
    times_.end = std::max(times_.end, s4u::Engine::get_clock());
  }

  void scatter(size_t me, int rack) {
    std::vector<s4u::CommPtr> comms;
    for (int w = 0; w < network_.per_rack; w++) {
      comms.push_back(stream(network_.workers[rack * network_.per_rack + w], network_.cards[rack], piece_));
    }
    box(me, "head")->get<char>();
    if (through_) { // the agent's host sends it to the card, and receives the sum
      s4u::this_actor::sleep_for(alpha_);
      comms.push_back(stream(members_[me].host, network_.cards[rack], piece_));
      comms.push_back(stream(network_.cards[rack], members_[me].host, piece_));
    }
    box(me, "rest")->get<char>();
    s4u::Comm::wait_all(comms);
    s4u::this_actor::sleep_for(card_); // the last chunk
  }

  void gather(size_t me, int rack) {
    box(me, "head")->get<char>();
    // Handing a piece to the rack goes on beside the next steps.
    s4u::Actor::create("hand", members_[me].host, [this, me, rack] {
      s4u::this_actor::sleep_for(card_); // of the first chunk, while the rest comes in
      std::vector<s4u::CommPtr> handed;
      for (int w = 0; w < network_.per_rack; w++) {
        s4u::Host* worker = network_.workers[rack * network_.per_rack + w];
        if (worker != members_[me].host) {
          handed.push_back(stream(network_.cards[rack], worker, piece_));
        }
      }
      if (through_) { // one copy from the agent to the card, which multiplies it
        handed.push_back(stream(members_[me].host, network_.cards[rack], piece_));
      }
      s4u::Comm::wait_all(handed);
      times_.end = std::max(times_.end, s4u::Engine::get_clock());
    });
    box(me, "rest")->get<char>();
  }

  Network& network_;
  Times& times_;
  double alpha_, card_;
  bool through_;
  int scatter_steps_, gather_steps_;
  double piece_ = 0, head_ = 0;
  std::vector<Member> members_;
};

// Node of a tree. Streams go up to the root, which sends the sum down. A card or a server begins to send when the
// first chunk of every child has come.
struct Node {
  double delay = 0; // of a chunk
  Node* parent = nullptr;
  s4u::Host* below = nullptr; // ends of the way to the parent
  s4u::Host* above = nullptr;
  int streams = 1; // on that way: a bundle of workers has one of each worker
  int children = 0;
  s4u::SemaphorePtr up = s4u::Semaphore::create(0);   // first chunks that have come from below
  s4u::SemaphorePtr down = s4u::Semaphore::create(0); // children that may have the first chunk of the sum
};

// Trees runs all trees at once; each has a part of the array.
class Trees {
public:
  Trees(const Parameters& p, Network& n, Times& t, bool bundled)
      : network_(n), times_(t), alpha_(p["alpha"]), card_(p["card"]), chunk_(p["chunk"]),
        equipped_(p.count("equipped")), bundled_(bundled) {}

  // A tree of cards: leaves at racks, then cards of at most so many children.
  void cards(double bytes, int ports) {
    bytes_ = bytes;
    std::vector<std::pair<Node*, s4u::Host*>> level;
    for (int r = 0; r < network_.racks; r++) {
      Node* leaf = node(card_);
      add_workers(r, leaf, network_.cards[r]);
      level.emplace_back(leaf, network_.ports[r]);
    }
    for (size_t used = 0; level.size() > 1;) {
      std::vector<std::pair<Node*, s4u::Host*>> above;
      for (size_t i = 0; i < level.size(); i++) {
        if (i % ports == 0) {
          above.emplace_back(node(card_), network_.spines.at(used++));
        }
        adopt(above.back().first, level[i].first, level[i].second, above.back().second);
      }
      level = above;
    }
    start();
  }

  // Parameter servers in the first racks. The card of a rack sums the streams of its workers, and the card of a
  // server's rack those of other cards too.
  void parameters(double bytes, int servers) {
    bytes_ = bytes / servers;
    for (int s = 0; s < servers; s++) {
      Node* server = node(alpha_);
      s4u::Host* host = network_.servers[s];
      Node* second = nullptr;
      if (s < equipped_) {
        second = card(s);
        adopt(server, second, network_.cards[s], host);
      }
      for (int r = 0; r < network_.racks; r++) {
        if (r >= equipped_) {
          add_workers(r, server, host);
        } else if (second == nullptr) {
          adopt(server, card(r), network_.ports[r], host);
        } else if (r != s) {
          adopt(second, card(r), network_.ports[r], network_.uplinks[s]);
        }
      }
    }
    start();
  }

private:
  Node* node(double delay) {
    nodes_.push_back(new Node); // they live as long as the program
    nodes_.back()->delay = delay;
    return nodes_.back();
  }

  Node* card(int rack) {
    Node* c = node(card_);
    add_workers(rack, c, network_.cards[rack]);
    return c;
  }

  static void adopt(Node* parent, Node* child, s4u::Host* below, s4u::Host* above) {
    child->parent = parent;
    child->below = below;
    child->above = above;
    parent->children++;
  }

  void add_workers(int rack, Node* parent, s4u::Host* above) {
    const int hosts = bundled_ ? 1 : network_.per_rack;
    for (int w = 0; w < hosts; w++) {
      Node* worker = node(alpha_);
      worker->streams = network_.per_rack / hosts;
      adopt(parent, worker, network_.workers[rack * hosts + w], above);
    }
  }

  void start() {
    for (Node* n : nodes_) {
      if (n->parent == nullptr) {
        s4u::Actor::create("root", network_.servers[0], [n] {
          wait(n->up, n->children);
          s4u::this_actor::sleep_for(n->delay);
          release(n->down, n->children);
        });
        continue;
      }
      s4u::Actor::create("up", n->below, [this, n] { go_up(n); });
      s4u::Actor::create("down", n->above, [this, n] { go_down(n); });
    }
  }

  static void wait(const s4u::SemaphorePtr& s, int times) {
    for (int i = 0; i < times; i++) {
      s->acquire();
    }
  }

  static void release(const s4u::SemaphorePtr& s, int times) {
    for (int i = 0; i < times; i++) {
      s->release();
    }
  }

  void go_up(Node* n) {
    wait(n->up, n->children);
    s4u::this_actor::sleep_for(n->delay);
    send(n->below, n->above, n->streams, [n] { n->parent->up->release(); });
  }

  void go_down(Node* n) {
    n->parent->down->acquire();
    send(n->above, n->below, n->streams, [n] {
      if (n->children > 0) {
        s4u::this_actor::sleep_for(n->delay);
        release(n->down, n->children);
      }
    });
  }

  // A stream is its first chunk and the rest, side by side.
  template <typename F> void send(s4u::Host* from, s4u::Host* to, int streams, F first_chunk_came) {
    const double first = std::min(chunk_, bytes_ / 2);
    s4u::CommPtr head = stream(from, to, streams * first);
    s4u::CommPtr rest = stream(from, to, streams * (bytes_ - first));
    head->wait();
    first_chunk_came();
    rest->wait();
    times_.steps_end = times_.end = std::max(times_.end, s4u::Engine::get_clock());
  }

  Network& network_;
  Times& times_;
  double alpha_, card_, chunk_;
  int equipped_;
  bool bundled_;
  double bytes_ = 0; // of each tree
  std::vector<Node*> nodes_;
};

int simulate(int argc, char** argv) {
  // Nothing but bandwidth and latency: no share for acknowledgements, no factor of TCP.
  s4u::Engine engine(&argc, argv);
  xbt_log_control_set("xbt_cfg.thresh:warning");
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/crosstraffic:no");
  s4u::Engine::set_config("network/TCP-gamma:0");
  s4u::Engine::set_config("network/weight-S:0");
  s4u::Engine::set_config("contexts/stack-size:64");
  if (argc < 2) {
    throw std::invalid_argument("the algorithm is missing");
  }
  const std::string algorithm = argv[1];
  Parameters p;
  for (int i = 2; i < argc; i++) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) {
      throw std::invalid_argument(argument + " has no =");
    }
    size_t used = 0;
    p.values[argument.substr(0, equals)] = std::stod(argument.substr(equals + 1), &used);
    if (used != argument.size() - equals - 1) {
      throw std::invalid_argument(argument + " is no number");
    }
  }
  const bool bundled = p["bundled"] != 0;
  Network network(p, bundled);
  Times times;
  std::unique_ptr<Ring> ring;
  Trees trees(p, network, times, bundled);
  if (algorithm == "ring") {
    ring = std::make_unique<Ring>(p, network, times);
  } else if (algorithm == "cards") {
    trees.cards(p["bytes"], p.count("ports"));
  } else if (algorithm == "parameters") {
    trees.parameters(p["bytes"], p.count("servers"));
  } else {
    throw std::invalid_argument("there is no algorithm " + algorithm + "; there are: ring, cards, parameters");
  }
  engine.run();
  std::printf("{\"steps_end\": %.9e, \"end\": %.9e}\n", times.steps_end, times.end);
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  try {
    return simulate(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "collectives: %s\n", e.what());
    return 2;
  }
}
