/* The program's handlers of SIGINT and SIGTERM run while a reduction waits, and SIGPIPE keeps its
 * disposition. */
#include <signal.h>
#include <unistd.h>

#include "check.h"

static volatile sig_atomic_t interrupts;

static void interrupt(int number) {
  (void)number;
  interrupts++;
}

int main(void) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGUSR1, SIGALRM};
  struct sigaction action = {0}, now;
  tributary_card *card;
  tributary_job *job;
  tributary_member *member;
  tributary_pending *pending;
  float a[100] = {1};
  action.sa_handler = interrupt;
  action.sa_flags = SA_ONSTACK;
  for (int i = 0; i < 4; i++) CHECK(sigaction(numbers[i], &action, NULL) == 0);
  set_up("cpu:", 2, &card, &job);
  for (int i = 0; i < 4; i++) {
    CHECK(sigaction(numbers[i], NULL, &now) == 0);
    CHECK(now.sa_handler == interrupt);
  }
  OK(tributary_job_member(job, 0, &member));
  OK(tributary_start(member, a, a, 100, TRIBUTARY_SUM, 0, &pending));
  for (int i = 0; i < 4; i++) {
    CHECK(kill(getpid(), numbers[i]) == 0);
    EXPECT(ERROR_RUNNING, tributary_wait(pending, 1000000));
  }
  while (interrupts < 4) EXPECT(ERROR_RUNNING, tributary_wait(pending, 1000000));
  CHECK(interrupts == 4);
  CHECK(sigaction(SIGINT, &(struct sigaction){.sa_handler = SIG_DFL}, NULL) == 0);
  OK(tributary_pending_close(pending));
  OK(tributary_card_close(card));
  puts("ready");
  fflush(stdout);
  raise(SIGINT); /* its default: the end */
  return 1;
}
