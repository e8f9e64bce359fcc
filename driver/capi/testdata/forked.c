/* A child that was forked after the library was loaded gets an error, and the parent goes on. */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

int main(void) {
  tributary_card *card, *other;
  tributary_server *server;
  tributary_job *job;
  tributary_info info = {0};
  float a[16] = {1}, b[16] = {2};
  const void *inputs[] = {a, b};
  int status;
  info.size = sizeof info;
  set_up("cpu:", 2, &card, &job);
  if (fork() == 0) {
    alarm(100); /* kills a child that hangs */
    EXPECT(ERROR_FORKED, tributary_open("cpu:", NULL, &other));
    CHECK(strstr(tributary_error_text(), "forked") != NULL);
    EXPECT(ERROR_FORKED, tributary_serve("cpu:", NULL, "unix:s", &server));
    EXPECT(ERROR_FORKED, tributary_server_close(NULL, 0));
    EXPECT(ERROR_FORKED, tributary_card_info(card, &info));
    EXPECT(ERROR_FORKED, tributary_reduce(job, a, inputs, 2, 16, TRIBUTARY_SUM));
    EXPECT(ERROR_FORKED, tributary_job_close(job));
    EXPECT(ERROR_FORKED, tributary_card_close(card));
    CHECK(tributary_abi_version() == TRIBUTARY_ABI_VERSION);
    return 0;
  }
  CHECK(wait(&status) > 0 && status == 0);
  OK(tributary_reduce(job, a, inputs, 2, 16, TRIBUTARY_SUM));
  CHECK(a[0] == 3);
  OK(tributary_card_close(card));
  puts("done");
  return 0;
}
