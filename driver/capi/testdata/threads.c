/* Four threads, a member each, make a hundred reductions; errors are those of their own thread. */
#include <pthread.h>

#include "check.h"

#define WORKERS 4
#define ROUNDS 100
#define N 200

static tributary_job *job;

static void *work(void *argument) {
  int32_t rank = (int32_t)(intptr_t)argument;
  tributary_member *member;
  tributary_pending *none;
  float a[N];
  OK(tributary_job_member(job, rank, &member));
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < N; i++) a[i] = (float)(rank + round + i);
    OK(tributary_all_reduce(member, a, a, N, TRIBUTARY_SUM));
    for (int i = 0; i < N; i++) CHECK(a[i] == (float)(6 + WORKERS * (round + i)));
    if (rank == 1) {
      EXPECT(ERROR_INPUT, tributary_start(member, a, a, 0, TRIBUTARY_SUM, 0, &none));
    } else {
      CHECK(tributary_error_text()[0] == 0);
    }
  }
  OK(tributary_member_close(member));
  return NULL;
}

int main(void) {
  pthread_t threads[WORKERS];
  tributary_card *card;
  set_up("model:chunk=64,window=4", WORKERS, &card, &job);
  for (intptr_t t = 0; t < WORKERS; t++) CHECK(pthread_create(&threads[t], NULL, work, (void *)t) == 0);
  for (int t = 0; t < WORKERS; t++) CHECK(pthread_join(threads[t], NULL) == 0);
  OK(tributary_job_close(job));
  OK(tributary_card_close(card));
  puts("done");
  return 0;
}
