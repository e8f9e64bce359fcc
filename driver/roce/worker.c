//go:build ignore

/* tributary-roce-worker: one rank that sums arrays of a pattern under RoCEv2, and checks every element.
 *
 * A coordinator introduces the ranks to each other, and registers their connections with the card. Worker and
 * coordinator exchange lines of text over the channel: a TCP connection, or a device such as a virtio serial
 * port. README.md beside this file lists the lines. */
#define _DEFAULT_SOURCE

#include "tributary_roce.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { line_bytes = 512, most_ranks = 64, element_bytes = 4 };

static const double second = 1e9; /* ns */

/* What the sums are compared with. */
enum expected { expect_sum, expect_previous };

static const char usage[] =
    "Sums arrays of a pattern with other ranks under RoCEv2, checks every element, and\n"
    "prints the outcome as JSON. Exit status: 0 if all elements are right, 1 if not or if\n"
    "the reduction failed, 2 for a wrong command line or without a coordinator.\n\n"
    "Usage:\n"
    "  tributary-roce-worker -rank R -ranks N -channel CHANNEL [flags]\n\n"
    "Flags:\n"
    "  -rank R         be rank R, from 0\n"
    "  -ranks N        of N ranks\n"
    "  -channel NAME   talk to the coordinator over tcp:HOST:PORT, or over a device's PATH\n"
    "  -device NAME    use this RDMA device (default the first with an IPv4 address)\n"
    "  -address IP     use the device with this IPv4 address\n"
    "  -elements N     sum arrays of N elements (default 1000)\n"
    "  -format F       of int32 or fp32 (default int32)\n"
    "  -arrays N       sum N arrays, one after another (default 1)\n"
    "  -seed N         draw the elements from seed N (default 1)\n"
    "  -mtu BYTES      send packets of 1024, 2048 or 4096 bytes (default the port's)\n"
    "  -packets P      send messages of P packets (default 1)\n"
    "  -window W       keep W packets in flight (default P)\n"
    "  -write          use RDMA WRITE with immediate instead of SEND\n"
    "  -retries N      repeat a packet N times, 1 to 6 (default 6)\n"
    "  -lateness S     expect other ranks up to S seconds late (default 1)\n"
    "  -deadline S     give up an array after S seconds (default 60)\n"
    "  -psn N          begin with PSN N (default random)\n"
    "  -late S         begin each array S seconds late, for tests\n"
    "  -expect WHAT    compare with the sum, or with the previous rank's array, which comes if\n"
    "                  no card sums: sum or previous (default sum)\n";

struct worker {
  uint32_t rank, ranks;
  const char *channel_name;
  size_t elements;
  int fp32;
  uint32_t arrays;
  uint64_t seed;
  double deadline, late;
  enum expected expected;
  tributary_roce_options options;

  int channel;
  tributary_roce *roce;
  tributary_roce_region *inputs, *sums;
  void *in, *out;
  size_t bytes; /* of an array */
  uint64_t wrong;
  double seconds;

  /* The reader's thread passes lines on. It cancels the reduction when the coordinator aborts. */
  pthread_t reader;
  pthread_mutex_t lock;
  pthread_cond_t more;
  char line[line_bytes]; /* the newest one; empty: taken */
  char abort[line_bytes];

  char error[line_bytes];
};

/* fail keeps the first error. It returns -1. */
__attribute__((format(printf, 2, 3))) static int fail(struct worker *w, const char *format, ...) {
  if (w->error[0])
    return -1;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(w->error, sizeof w->error, format, arguments);
  va_end(arguments);
  return -1;
}

/* ----------------------------------------------------------------------------------------- Channel */

static int dial(struct worker *w, const char *address) {
  char host[256];
  const char *colon = strrchr(address, ':');
  if (!colon || (size_t)(colon - address) >= sizeof host)
    return fail(w, "%s is not HOST:PORT", address);
  memcpy(host, address, (size_t)(colon - address));
  host[colon - address] = 0;
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
  int e = getaddrinfo(host, colon + 1, &hints, &list);
  if (e)
    return fail(w, "%s: %s", address, gai_strerror(e));
  int s = -1;
  for (struct addrinfo *a = list; a && s < 0; a = a->ai_next) {
    s = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
    if (s >= 0 && connect(s, a->ai_addr, a->ai_addrlen)) {
      close(s);
      s = -1;
    }
  }
  freeaddrinfo(list);
  return s < 0 ? fail(w, "%s: %s", address, strerror(errno)) : s;
}

