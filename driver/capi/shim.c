/* The functions of tributary.h. Each one checks in C what must be checked before any Go runs, sets the
 * processor's floating-point mode for Go, and calls the Go function of its name. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "_cgo_export.h"

/* ------------------------------------------------------------------------------ Floating-point mode */

/* A C program may run with denormals flushed to zero (gcc -ffast-math does that) or with another rounding
 * mode. Go expects the default, and its threads inherit the mode of the thread that loads the library. */
#if defined(KEEP_FLOATING_POINT_MODE) /* a build that shows what the mode does otherwise */
typedef int fp_mode;
static fp_mode mode_set(void) { return 0; }
static void mode_restore(fp_mode mode) { (void)mode; }
#elif defined(__x86_64__)
#include <xmmintrin.h>
typedef unsigned fp_mode;
static fp_mode mode_set(void) {
  fp_mode mode = _mm_getcsr();
  _mm_setcsr(0x1f80); /* round to nearest, all exceptions masked, nothing flushed */
  return mode;
}
static void mode_restore(fp_mode mode) { _mm_setcsr(mode); }
#elif defined(__aarch64__)
typedef unsigned long fp_mode;
static fp_mode mode_set(void) {
  fp_mode mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  __asm__ volatile("msr fpcr, %0" : : "r"(0ul));
  return mode;
}
static void mode_restore(fp_mode mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode)); }
#else
#error "tell how to set this processor's floating-point mode"
#endif

/* -------------------------------------------------------------------------------------------- Load */

static pid_t loaded_by;
static fp_mode mode_at_load;
static pthread_key_t key; /* of struct thread */

static void prepare_fork(void);
static void after_fork(void);
static void after_fork_in_child(void);

/* Runs before Go's constructor, which has no priority and starts Go's first thread. */
__attribute__((constructor(101))) static void before_go(void) {
  loaded_by = getpid();
  if (pthread_key_create(&key, free) != 0) abort();
  if (pthread_atfork(prepare_fork, after_fork, after_fork_in_child) != 0) abort();
  mode_at_load = mode_set();
}

/* Runs after Go's constructor: the linker puts Go's object before those of C. */
__attribute__((constructor)) static void after_go(void) { mode_restore(mode_at_load); }

/* ---------------------------------------------------------------------------------------- Children */

/* children.go has the reason. The addresses stay: a program has few daemons. */
struct address {
  struct address *next;
  socklen_t size;
  struct sockaddr_storage of;
};

static pthread_mutex_t addresses_lock = PTHREAD_MUTEX_INITIALIZER;
static struct address *addresses;

static int is_known(const struct address *a) {
  for (const struct address *known = addresses; known != NULL; known = known->next)
    if (known->size == a->size && memcmp(&known->of, &a->of, a->size) == 0) return 1;
  return 0;
}

/* Reads the address of an end of a socket. Sockets without an address, and other files, have none. */
static int address_of(int fd, int (*end)(int, struct sockaddr *, socklen_t *), struct address *a) {
  memset(a, 0, sizeof *a);
  a->size = sizeof a->of;
  return end(fd, (struct sockaddr *)&a->of, &a->size) == 0 && a->size > sizeof a->of.ss_family &&
         a->size <= sizeof a->of;
}

void close_in_children(int fd, bool peer) {
  struct address *a = malloc(sizeof *a);
  if (a == NULL) return;
  pthread_mutex_lock(&addresses_lock);
  if (address_of(fd, peer ? getpeername : getsockname, a) && !is_known(a)) {
    a->next = addresses;
    addresses = a;
    a = NULL;
  }
  pthread_mutex_unlock(&addresses_lock);
  free(a);
}

static void prepare_fork(void) { pthread_mutex_lock(&addresses_lock); }
static void after_fork(void) { pthread_mutex_unlock(&addresses_lock); }

#if defined(__linux__)

/* An entry of getdents64. */
struct entry {
  uint64_t inode;
  int64_t offset;
  uint16_t size;
  uint8_t type;
  char name[];
};

static void close_if_known(int fd) {
  struct address a;
  if ((address_of(fd, getsockname, &a) && is_known(&a)) || (address_of(fd, getpeername, &a) && is_known(&a)))
    close(fd);
}

