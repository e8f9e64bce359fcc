/* A job on a card on a network, with a window as given: "fixed" or "congested". */
#include "check.h"

#define N 6400

static float a[N], b[N], sum[N];

int main(int count, char **arguments) {
  CHECK(count == 3);
  tributary_open_options options = {sizeof options, 0, 0, 0, strcmp(arguments[2], "fixed") == 0};
  tributary_job_options two = {0};
  const void *inputs[] = {a, b};
  tributary_card *card;
  tributary_job *job;
  two.size = sizeof two;
  two.workers = 2;
  OK(tributary_open(arguments[1], &options, &card));
  OK(tributary_configure(card, &two, &job));
  for (int i = 0; i < N; i++) a[i] = (float)i, b[i] = (float)(2 * i);
  OK(tributary_reduce(job, sum, inputs, 2, N, TRIBUTARY_SUM));
  for (int i = 0; i < N; i++) CHECK(sum[i] == (float)(3 * i));
  OK(tributary_job_close(job));
  OK(tributary_card_close(card));
  puts("done");
  return 0;
}
