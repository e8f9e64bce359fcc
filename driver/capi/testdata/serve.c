/* A program serves a card to itself and to other processes. Its argument is an empty folder, in which it works.
 * With more arguments it is one of the other processes:
 *   FOLDER join TICKET   makes a reduction, and finishes
 *   FOLDER stay TICKET   joins, and waits for the end of its standard input
 *   FOLDER die ADDRESS   serves, and is killed */
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define N 500
#define SECOND 1000000000LL
#define CARD "cpu:workers=2,jobs=2"

static const char *folder;

/* Starts this program with a role. *input is the other end of its standard input. */
static pid_t start(const char *role, const char *argument, int *input) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[0], 0);
    close(ends[0]);
    close(ends[1]);
    execl("/proc/self/exe", "serve", folder, role, argument, (char *)NULL);
    _exit(127);
  }
  CHECK(child > 0);
  close(ends[0]);
  *input = ends[1];
  return child;
}

static void check_status(pid_t child, int want) {
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == want);
}

static int exists(const char *path) {
  struct stat found;
  return stat(path, &found) == 0;
}

static tributary_card *open_served(tributary_server *server) {
  char name[256];
  tributary_card *card;
  OK(tributary_server_name(server, name, sizeof name, NULL));
  OK(tributary_open(name, NULL, &card));
  return card;
}

/* Makes a job whose rank 1 is elsewhere. */
static tributary_job *make(tributary_card *card, char *ticket, size_t capacity) {
  int32_t here[] = {0};
  tributary_job_options options = {0};
  tributary_job *job;
  options.size = sizeof options;
  options.workers = 2;
  options.here = here;
  options.here_count = 1;
  OK(tributary_configure(card, &options, &job));
  OK(tributary_job_ticket(job, ticket, capacity, NULL));
  return job;
}

/* Makes a reduction, whose result may be lost if the server ends. */
static tributary_error reduce_at_end(tributary_member *member, int rank) {
  float a[N];
  for (int i = 0; i < N; i++) a[i] = (float)(i * (rank + 1));
  tributary_error error = tributary_all_reduce(member, a, a, N, TRIBUTARY_SUM);
  for (int i = 0; error == TRIBUTARY_OK && i < N; i++) CHECK(a[i] == (float)(3 * i));
  return error;
}

static void reduce(tributary_member *member, int rank) { OK(reduce_at_end(member, rank)); }

/* The end of a server reaches a client in one of two ways. */
static int is_end(tributary_error error) {
  return error == TRIBUTARY_ERROR_ENDED || error == TRIBUTARY_ERROR_DIED;
}

static tributary_job *job_with_child(tributary_card *card, const char *role, pid_t *child, int *input) {
  char ticket[512];
  tributary_job *job = make(card, ticket, sizeof ticket);
  tributary_member *member;
  *child = start(role, ticket, input);
  OK(tributary_job_member(job, 0, &member));
  reduce(member, 0);
  if (strcmp(role, "stay") == 0) reduce(member, 0); /* the child has its sums of the first one */
  OK(tributary_member_close(member));
  return job;
}

/* Both processes end at once: the other one gets its sums and finishes, in the grace. */
static void finish(const char *address) {
  for (int round = 0; round < 20; round++) {
    tributary_server *server;
    pid_t child;
    int input;
    OK(tributary_serve(CARD, NULL, address, &server));
    tributary_card *card = open_served(server);
    tributary_job *job = job_with_child(card, "join", &child, &input);
    OK(tributary_job_close(job));
    OK(tributary_card_close(card));
    OK(tributary_server_close(server, 60 * SECOND));
    EXPECT(ERROR_CLOSED, tributary_server_close(server, 0));
    check_status(child, 0);
    close(input);
  }
}

static void socket_file(void) {
  tributary_server *server, *other = NULL;
  struct stat found;
  char name[256], small[8];
  size_t length = 0;
  OK(tributary_serve(CARD, NULL, "unix:s", &server));
  CHECK(stat("s", &found) == 0 && S_ISSOCK(found.st_mode) && (found.st_mode & 0777) == 0600);
  OK(tributary_server_name(server, name, sizeof name, &length));
  CHECK(strcmp(name, "serve:unix:s") == 0 && length == strlen(name) + 1);
  EXPECT(ERROR_INPUT, tributary_server_name(server, small, sizeof small, &length));
  EXPECT(ERROR_INPUT, tributary_serve(CARD, NULL, "unix:s", &other));
  CHECK(strstr(tributary_error_text(), "another program listens at s") != NULL && other == NULL);
  EXPECT(ERROR_INPUT, tributary_server_close(server, -1));
  tributary_card_close(open_served(server)); /* it goes on */
  CHECK(mkdir("elsewhere", 0700) == 0 && chdir("elsewhere") == 0);
  OK(tributary_server_close(server, SECOND));
  CHECK(chdir("..") == 0 && !exists("s"));
  EXPECT(ERROR_CLOSED, tributary_server_name(server, name, sizeof name, NULL));
  EXPECT(ERROR_CLOSED, tributary_server_abort(server));
}

static void killed(void) {
  tributary_server *server;
  int input;
  check_status(start("die", "unix:k", &input), SIGKILL);
  close(input);
  CHECK(exists("k"));
  OK(tributary_serve(CARD, NULL, "unix:k", &server));
  OK(tributary_card_close(open_served(server)));
  OK(tributary_server_abort(server));
  CHECK(!exists("k"));
}

