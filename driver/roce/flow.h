/* The arithmetic of a worker under RoCEv2 (driver/wire/ROCE.md, section 7): messages, credits and
 * timers. It calls nothing, so that tests need no RDMA. */
#ifndef TRIBUTARY_ROCE_FLOW_H
#define TRIBUTARY_ROCE_FLOW_H

#include <stdbool.h>
#include <stdint.h>

/* An array as messages, and how far they are. Message m has the packets from m * packets on. */
struct tributary_flow {
  uint64_t bytes;   /* of the array, without padding */
  uint32_t mtu;     /* bytes of payload of a packet */
  uint32_t packets; /* of a message; the last one may have fewer */
  uint32_t credits; /* messages in flight, at least 1 */

  uint64_t messages;
  uint64_t receives; /* posted */
  uint64_t sends;    /* posted */
  uint64_t received; /* messages that have come */
  uint64_t sent;     /* sends that have completed */
};

/* A message: its place in the array, its bytes there, and the zeros that complete its last packet. */
struct tributary_message {
  uint64_t at;
  uint32_t bytes;
  uint32_t padding;
};

/* Returns the messages that may be in flight: window / packets, rounded down; 0 if a message is longer than
 * the window. */
uint32_t tributary_flow_credits(uint32_t window, uint32_t packets);

/* Begins an array. */
struct tributary_flow tributary_flow_begin(uint64_t bytes, uint32_t mtu, uint32_t packets, uint32_t credits);

/* Returns message m of the array. */
struct tributary_message tributary_flow_message(const struct tributary_flow *f, uint64_t m);

/* Reports whether the next receive may be posted: credits are in flight at most. */
bool tributary_flow_may_receive(const struct tributary_flow *f);

/* Reports whether the next send, m, may be posted: its receive is, message m - credits was received, and the
 * own send m - credits has completed. */
bool tributary_flow_may_send(const struct tributary_flow *f);

/* Reports whether everything was received and has completed. */
bool tributary_flow_over(const struct tributary_flow *f);

/* Returns the smallest t, at most 31, with (retries + 1) * 4.096 us * 2^t > 2 * lateness_ns; -1 if none is
 * long enough. */
int tributary_flow_timeout(uint32_t retries, int64_t lateness_ns);

/* Returns how long a queue pair may take until it fails, in ns: a timer may take four times as long as its
 * nominal time. */
int64_t tributary_flow_patience(uint32_t retries, int t);

#endif
