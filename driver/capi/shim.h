/* What the C functions of shim.c and the Go functions behind them share. */
#ifndef SHIM_H
#define SHIM_H

#include "tributary.h"

/* A failure of a call, kept for its thread. */
struct failure {
  uint64_t ranks;
  char text[2048];
};

#endif
