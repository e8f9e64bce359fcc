//go:build ignore

/* Tests of flow.c. */
#include "../flow.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(x)                                               \
  do {                                                         \
    if (!(x)) {                                                \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
      exit(1);                                                 \
    }                                                          \
  } while (0)

/* timers: (retries + 1) * 4.096 us * 2^t > 2 D, with the smallest t. */
static void timers(void) {
  CHECK(tributary_flow_timeout(6, 1000000000) == 17); /* 7 * 0.537 s > 2 s */
  CHECK(tributary_flow_timeout(6, 0) == 1);
  CHECK(tributary_flow_timeout(0, 4096) == 2); /* 2^1 is equal, not longer */
  CHECK(tributary_flow_timeout(0, 4095) == 1);
  CHECK(tributary_flow_timeout(6, INT64_C(1) << 50) == -1);
  CHECK(tributary_flow_patience(6, 17) == 4 * 7 * INT64_C(4096) << 17);
}

/* messages: an array is covered once, and each message has whole packets. */
static void messages(uint64_t bytes, uint32_t mtu, uint32_t packets) {
  struct tributary_flow f = tributary_flow_begin(bytes, mtu, packets, 1);
  uint64_t at = 0;
  for (uint64_t m = 0; m < f.messages; m++) {
    struct tributary_message one = tributary_flow_message(&f, m);
    CHECK(one.at == at && one.bytes > 0 && one.bytes <= mtu * packets);
    CHECK((one.bytes + one.padding) % mtu == 0 && one.padding < mtu);
    CHECK(m == f.messages - 1 || (one.bytes == mtu * packets && one.padding == 0));
    at += one.bytes;
  }
  CHECK(at == bytes);
}

/* credits: in any order of completions, a message is posted when its receive is, and m - C was received and
 * has completed; and as soon as that is so. */
static void credits(uint32_t c, uint64_t messages, unsigned seed) {
  struct tributary_flow f = tributary_flow_begin(messages * 1024, 1024, 1, c);
  CHECK(f.messages == messages);
  srand(seed);
  while (!tributary_flow_over(&f)) {
    while (tributary_flow_may_receive(&f)) {
      CHECK(f.receives < messages && f.receives - f.received < c);
      f.receives++;
    }
    while (tributary_flow_may_send(&f)) {
      uint64_t m = f.sends;
      CHECK(m < f.receives && (m < c || (m - c < f.received && m - c < f.sent)));
      f.sends++;
    }
    uint64_t slowest = f.received < f.sent ? f.received : f.sent;
    CHECK(f.sends == (slowest + c < messages ? slowest + c : messages));
    /* A sum may come before the acknowledgement, or after it. */
    if (f.received < f.sends && (rand() % 2 || f.sent == f.sends))
      f.received++;
    else if (f.sent < f.sends)
      f.sent++;
  }
  CHECK(f.sends == messages && f.receives == messages);
}

int main(void) {
  timers();
  CHECK(tributary_flow_credits(64, 16) == 4 && tributary_flow_credits(64, 17) == 3 && tributary_flow_credits(8, 9) == 0 &&
        tributary_flow_credits(8, 0) == 0);
  for (uint64_t bytes = 0; bytes < 9000; bytes += 4)
    messages(bytes, 1024, 3);
  messages(INT64_C(5) << 30, 4096, 170);
  for (unsigned seed = 0; seed < 200; seed++)
    credits(1 + seed % 5, seed % 40, seed);
  return 0;
}
