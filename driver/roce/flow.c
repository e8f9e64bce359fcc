//go:build roce

#include "flow.h"

enum { max_timeout = 31, timer_unit = 4096, timer_slack = 4 };

uint32_t tributary_flow_credits(uint32_t window, uint32_t packets) { return packets ? window / packets : 0; }

struct tributary_flow tributary_flow_begin(uint64_t bytes, uint32_t mtu, uint32_t packets, uint32_t credits) {
  struct tributary_flow f = {.bytes = bytes, .mtu = mtu, .packets = packets, .credits = credits};
  uint64_t message = (uint64_t)mtu * packets;
  f.messages = bytes / message + (bytes % message != 0);
  return f;
}

struct tributary_message tributary_flow_message(const struct tributary_flow *f, uint64_t m) {
  uint64_t message = (uint64_t)f->mtu * f->packets;
  struct tributary_message r = {.at = m * message, .bytes = (uint32_t)message};
  if (f->bytes - r.at < message)
    r.bytes = (uint32_t)(f->bytes - r.at);
  r.padding = (f->mtu - r.bytes % f->mtu) % f->mtu;
  return r;
}

bool tributary_flow_may_receive(const struct tributary_flow *f) {
  return f->receives < f->messages && f->receives < f->received + f->credits;
}

bool tributary_flow_may_send(const struct tributary_flow *f) {
  return f->sends < f->receives && f->sends < f->received + f->credits && f->sends < f->sent + f->credits;
}

bool tributary_flow_over(const struct tributary_flow *f) { return f->received == f->messages && f->sent == f->messages; }

static int64_t nominal(uint32_t retries, int t) { return ((int64_t)retries + 1) * timer_unit << t; }

int tributary_flow_timeout(uint32_t retries, int64_t lateness_ns) {
  for (int t = 1; t <= max_timeout; t++)
    if (nominal(retries, t) / 2 > lateness_ns)
      return t;
  return -1;
}

int64_t tributary_flow_patience(uint32_t retries, int t) { return timer_slack * nominal(retries, t); }
