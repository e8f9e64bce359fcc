/* Every function of tributary.h, and the errors of wrong arguments. */
#include "check.h"

#define N 1000

static float a[N], b[N], sum[N];

static void fill(void) {
  for (int i = 0; i < N; i++) {
    a[i] = (float)i;
    b[i] = (float)(2 * i);
    sum[i] = -1;
  }
}

static void reductions(tributary_job *job) {
  const void *inputs[] = {a, b};
  fill();
  OK(tributary_reduce(job, sum, inputs, 2, N, TRIBUTARY_SUM));
  for (int i = 0; i < N; i++) CHECK(sum[i] == (float)(3 * i));
  OK(tributary_reduce(job, a, inputs, 2, N, TRIBUTARY_MEAN));
  for (int i = 0; i < N; i++) CHECK(a[i] == (float)(3 * i) / 2);
}

static void members(tributary_job *job) {
  tributary_member *one, *two;
  tributary_pending *first, *second;
  int32_t rank = -1, workers = -1;
  size_t partials = 99;
  fill();
  OK(tributary_job_member(job, 0, &one));
  OK(tributary_job_member(job, 1, &two));
  EXPECT(ERROR_INPUT, tributary_job_member(job, 2, &two));
  OK(tributary_member_rank(two, &rank, &workers));
  CHECK(rank == 1 && workers == 2);
  OK(tributary_start(one, a, a, N, TRIBUTARY_MEAN, 0, &first));
  EXPECT(ERROR_RUNNING, tributary_wait(first, 0));
  EXPECT(ERROR_RUNNING, tributary_wait(first, 1000000));
  OK(tributary_partials(first, NULL, 0, &partials));
  CHECK(partials == 0);
  EXPECT(ERROR_INPUT, tributary_job_close(job));
  OK(tributary_start(two, sum, b, N, TRIBUTARY_SUM, TRIBUTARY_DETACH, &second));
  OK(tributary_wait(second, -1));
  OK(tributary_wait(first, 10000000000));
  OK(tributary_wait(first, 0));
  OK(tributary_cancel(first)); /* too late: the outcome stays */
  for (int i = 0; i < N; i++) CHECK(a[i] == (float)(3 * i) / 2 && sum[i] == (float)(3 * i));
  OK(tributary_pending_close(first));
  OK(tributary_pending_close(second));
  EXPECT(ERROR_CLOSED, tributary_wait(first, 0));
  EXPECT(ERROR_CLOSED, tributary_pending_close(first));
  OK(tributary_member_close(one));
  OK(tributary_member_abort(two));
  EXPECT(ERROR_CLOSED, tributary_member_rank(two, NULL, NULL));
}

/* A member that detaches a reduction, and one whose canceled reduction ends the job. */
static void cancel(tributary_job *job) {
  tributary_member *one, *two;
  tributary_pending *first, *second;
  fill();
  OK(tributary_job_member(job, 0, &one));
  OK(tributary_job_member(job, 1, &two));
  OK(tributary_start(one, a, a, N, TRIBUTARY_SUM, TRIBUTARY_DETACH, &first));
  EXPECT(ERROR_CANCELED, tributary_cancel(first));
  memset(a, 0, sizeof a); /* it is the program's again */
  OK(tributary_all_reduce(two, b, b, N, TRIBUTARY_SUM));
  for (int i = 0; i < N; i++) CHECK(b[i] == (float)(3 * i));
  OK(tributary_start(one, a, a, N, TRIBUTARY_SUM, 0, &second));
  EXPECT(ERROR_CANCELED, tributary_cancel(second));
  EXPECT(ERROR_CANCELED, tributary_wait(second, -1));
  EXPECT(ERROR_ENDED, tributary_all_reduce(two, b, b, N, TRIBUTARY_SUM));
  CHECK(strstr(tributary_error_text(), "has ended") != NULL);
  OK(tributary_pending_close(first));
  OK(tributary_pending_close(second));
  OK(tributary_member_close(one));
  OK(tributary_member_close(two));
  EXPECT(ERROR_ENDED, tributary_job_close(job));
  EXPECT(ERROR_CLOSED, tributary_job_close(job));
}