/* say sends a line, which is short enough for one write. */
__attribute__((format(printf, 2, 3))) static int say(struct worker *w, const char *format, ...) {
  char line[2 * line_bytes];
  va_list arguments;
  va_start(arguments, format);
  int n = vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  n = n < (int)sizeof line - 1 ? n : (int)sizeof line - 2;
  line[n++] = '\n';
  for (int at = 0; at < n;) {
    ssize_t written = write(w->channel, line + at, (size_t)(n - at));
    if (written < 0)
      return fail(w, "the channel: %s", strerror(errno));
    at += (int)written;
  }
  return 0;
}

/* hear passes a line on when the one before is taken. ABORT ends everything at once. */
static void hear(struct worker *w, const char *line) {
  pthread_mutex_lock(&w->lock);
  if (strncmp(line, "ABORT", 5) == 0) {
    snprintf(w->abort, sizeof w->abort, "%s", line[5] == ' ' ? line + 6 : "the coordinator gave up");
    tributary_roce_cancel(w->roce);
  } else {
    while (w->line[0] && !w->abort[0])
      pthread_cond_wait(&w->more, &w->lock);
    snprintf(w->line, sizeof w->line, "%s", line);
  }
  pthread_cond_broadcast(&w->more);
  pthread_mutex_unlock(&w->lock);
}

static void *read_lines(void *argument) {
  struct worker *w = argument;
  char line[line_bytes];
  size_t n = 0;
  char c;
  while (read(w->channel, &c, 1) == 1) {
    if (c != '\n' && n < sizeof line - 1) {
      line[n++] = c;
      continue;
    }
    line[n] = 0;
    if (n)
      hear(w, line);
    n = 0;
  }
  hear(w, "ABORT the channel has ended");
  return NULL;
}

/* await takes the next line. */
static int await(struct worker *w, char line[line_bytes], double seconds) {
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += (time_t)seconds + 1;
  int e = 0;
  pthread_mutex_lock(&w->lock);
  while (!w->line[0] && !w->abort[0] && e != ETIMEDOUT)
    e = pthread_cond_timedwait(&w->more, &w->lock, &end);
  if (w->abort[0]) {
    e = fail(w, "%s", w->abort);
  } else if (!w->line[0]) {
    e = fail(w, "other ranks did not come within %.0f s", seconds);
  } else {
    memcpy(line, w->line, line_bytes);
    w->line[0] = 0;
    pthread_cond_broadcast(&w->more);
    e = 0;
  }
  pthread_mutex_unlock(&w->lock);
  return e;
}

/* meet waits until all ranks have come to a point. */
static int meet(struct worker *w, const char *point, double seconds) {
  char line[line_bytes];
  if (say(w, "%s", point) || await(w, line, seconds))
    return -1;
  return strcmp(line, "GO") ? fail(w, "the coordinator sent %s instead of GO", line) : 0;
}

/* ------------------------------------------------------------------------------------------ Set-up */

static int open_channel(struct worker *w) {
  if (strncmp(w->channel_name, "tcp:", 4) == 0)
    w->channel = dial(w, w->channel_name + 4);
  else if ((w->channel = open(w->channel_name, O_RDWR | O_CLOEXEC)) < 0)
    fail(w, "%s: %s", w->channel_name, strerror(errno));
  if (w->channel < 0)
    return -1;
  return pthread_create(&w->reader, NULL, read_lines, w) ? fail(w, "no thread") : 0;
}

/* check keeps the library's error. */
static int check(struct worker *w, tributary_roce_error e) {
  return e ? fail(w, "%s: %s", tributary_roce_error_name(e), tributary_roce_error_text(w->roce)) : 0;
}

