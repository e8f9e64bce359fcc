/* A rank of a job through a daemon: times all-reduces, as `python -m torch` ranks of overhead.py do.
 *
 * usage: allreduce CARD TICKETFILE RANK RANKS
 *
 * Rank 0 makes the job and writes its ticket to the file. For each line "ELEMENTS CALLS" of standard input, a rank
 * makes that many calls, one after another, and prints the seconds of each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tributary.h"

static void check(tributary_error error) {
  if (error == TRIBUTARY_OK) return;
  fprintf(stderr, "allreduce: %s\n", tributary_error_text());
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static tributary_member *create(const char *card_name, const char *path, int32_t ranks) {
  tributary_open_options opening = {0};
  tributary_job_options options = {0};
  const int32_t here[] = {0};
  tributary_card *card;
  tributary_job *job;
  tributary_member *member;
  char ticket[512], draft[512];
  opening.size = sizeof opening;
  opening.workers = ranks;
  options.size = sizeof options;
  options.workers = ranks;
  options.here = here;
  options.here_count = 1;
  check(tributary_open(card_name, &opening, &card));
  check(tributary_configure(card, &options, &job));
  check(tributary_job_ticket(job, ticket, sizeof ticket, NULL));
  snprintf(draft, sizeof draft, "%s.new", path);
  FILE *file = fopen(draft, "w");
  if (file == NULL || fputs(ticket, file) < 0 || fclose(file) != 0 || rename(draft, path) != 0) {
    perror(path);
    exit(1);
  }
  check(tributary_job_member(job, 0, &member));
  return member;
}

static tributary_member *join(const char *path, int32_t rank) {
  char ticket[512];
  tributary_member *member;
  FILE *file;
  while ((file = fopen(path, "r")) == NULL) usleep(1000);
  if (fgets(ticket, sizeof ticket, file) == NULL) {
    perror(path);
    exit(1);
  }
  fclose(file);
  check(tributary_join(ticket, rank, NULL, &member));
  return member;
}

int main(int argc, char **argv) {
  if (argc != 5) {
    fputs("usage: allreduce CARD TICKETFILE RANK RANKS\n", stderr);
    return 2;
  }
  int32_t rank = atoi(argv[3]), ranks = atoi(argv[4]);
  tributary_member *member = rank == 0 ? create(argv[1], argv[2], ranks) : join(argv[2], rank);
  size_t elements;
  int calls;
  while (scanf("%zu %d", &elements, &calls) == 2) {
    float *array = malloc(elements * sizeof *array);
    if (array == NULL) return 1;
    for (size_t i = 0; i < elements; i++) array[i] = 0; /* sums stay finite */
    for (int call = 0; call < calls; call++) {
      double start = now();
      check(tributary_all_reduce(member, array, array, elements, TRIBUTARY_SUM));
      printf("%.9f ", now() - start);
    }
    puts("");
    fflush(stdout);
    free(array);
  }
  check(tributary_member_close(member));
  return 0;
}
