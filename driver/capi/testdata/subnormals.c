/* Sums of subnormals have the bits of IEEE 754, although the program flushes subnormals to zero: in the
 * thread that loads the library, and in the one that calls it. The argument is the path of the library. */
#include <dlfcn.h>

#include <stdio.h>

#include "tributary.h"

#define FLUSH 0x8040u /* flush to zero, denormals are zero */
#if defined(__x86_64__)
#include <xmmintrin.h>
static unsigned mode(void) { return _mm_getcsr(); }
static void flush(void) { _mm_setcsr(_mm_getcsr() | FLUSH); }
#else
static unsigned mode(void) { return FLUSH; }
static void flush(void) {}
#endif

#define N 4096 /* a length that the fast paths take */

int main(int argc, char **argv) {
  static const char *const names[] = {"cpu:sum=tree", "cpu:sum=fused", "cpu:sum=exact", "model:sum=tree"};
  void *library;
  tributary_error (*open_card)(const char *, const tributary_open_options *, tributary_card **);
  tributary_error (*configure)(tributary_card *, const tributary_job_options *, tributary_job **);
  tributary_error (*reduce)(tributary_job *, void *, const void *const *, size_t, size_t, tributary_op);
  tributary_error (*close_card)(tributary_card *);
  static uint32_t a[N], b[N], sum[N];
  const void *inputs[] = {a, b};
  int wrong = 0;
  flush();
  if (argc != 2 || (library = dlopen(argv[1], RTLD_NOW)) == NULL) return 2;
  *(void **)&open_card = dlsym(library, "tributary_open");
  *(void **)&configure = dlsym(library, "tributary_configure");
  *(void **)&reduce = dlsym(library, "tributary_reduce");
  *(void **)&close_card = dlsym(library, "tributary_card_close");
  for (int i = 0; i < N; i++) a[i] = 1 + (uint32_t)i, b[i] = 2 * (uint32_t)i;
  for (int n = 0; n < 4; n++)
    for (int op = 0; op < 2; op++) {
      tributary_open_options options = {sizeof options, 0, 2, 0, 0};
      tributary_card *card;
      tributary_job *job;
      int bad = 0;
      if (open_card(names[n], &options, &card) || configure(card, NULL, &job) ||
          reduce(job, sum, inputs, 2, N, (tributary_op)op))
        return 3;
      for (int i = 0; i < N; i++) {
        uint32_t s = a[i] + b[i]; /* subnormals add up like integers */
        uint32_t half = s / 2 + (s & s >> 1 & 1);
        bad += sum[i] != (op == TRIBUTARY_MEAN ? half : s);
      }
      if (bad > 0) printf("%s, op %d: %d of %d elements are wrong\n", names[n], op, bad, N);
      wrong += bad;
      if (close_card(card)) return 4;
    }
  if ((mode() & FLUSH) != FLUSH) {
    puts("the program's mode was not restored");
    return 5;
  }
  puts(wrong ? "wrong" : "done");
  return wrong != 0;
}