static int open_device(struct worker *w) {
  if (check(w, tributary_roce_open(w->roce, &w->options, w->ranks)))
    return -1;
  size_t room = (w->bytes + 4095) / 4096 * 4096; /* whole packets */
  w->in = calloc(1, room);
  w->out = calloc(1, room);
  if (!w->in || !w->out)
    return fail(w, "no memory for arrays of %zu bytes", w->bytes);
  return check(w, tributary_roce_register(w->roce, w->in, room, &w->inputs)) ||
                 check(w, tributary_roce_register(w->roce, w->out, room, &w->sums))
             ? -1
             : 0;
}

/* The fields of an end on the channel; they are in the order of end_fields. */
#define END_FORMAT                                                                                                    \
  "ip=%hhu.%hhu.%hhu.%hhu mac=%hhx:%hhx:%hhx:%hhx:%hhx:%hhx send_qpn=%" SCNu32 " receive_qpn=%" SCNu32 " psn=%" SCNu32 \
  " mtu=%" SCNu32 " rkey=%" SCNu32 " address=%" SCNu64
enum { end_fields = 16 };

static int join(struct worker *w) {
  tributary_roce_end e;
  if (check(w, tributary_roce_local(w->roce, w->sums, &e)))
    return -1;
  return say(w, "JOIN rank=%u ranks=%u ip=%u.%u.%u.%u mac=%02x:%02x:%02x:%02x:%02x:%02x send_qpn=%u receive_qpn=%u psn=%u mtu=%u rkey=%u address=%" PRIu64,
             w->rank, w->ranks, e.ip[0], e.ip[1], e.ip[2], e.ip[3], e.mac[0], e.mac[1], e.mac[2], e.mac[3], e.mac[4], e.mac[5],
             e.send_qpn, e.receive_qpn, e.psn, e.mtu, e.rkey, e.address);
}

static int meet_peers(struct worker *w) {
  tributary_roce_end ends[most_ranks];
  char line[line_bytes];
  for (uint32_t i = 0; i < w->ranks; i++) {
    if (await(w, line, w->deadline))
      return -1;
    tributary_roce_end *e = ends + i;
    uint32_t rank;
    int n = sscanf(line, "PEER rank=%" SCNu32 " " END_FORMAT, &rank, e->ip, e->ip + 1, e->ip + 2, e->ip + 3, e->mac, e->mac + 1,
                   e->mac + 2, e->mac + 3, e->mac + 4, e->mac + 5, &e->send_qpn, &e->receive_qpn, &e->psn, &e->mtu, &e->rkey, &e->address);
    if (n != end_fields + 1 || rank != i)
      return fail(w, "the coordinator sent %s instead of PEER rank=%u", line, i);
  }
  return check(w, tributary_roce_connect(w->roce, ends + (w->rank + w->ranks - 1) % w->ranks, ends + (w->rank + 1) % w->ranks));
}

/* ------------------------------------------------------------------------------------------ Arrays */

/* draw is splitmix64 of Steele, Lea and Flood (OOPSLA 2014). */
static uint64_t draw(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

static uint32_t element(const struct worker *w, uint32_t array, uint32_t rank, size_t i) {
  return (uint32_t)draw(draw(w->seed << 32 | array) + ((uint64_t)rank << 48) + i);
}

/* number is an element of fp32 whose sums are exact in any order: a multiple of 1/256 below 512. */
static float number(uint32_t element) { return (float)((int32_t)element >> 14) / 256; }

static void fill(struct worker *w, uint32_t array) {
  for (size_t i = 0; i < w->elements; i++) {
    uint32_t e = element(w, array, w->rank, i);
    if (w->fp32)
      ((float *)w->in)[i] = number(e);
    else
      ((uint32_t *)w->in)[i] = e;
  }
  memset(w->out, 0xaa, w->bytes);
}

/* expect returns the bits of a sum. */
static uint32_t expect(const struct worker *w, uint32_t array, size_t i) {
  uint32_t first = 0, count = w->ranks, sum = 0;
  float exact = 0;
  if (w->expected == expect_previous)
    first = (w->rank + w->ranks - 1) % w->ranks, count = 1;
  for (uint32_t rank = first; rank < first + count; rank++) {
    uint32_t e = element(w, array, rank, i);
    sum += e;
    exact += number(e);
  }
  if (w->fp32)
    memcpy(&sum, &exact, sizeof sum);
  return sum;
}

static void compare(struct worker *w, uint32_t array) {
  for (size_t i = 0; i < w->elements; i++) {
    uint32_t got, want = expect(w, array, i);
    memcpy(&got, (char *)w->out + i * element_bytes, sizeof got);
    if (got != want && w->wrong++ == 0)
      fail(w, "array %u, element %zu is %08x, not %08x", array, i, got, want);
  }
}

static void delay(double seconds) {
  struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * second)};
  nanosleep(&t, NULL);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / second;
}

