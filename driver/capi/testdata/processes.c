/* Members in two processes. Without arguments but the card of a daemon, the program makes a job of two
 * members and prints its ticket; with a ticket it is the second member. */
#include "check.h"

#define N 500

static void call(tributary_member *member, int rank) {
  float a[N];
  for (int i = 0; i < N; i++) a[i] = (float)(i * (rank + 1));
  OK(tributary_all_reduce(member, a, a, N, TRIBUTARY_SUM));
  for (int i = 0; i < N; i++) CHECK(a[i] == (float)(3 * i));
}

static void join(const char *ticket) {
  tributary_open_options three = {sizeof three, 0, 3, 0, 0}, halves = {sizeof halves, 0, 0, TRIBUTARY_FP16, 0},
                         two = {sizeof two, 0, 2, TRIBUTARY_FP32, 0};
  tributary_member *member, *other;
  tributary_info info = {0};
  int32_t rank, workers;
  EXPECT(ERROR_INPUT, tributary_join(ticket, TRIBUTARY_ANY_RANK, &three, &member));
  CHECK(strstr(tributary_error_text(), "workers") != NULL);
  EXPECT(ERROR_INPUT, tributary_join(ticket, TRIBUTARY_ANY_RANK, &halves, &member));
  CHECK(strstr(tributary_error_text(), "format") != NULL);
  OK(tributary_join(ticket, TRIBUTARY_ANY_RANK, &two, &member));
  EXPECT(ERROR_REFUSED, tributary_join(ticket, 1, NULL, &other));
  OK(tributary_member_rank(member, &rank, &workers));
  CHECK(rank == 1 && workers == 2);
  info.size = sizeof info;
  OK(tributary_member_info(member, &info));
  CHECK(info.format == TRIBUTARY_FP32);
  call(member, 1);
  OK(tributary_member_close(member));
}

static void make(const char *name) {
  char ticket[512];
  size_t length;
  int32_t here[] = {0};
  tributary_job_options options = {0};
  tributary_card *card;
  tributary_job *job;
  tributary_member *member;
  options.size = sizeof options;
  options.workers = 2;
  options.here = here;
  options.here_count = 1;
  OK(tributary_open(name, NULL, &card));
  OK(tributary_configure(card, &options, &job));
  here[0] = 99; /* the library has copied it */
  OK(tributary_job_ticket(job, ticket, sizeof ticket, &length));
  CHECK(length == strlen(ticket) + 1 && length > 16);
  printf("%s\n", ticket);
  fflush(stdout);
  OK(tributary_job_member(job, 0, &member));
  call(member, 0);
  OK(tributary_member_close(member));
  OK(tributary_job_close(job));
  OK(tributary_card_close(card));
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  if (strstr(argv[1], "?job=") != NULL)
    join(argv[1]);
  else
    make(argv[1]);
  puts("done");
  return 0;
}
