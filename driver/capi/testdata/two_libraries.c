/* Two libraries with a Go runtime each, in one process, called by turns and from several threads. The
 * arguments are their paths. */
#include <dlfcn.h>
#include <pthread.h>

#include "check.h"

static long (*work)(long);

static void *call_other(void *unused) {
  (void)unused;
  for (long n = 0; n < 20; n++) CHECK(work(20000) == 20000L * 19999 / 2);
  return NULL;
}

int main(int argc, char **argv) {
  tributary_card *card;
  tributary_job *job;
  pthread_t threads[2];
  float a[1000], b[1000];
  const void *inputs[] = {a, b};
  void *other;
  CHECK(argc == 2 && (other = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL)) != NULL);
  *(void **)&work = dlsym(other, "work");
  CHECK(work != NULL && work(10) == 45);
  for (int t = 0; t < 2; t++) CHECK(pthread_create(&threads[t], NULL, call_other, NULL) == 0);
  for (int round = 0; round < 20; round++) {
    set_up(round % 2 ? "model:chunk=64" : "cpu:", 2, &card, &job);
    for (int i = 0; i < 1000; i++) a[i] = (float)i, b[i] = (float)round;
    OK(tributary_reduce(job, a, inputs, 2, 1000, TRIBUTARY_SUM));
    for (int i = 0; i < 1000; i++) CHECK(a[i] == (float)(i + round));
    OK(tributary_job_close(job));
    OK(tributary_card_close(card));
  }
  for (int t = 0; t < 2; t++) CHECK(pthread_join(threads[t], NULL) == 0);
  puts("done");
  return 0;
}