static void wrong_arguments(tributary_card *card, tributary_job *job) {
  const void *inputs[] = {a, b}, *hole[] = {a, NULL};
  struct {
    tributary_open_options known;
    int64_t later;
  } newer = {{sizeof newer, 0, 0, 0, 0}, 0};
  tributary_open_options no_size = {0, 0, 0, 0, 0}, bad_format = {sizeof bad_format, 0, 0, 9, 0},
                         early = {sizeof early, -1, 0, 0, 0},
                         first = {offsetof(tributary_open_options, fixed_window), 0, 0, 0, 0},
                         shorter = {offsetof(tributary_open_options, fixed_window) - 1, 0, 0, 0, 0};
  tributary_card *other = NULL;
  tributary_member *member;
  tributary_info info = {0};
  EXPECT(ERROR_INPUT, tributary_open(NULL, NULL, &other));
  EXPECT(ERROR_INPUT, tributary_open("cpu:", NULL, NULL));
  EXPECT(ERROR_INPUT, tributary_open("cpu:", &no_size, &other));
  EXPECT(ERROR_INPUT, tributary_open("cpu:", &bad_format, &other));
  EXPECT(ERROR_INPUT, tributary_open("cpu:", &early, &other));
  EXPECT(ERROR_NO_CARD, tributary_open("unix:/nothing/here", NULL, &other));
  CHECK(strstr(tributary_error_text(), "/nothing/here") != NULL && other == NULL);
  OK(tributary_open("cpu:", &newer.known, &other));
  OK(tributary_card_close(other));
  OK(tributary_open("cpu:", &first, &other)); /* of a program that knows no fixed_window */
  OK(tributary_card_close(other));
  EXPECT(ERROR_INPUT, tributary_open("cpu:", &shorter, &other));
  newer.later = 1; /* a field that this library lacks */
  EXPECT(ERROR_INPUT, tributary_open("cpu:", &newer.known, &other));
  EXPECT(ERROR_INPUT, tributary_card_info(card, NULL));
  EXPECT(ERROR_INPUT, tributary_card_info(card, &info)); /* size is not set */
  EXPECT(ERROR_INPUT, tributary_reduce(job, NULL, inputs, 2, N, TRIBUTARY_SUM));
  EXPECT(ERROR_INPUT, tributary_reduce(job, sum, hole, 2, N, TRIBUTARY_SUM));
  EXPECT(ERROR_INPUT, tributary_reduce(job, sum, inputs, 1, N, TRIBUTARY_SUM));
  EXPECT(ERROR_INPUT, tributary_reduce(job, sum, inputs, 2, 0, TRIBUTARY_SUM));
  EXPECT(ERROR_INPUT, tributary_reduce(job, sum, inputs, 2, (size_t)-1, TRIBUTARY_SUM));
  EXPECT(ERROR_INPUT, tributary_reduce(job, a + 1, inputs, 2, N - 1, TRIBUTARY_SUM)); /* overlaps */
  EXPECT(ERROR_INPUT, tributary_reduce(job, sum, inputs, 2, N, (tributary_op)7));
  EXPECT(ERROR_INPUT, tributary_join("no ticket", 0, NULL, &member));
  EXPECT(ERROR_INPUT, tributary_join("serve:unix:/nothing#card?job=1", 64, NULL, &member));
  EXPECT(ERROR_NO_CARD, tributary_join("serve:unix:/nothing#card?job=1", 1, NULL, &member));
  EXPECT(ERROR_CLOSED, tributary_card_info((tributary_card *)job, (info.size = sizeof info, &info)));
  EXPECT(ERROR_CLOSED, tributary_job_close(NULL));
}

static void tickets(tributary_job *job) {
  char ticket[8] = "before";
  size_t length = 0;
  EXPECT(ERROR_INPUT, tributary_job_ticket(job, NULL, 0, &length));
  CHECK(length == 1);
  OK(tributary_job_ticket(job, ticket, sizeof ticket, NULL));
  CHECK(strcmp(ticket, "") == 0); /* the card is not shared */
}

/* Two members make a sum that the deadline takes one of: the mean is that of the other. */
static void partial_sums(void) {
  tributary_card *card;
  tributary_job *job;
  tributary_member *one, *two;
  tributary_pending *first;
  tributary_partial list[2];
  size_t count = 0;
  tributary_job_options options = {0};
  options.size = sizeof options;
  options.workers = 2;
  options.deadline_ns = 50000000;
  options.partial = 1;
  fill();
  OK(tributary_open("model:workers=2", NULL, &card));
  OK(tributary_configure(card, &options, &job));
  OK(tributary_job_member(job, 0, &one));
  OK(tributary_job_member(job, 1, &two));
  OK(tributary_start(one, sum, a, 16, TRIBUTARY_MEAN, 0, &first));
  OK(tributary_wait(first, -1));
  OK(tributary_partials(first, list, 2, &count));
  CHECK(count == 1 && list[0].from == 0 && list[0].to == 16 && list[0].ranks == 1);
  for (int i = 0; i < 16; i++) CHECK(sum[i] == a[i]);
  OK(tributary_pending_close(first));
  OK(tributary_job_abort(job));
  OK(tributary_card_close(card));
}

/* Closing in the wrong order: everything says so, and nothing is used after it. */
static void closing_order(void) {
  tributary_card *card;
  tributary_job *job;
  tributary_member *member;
  tributary_pending *pending;
  set_up("cpu:", 2, &card, &job);
  OK(tributary_job_member(job, 0, &member));
  OK(tributary_start(member, a, a, N, TRIBUTARY_SUM, 0, &pending));
  OK(tributary_card_close(card));
  EXPECT(ERROR_CLOSED, tributary_wait(pending, 0)); /* over already */
  EXPECT(ERROR_CLOSED, tributary_all_reduce(member, a, a, N, TRIBUTARY_SUM));
  EXPECT(ERROR_CLOSED, tributary_card_close(card));
  EXPECT(ERROR_CLOSED, tributary_job_close(job));
  OK(tributary_member_close(member));
  OK(tributary_pending_close(pending));

  set_up("cpu:", 2, &card, &job);
  OK(tributary_job_member(job, 0, &member));
  OK(tributary_start(member, a, a, N, TRIBUTARY_SUM, 0, &pending));
  OK(tributary_job_abort(job));
  EXPECT(ERROR_ENDED, tributary_wait(pending, 0));
  OK(tributary_card_close(card));
}

int main(void) {
  tributary_card *card;
  tributary_job *job;
  tributary_info info = {0};
  CHECK(tributary_abi_version() == TRIBUTARY_ABI_VERSION);
  CHECK(tributary_version()[0] != 0);
  CHECK(strcmp(tributary_error_name(TRIBUTARY_ERROR_LOST), "LOST") == 0);
  CHECK(strcmp(tributary_error_name((tributary_error)22), "UNKNOWN") == 0);
  set_up("cpu:", 2, &card, &job);
  info.size = sizeof info;
  OK(tributary_card_info(card, &info));
  CHECK(info.ports == 2 && info.format == TRIBUTARY_FP32 && info.result == TRIBUTARY_FP32 &&
        info.format_size == 4);
  reductions(job);
  members(job);
  wrong_arguments(card, job);
  tickets(job);
  cancel(job);
  OK(tributary_card_close(card));
  partial_sums();
  closing_order();
  puts("done");
  return 0;
}