/* It makes no call that is unsafe in the child of a program with threads, such as opendir. */
static void after_fork_in_child(void) {
  int error = errno;
  _Alignas(struct entry) char entries[4096];
  long n;
  int folder = addresses == NULL ? -1 : open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  while (folder >= 0 && (n = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0) {
    for (long at = 0; at < n;) {
      struct entry *e = (struct entry *)(entries + at);
      int fd = 0, numbered = e->name[0] >= '0' && e->name[0] <= '9';
      for (const char *digit = e->name; *digit >= '0' && *digit <= '9'; digit++) fd = 10 * fd + (*digit - '0');
      if (numbered && fd != folder) close_if_known(fd);
      at += e->size;
    }
  }
  if (folder >= 0) close(folder);
  errno = error;
  pthread_mutex_unlock(&addresses_lock);
}

#else /* children keep the sockets */
static void after_fork_in_child(void) { pthread_mutex_unlock(&addresses_lock); }
#endif

/* ------------------------------------------------------------------------------------------ Errors */

/* What the library keeps for a thread. It is no _Thread_local variable: glibc has room for some hundred bytes
 * of them in libraries that are loaded late and contain Go. */
struct thread {
  struct failure failure; /* of the last call */
  fp_mode mode;           /* the caller's, during a call of Go */
  int error;              /* the caller's errno, during a call of Go */
};

static struct thread *thread(void) {
  static struct thread shared; /* by threads without memory */
  struct thread *t = pthread_getspecific(key);
  if (t != NULL) return t;
  t = calloc(1, sizeof *t);
  if (t == NULL || pthread_setspecific(key, t) != 0) {
    free(t);
    return &shared;
  }
  return t;
}

#define FAILURE (&thread()->failure)

static tributary_error fail(tributary_error error, const char *text) {
  FAILURE->ranks = 0;
  snprintf(FAILURE->text, sizeof FAILURE->text, "%s", text);
  return error;
}

static tributary_error forked(void) {
  snprintf(FAILURE->text, sizeof FAILURE->text,
           "process %ld was forked from process %ld, which had loaded this library, and Go does not run in "
           "such a child; "
           "load the library in the child alone, or start a new program (in Python: multiprocessing with "
           "spawn or forkserver)",
           (long)getpid(), (long)loaded_by);
  FAILURE->ranks = 0;
  return TRIBUTARY_ERROR_FORKED;
}

const char *tributary_error_text(void) { return FAILURE->text; }
uint64_t tributary_error_ranks(void) { return FAILURE->ranks; }

const char *tributary_error_name(tributary_error error) {
  static const char *const names[] = {"OK",      "OTHER",       "INPUT",        "FORKED",      "CLOSED",
                                      "NO_CARD", "BUSY",        "INCOMPATIBLE", "FULL",        "REFUSED",
                                      "TIMEOUT", "MISSING",     "NOT_STARTED",  "RUNNING",     "CANCELED",
                                      "ENDED",   "MEMBER_LOST", "CALLS_DIFFER", "RESULT_LOST", "EVICTED",
                                      "DIED",    "LOST"};
  return (unsigned)error < sizeof names / sizeof *names ? names[error] : "UNKNOWN";
}

uint32_t tributary_abi_version(void) { return TRIBUTARY_ABI_VERSION; }
const char *tributary_version(void) { return "0.1.0"; }

/* Prepares a call of Go, unless Go would never return. */
static int enter(void) {
  if (getpid() != loaded_by) return 0;
  int error = errno;
  struct thread *t = thread();
  t->failure.ranks = 0;
  t->failure.text[0] = 0;
  t->error = error;
  t->mode = mode_set();
  return 1;
}

static tributary_error leave(int error) {
  struct thread *t = thread();
  mode_restore(t->mode);
  errno = t->error;
  return (tributary_error)error;
}

#define GO(call) (enter() ? leave(call) : forked())

#define NEED(pointer)                                                                   \
  do {                                                                                  \
    if ((pointer) == NULL) return fail(TRIBUTARY_ERROR_INPUT, #pointer ": it is NULL"); \
  } while (0)

/* ------------------------------------------------------------------------------------------ Structures */

/* Copies a structure of the caller's version into one of this version, which is zero. Fields that this
 * version lacks must be 0. */
static tributary_error take(void *own, size_t own_size, const void *theirs, size_t smallest) {
  if (theirs == NULL) return TRIBUTARY_OK;
  size_t size;
  memcpy(&size, theirs, sizeof size);
  if (size < smallest || size > 4096)
    return fail(TRIBUTARY_ERROR_INPUT, "options: size is not the sizeof of the structure");
  for (size_t i = own_size; i < size; i++)
    if (((const char *)theirs)[i] != 0)
      return fail(TRIBUTARY_ERROR_INPUT, "options: this library lacks a field that is set; use a newer one");
  memcpy(own, theirs, size < own_size ? size : own_size);
  return TRIBUTARY_OK;
}

/* first is the size of the structure in the first version. */
#define TAKE(own, theirs, first)                                      \
  do {                                                                \
    tributary_error wrong = take(&(own), sizeof(own), theirs, first); \
    if (wrong != TRIBUTARY_OK) return wrong;                          \
  } while (0)

#define OPEN_OPTIONS_FIRST offsetof(tributary_open_options, fixed_window)

/* Copies info into the caller's structure, which may be of another version, unless error is one. */
static tributary_error give(tributary_info *theirs, const tributary_info *own, tributary_error error) {
  if (error != TRIBUTARY_OK) return error;
  size_t size = theirs->size;
  memset(theirs, 0, size);
  memcpy(theirs, own, size < sizeof *own ? size : sizeof *own);
  theirs->size = size;
  return TRIBUTARY_OK;
}

static int has_size(const tributary_info *info) {
  return info != NULL && info->size >= sizeof(tributary_info) && info->size <= 4096;
}

#define NEED_INFO(info)                                                                      \
  do {                                                                                       \
    if (!has_size(info))                                                                     \
      return fail(TRIBUTARY_ERROR_INPUT, "info: it is NULL, or its size is not its sizeof"); \
  } while (0)

/* Handles are numbers. */
#define NUMBER(handle) ((uint64_t)(uintptr_t)(handle))

/* ------------------------------------------------------------------------------------------- Cards */

tributary_error tributary_open(const char *name, const tributary_open_options *options,
                               tributary_card **card) {
  tributary_open_options own = {0};
  TAKE(own, options, OPEN_OPTIONS_FIRST);
  NEED(name);
  NEED(card);
  return GO(goOpen(FAILURE, (char *)name, &own, (uintptr_t *)card));
}

tributary_error tributary_card_info(tributary_card *card, tributary_info *info) {
  NEED_INFO(info);
  tributary_info own = {0};
  return give(info, &own, GO(goCardInfo(FAILURE, NUMBER(card), &own)));
}

tributary_error tributary_card_close(tributary_card *card) { return GO(goCardClose(FAILURE, NUMBER(card))); }

/* ----------------------------------------------------------------------------------------- Servers */

tributary_error tributary_serve(const char *name, const tributary_open_options *options, const char *address,
                                tributary_server **server) {
  tributary_open_options own = {0};
  TAKE(own, options, OPEN_OPTIONS_FIRST);
  NEED(name);
  NEED(address);
  NEED(server);
  return GO(goServe(FAILURE, (char *)name, &own, (char *)address, (uintptr_t *)server));
}

tributary_error tributary_server_name(tributary_server *server, char *buffer, size_t capacity,
                                      size_t *length) {
  if (capacity > 0) NEED(buffer);
  return GO(goServerName(FAILURE, NUMBER(server), buffer, capacity, length));
}

tributary_error tributary_server_close(tributary_server *server, int64_t grace_ns) {
  return GO(goServerClose(FAILURE, NUMBER(server), grace_ns));
}

tributary_error tributary_server_abort(tributary_server *server) {
  return GO(goServerClose(FAILURE, NUMBER(server), 0));
}

/* -------------------------------------------------------------------------------------------- Jobs */

tributary_error tributary_configure(tributary_card *card, const tributary_job_options *options,
                                    tributary_job **job) {
  tributary_job_options own = {0};
  TAKE(own, options, sizeof own);
  NEED(job);
  return GO(goConfigure(FAILURE, NUMBER(card), &own, (uintptr_t *)job));
}

tributary_error tributary_job_ticket(tributary_job *job, char *buffer, size_t capacity, size_t *length) {
  if (capacity > 0) NEED(buffer);
  return GO(goJobTicket(FAILURE, NUMBER(job), buffer, capacity, length));
}

tributary_error tributary_job_member(tributary_job *job, int32_t rank, tributary_member **member) {
  NEED(member);
  return GO(goJobMember(FAILURE, NUMBER(job), rank, (uintptr_t *)member));
}

tributary_error tributary_job_close(tributary_job *job) { return GO(goJobClose(FAILURE, NUMBER(job))); }

tributary_error tributary_job_abort(tributary_job *job) { return GO(goJobAbort(FAILURE, NUMBER(job))); }

/* ----------------------------------------------------------------------------------------- Members */

tributary_error tributary_join(const char *ticket, int32_t rank, const tributary_open_options *options,
                               tributary_member **member) {
  tributary_open_options own = {0};
  TAKE(own, options, OPEN_OPTIONS_FIRST);
  NEED(ticket);
  NEED(member);
  return GO(goJoin(FAILURE, (char *)ticket, rank, &own, (uintptr_t *)member));
}

tributary_error tributary_member_rank(tributary_member *member, int32_t *rank, int32_t *workers) {
  return GO(goMemberRank(FAILURE, NUMBER(member), rank, workers));
}

tributary_error tributary_member_info(tributary_member *member, tributary_info *info) {
  NEED_INFO(info);
  tributary_info own = {0};
  return give(info, &own, GO(goMemberInfo(FAILURE, NUMBER(member), &own)));
}

tributary_error tributary_member_close(tributary_member *member) {
  return GO(goMemberClose(FAILURE, NUMBER(member)));
}

tributary_error tributary_member_abort(tributary_member *member) {
  return GO(goMemberAbort(FAILURE, NUMBER(member)));
}

/* -------------------------------------------------------------------------------------- Reductions */

tributary_error tributary_start(tributary_member *member, void *dst, const void *src, size_t elements,
                                tributary_op op, uint32_t flags, tributary_pending **pending) {
  NEED(dst);
  NEED(src);
  NEED(pending);
  return GO(goStart(FAILURE, NUMBER(member), dst, (void *)src, elements, op, flags, (uintptr_t *)pending));
}

tributary_error tributary_start_reduce(tributary_job *job, void *dst, const void *const *inputs, size_t count,
                                       size_t elements, tributary_op op, uint32_t flags,
                                       tributary_pending **pending) {
  NEED(dst);
  NEED(inputs);
  NEED(pending);
  return GO(goStartReduce(FAILURE, NUMBER(job), dst, (void **)inputs, count, elements, op, flags,
                          (uintptr_t *)pending));
}

/* Waits for a reduction that nobody else knows, and closes it. The outcome's failure stays. */
static tributary_error outcome(tributary_pending *pending) { return GO(goOutcome(FAILURE, NUMBER(pending))); }

tributary_error tributary_all_reduce(tributary_member *member, void *dst, const void *src, size_t elements,
                                     tributary_op op) {
  tributary_pending *pending;
  tributary_error error = tributary_start(member, dst, src, elements, op, 0, &pending);
  return error != TRIBUTARY_OK ? error : outcome(pending);
}

tributary_error tributary_reduce(tributary_job *job, void *dst, const void *const *inputs, size_t count,
                                 size_t elements, tributary_op op) {
  tributary_pending *pending;
  tributary_error error = tributary_start_reduce(job, dst, inputs, count, elements, op, 0, &pending);
  return error != TRIBUTARY_OK ? error : outcome(pending);
}

tributary_error tributary_wait(tributary_pending *pending, int64_t timeout_ns) {
  return GO(goWait(FAILURE, NUMBER(pending), timeout_ns));
}

tributary_error tributary_cancel(tributary_pending *pending) {
  return GO(goCancel(FAILURE, NUMBER(pending)));
}

tributary_error tributary_partials(tributary_pending *pending, tributary_partial *list, size_t capacity,
                                   size_t *count) {
  if (capacity > 0) NEED(list);
  NEED(count);
  return GO(goPartials(FAILURE, NUMBER(pending), list, capacity, count));
}

tributary_error tributary_pending_close(tributary_pending *pending) {
  return GO(goPendingClose(FAILURE, NUMBER(pending)));
}