static void wrong_arguments(void) {
  static const char *const reachable[] = {"tcp:0.0.0.0:0", "tcp::0", "tcp:[::]:0"};
  static const char *const wrong[] = {"", "s", "unix:", "unix:@s", "unix:/nothing/s", "tcp:127.0.0.1", "udp:127.0.0.1:1"};
  tributary_open_options bad_format = {sizeof bad_format, 0, 0, 9, 0};
  tributary_server *server = NULL;
  EXPECT(ERROR_INPUT, tributary_serve(NULL, NULL, "unix:s", &server));
  EXPECT(ERROR_INPUT, tributary_serve(CARD, NULL, NULL, &server));
  EXPECT(ERROR_INPUT, tributary_serve(CARD, NULL, "unix:s", NULL));
  EXPECT(ERROR_INPUT, tributary_serve(CARD, &bad_format, "unix:s", &server));
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    EXPECT(ERROR_INPUT, tributary_serve(CARD, NULL, wrong[i], &server));
  for (size_t i = 0; i < sizeof reachable / sizeof *reachable; i++) {
    EXPECT(ERROR_INPUT, tributary_serve(CARD, NULL, reachable[i], &server));
    CHECK(strstr(tributary_error_text(), "other machines can reach") != NULL);
  }
  EXPECT(ERROR_INPUT, tributary_serve("serve:unix:s", NULL, "unix:s", &server));
  CHECK(strstr(tributary_error_text(), "a daemon shares this card already") != NULL);
  EXPECT(ERROR_NO_CARD, tributary_serve("unix:/nothing/here", NULL, "unix:s", &server));
  CHECK(!exists("s") && server == NULL);
  EXPECT(ERROR_CLOSED, tributary_server_abort(NULL));
}

/* A port, and options: the card has them. */
static void port(void) {
  tributary_open_options options = {sizeof options, 0, 5, TRIBUTARY_BF16, 0};
  tributary_info info = {0};
  tributary_server *server;
  OK(tributary_serve("cpu:", &options, "tcp:127.0.0.1:0", &server));
  tributary_card *card = open_served(server);
  info.size = sizeof info;
  OK(tributary_card_info(card, &info));
  CHECK(info.ports == 5 && info.format == TRIBUTARY_BF16);
  OK(tributary_card_close(card));
  OK(tributary_server_abort(server));
}

static void *abort_server(void *server) {
  OK(tributary_server_abort(server));
  return NULL;
}

/* A member that does not finish, or whose process is stopped, keeps the end waiting for the grace alone.
 * A second thread ends the wait. */
static void left(int stopped, int64_t grace, int from_thread) {
  tributary_server *server;
  pthread_t thread;
  pid_t child;
  int input;
  OK(tributary_serve(CARD, NULL, "unix:s", &server));
  tributary_card *card = open_served(server);
  tributary_job *job = job_with_child(card, "stay", &child, &input);
  OK(tributary_job_close(job));
  if (stopped) kill(child, SIGSTOP);
  if (from_thread) CHECK(pthread_create(&thread, NULL, abort_server, server) == 0);
  tributary_error closed = tributary_server_close(server, grace);
  CHECK(closed == TRIBUTARY_OK || (from_thread && closed == TRIBUTARY_ERROR_CLOSED)); /* the thread may be first */
  if (from_thread) CHECK(pthread_join(thread, NULL) == 0);
  CHECK(!exists("s"));
  (void)tributary_card_close(card); /* its connection is gone */
  kill(child, SIGCONT);
  close(input);
  check_status(child, 0);
}

/* Reductions of this process that run at the end. */
static void running(void) {
  tributary_server *server;
  tributary_member *member;
  tributary_pending *pending;
  tributary_job_options options = {0};
  tributary_job *job;
  float a[N] = {0};
  options.size = sizeof options;
  OK(tributary_serve(CARD, NULL, "unix:s", &server));
  tributary_card *card = open_served(server);
  OK(tributary_configure(card, &options, &job));
  OK(tributary_job_member(job, 0, &member));
  OK(tributary_start(member, a, a, N, TRIBUTARY_SUM, 0, &pending));
  OK(tributary_server_close(server, 1000000));
  CHECK(is_end(tributary_wait(pending, -1)));
  OK(tributary_pending_close(pending));
  (void)tributary_card_close(card);
}

static int other(const char *role, const char *argument) {
  tributary_member *member;
  tributary_server *server;
  char end;
  if (strcmp(role, "die") == 0) {
    OK(tributary_serve(CARD, NULL, argument, &server));
    raise(SIGKILL);
  }
  OK(tributary_join(argument, 1, NULL, &member));
  reduce(member, 1);
  if (strcmp(role, "join") == 0) {
    OK(tributary_member_close(member));
    return 0;
  }
  (void)reduce_at_end(member, 1);
  while (read(0, &end, 1) > 0) {
  }
  CHECK(is_end(tributary_member_close(member)));
  return 0;
}

int main(int argc, char **argv) {
  folder = argv[1];
  CHECK((argc == 2 || argc == 4) && chdir(folder) == 0);
  if (argc == 4) return other(argv[2], argv[3]);
  wrong_arguments();
  socket_file();
  killed();
  port();
  finish("unix:s");
  finish("tcp:127.0.0.1:0");
  left(0, 0, 0);
  left(0, 50000000, 0);
  left(0, 3600 * SECOND, 1);
  left(1, 0, 0);
  running();
  puts("done");
  return 0;
}