static int reduce(struct worker *w) {
  for (uint32_t array = 0; array < w->arrays; array++) {
    fill(w, array);
    delay(w->late);
    double began = now();
    if (check(w, tributary_roce_reduce(w->roce, w->inputs, 0, w->sums, 0, w->bytes, (int64_t)(w->deadline * second))))
      return -1;
    w->seconds += now() - began;
    compare(w, array);
  }
  return 0;
}

/* ---------------------------------------------------------------------------------------- Programs */

static int work(struct worker *w) {
  if (open_device(w) == 0 && join(w) == 0 && meet_peers(w) == 0 && meet(w, "READY", w->deadline) == 0 && reduce(w) == 0)
    return meet(w, "DONE", w->deadline);
  /* Each side ends with one line, so that none is left on a device for the next worker. */
  char line[line_bytes];
  pthread_mutex_lock(&w->lock);
  int aborted = w->abort[0] != 0;
  pthread_mutex_unlock(&w->lock);
  if (aborted)
    snprintf(w->error, sizeof w->error, "%s", w->abort);
  if (say(w, "FAILED %s", w->error) == 0 && !aborted)
    await(w, line, w->deadline);
  return -1;
}

/* print_text prints a text as JSON. */
static void print_text(const char *text) {
  putchar('"');
  for (; *text; text++)
    if (*text == '"' || *text == '\\' || (unsigned char)*text < ' ')
      printf("\\u%04x", (unsigned char)*text);
    else
      putchar(*text);
  putchar('"');
}

static void print(const struct worker *w) {
  printf("{\"rank\": %u, \"ranks\": %u, \"elements\": %zu, \"arrays\": %u, \"wrong\": %" PRIu64 ", \"seconds\": %.6f, \"error\": ", w->rank, w->ranks,
         w->elements, w->arrays, w->wrong, w->seconds);
  print_text(w->error);
  printf("}\n");
}

/* whole reads a number without sign. */
static uint64_t whole(const char *flag, const char *text, uint64_t least, uint64_t most) {
  char *end;
  errno = 0;
  unsigned long long n = strtoull(text, &end, 0);
  if (errno || *end || end == text || *text == '-' || n < least || n > most) {
    fprintf(stderr, "-%s %s: not a whole number from %" PRIu64 " to %" PRIu64 "\n", flag, text, least, most);
    exit(2);
  }
  return n;
}

static double seconds(const char *flag, const char *text) {
  char *end;
  double s = strtod(text, &end);
  if (*end || end == text || !(s >= 0 && s <= 1e9)) {
    fprintf(stderr, "-%s %s: not a number of seconds\n", flag, text);
    exit(2);
  }
  return s;
}

/* choice returns the place of a text in a list that NULL ends. */
static int choice(const char *flag, const char *text, const char *const *list) {
  for (int i = 0; list[i]; i++)
    if (strcmp(text, list[i]) == 0)
      return i;
  fprintf(stderr, "-%s %s: not one of", flag, text);
  for (; *list; list++)
    fprintf(stderr, " %s", *list);
  fprintf(stderr, "\n");
  exit(2);
}

enum flag { f_rank = 1, f_ranks, f_channel, f_device, f_address, f_elements, f_format, f_arrays, f_seed, f_mtu, f_packets, f_window, f_write, f_retries,
            f_lateness, f_deadline, f_psn, f_late, f_expect, f_help };

