/* What the test programs share: a failed check prints itself and ends the program. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tributary.h"

#define CHECK(condition)                                                               \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      fprintf(stderr, "%s:%d: %s\n  last error: %s\n", __FILE__, __LINE__, #condition, \
              tributary_error_text());                                                 \
      exit(1);                                                                         \
    }                                                                                  \
  } while (0)

/* Checks a result, and the error text that goes with it. */
#define EXPECT(kind, call)                                                                      \
  do {                                                                                          \
    tributary_error got = (call);                                                               \
    if (got != TRIBUTARY_##kind || (got == TRIBUTARY_OK) != (tributary_error_text()[0] == 0)) { \
      fprintf(stderr, "%s:%d: %s: %s, want " #kind ": %s\n", __FILE__, __LINE__, #call,         \
              tributary_error_name(got), tributary_error_text());                               \
      exit(1);                                                                                  \
    }                                                                                           \
  } while (0)

#define OK(call) EXPECT(OK, call)

/* Opens a card, and sets up a job for workers in this process. */
static inline void set_up(const char *name, int workers, tributary_card **card, tributary_job **job) {
  tributary_open_options open = {sizeof open, 0, workers, 0, 0};
  tributary_job_options options = {0};
  options.size = sizeof options;
  options.workers = workers;
  OK(tributary_open(name, &open, card));
  OK(tributary_configure(*card, &options, job));
}

#endif