static const struct option flags[] = {
    {"rank", 1, 0, f_rank},         {"ranks", 1, 0, f_ranks},       {"channel", 1, 0, f_channel},   {"device", 1, 0, f_device},
    {"address", 1, 0, f_address},   {"elements", 1, 0, f_elements}, {"format", 1, 0, f_format},     {"arrays", 1, 0, f_arrays},
    {"seed", 1, 0, f_seed},         {"mtu", 1, 0, f_mtu},           {"packets", 1, 0, f_packets},   {"window", 1, 0, f_window},
    {"write", 0, 0, f_write},       {"retries", 1, 0, f_retries},   {"lateness", 1, 0, f_lateness}, {"deadline", 1, 0, f_deadline},
    {"psn", 1, 0, f_psn},           {"late", 1, 0, f_late},         {"expect", 1, 0, f_expect},     {"help", 0, 0, f_help},
    {"h", 0, 0, f_help},            {0, 0, 0, 0},
};

static void parse(struct worker *w, int argc, char **argv) {
  static const char *const formats[] = {"int32", "fp32", NULL}, *const expectations[] = {"sum", "previous", NULL};
  int i = 0;
  w->rank = UINT32_MAX;
  for (int f; (f = getopt_long_only(argc, argv, "", flags, &i)) != -1;) {
    const char *name = f == '?' ? "" : flags[i].name;
    switch ((enum flag)f) {
    case f_rank: w->rank = (uint32_t)whole(name, optarg, 0, most_ranks - 1); break;
    case f_ranks: w->ranks = (uint32_t)whole(name, optarg, 2, most_ranks); break;
    case f_channel: w->channel_name = optarg; break;
    case f_device: w->options.device = optarg; break;
    case f_address: w->options.address = optarg; break;
    case f_elements: w->elements = (size_t)whole(name, optarg, 1, 1u << 30); break;
    case f_format: w->fp32 = choice(name, optarg, formats); break;
    case f_arrays: w->arrays = (uint32_t)whole(name, optarg, 1, UINT32_MAX); break;
    case f_seed: w->seed = whole(name, optarg, 0, UINT32_MAX); break;
    case f_mtu: w->options.mtu = (uint32_t)whole(name, optarg, 256, 4096); break;
    case f_packets: w->options.packets = (uint32_t)whole(name, optarg, 1, 1 << 16); break;
    case f_window: w->options.window = (uint32_t)whole(name, optarg, 1, 1 << 20); break;
    case f_write: w->options.write = 1; break;
    case f_retries: w->options.retries = (uint32_t)whole(name, optarg, 1, 6); break;
    case f_lateness: w->options.lateness_ns = (int64_t)(seconds(name, optarg) * second); break;
    case f_deadline: w->deadline = seconds(name, optarg); break;
    case f_psn: w->options.psn = (uint32_t)whole(name, optarg, 0, 0xffffff), w->options.fixed_psn = 1; break;
    case f_late: w->late = seconds(name, optarg); break;
    case f_expect: w->expected = (enum expected)choice(name, optarg, expectations); break;
    case f_help: fputs(usage, stdout); exit(0);
    default: exit(2); /* getopt has printed why */
    }
  }
  if (optind != argc || !w->channel_name || w->rank >= w->ranks) {
    fputs("-rank, -ranks and -channel are needed, and no other words; -h lists the flags\n", stderr);
    exit(2);
  }
}

int main(int argc, char **argv) {
  static struct worker w = {.ranks = 0, .elements = 1000, .arrays = 1, .seed = 1, .deadline = 60, .channel = -1,
                            .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};
  w.options.size = sizeof w.options;
  parse(&w, argc, argv);
  w.bytes = w.elements * element_bytes;
  if (!(w.roce = tributary_roce_new()))
    return 1;
  if (open_channel(&w)) {
    fprintf(stderr, "%s\n", w.error);
    return 2;
  }
  int failed = work(&w) || w.wrong;
  print(&w);
  /* The reader may still use the object; the end of the process removes the queue pairs. */
  return failed ? 1 : 0;
}
