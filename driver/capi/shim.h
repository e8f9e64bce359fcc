/* What the C functions of shim.c and the Go functions behind them share. */
#ifndef SHIM_H
#define SHIM_H

#include <stdbool.h>

#include "tributary.h"

/* A failure of a call, kept for its thread. */
struct failure {
  uint64_t ranks;
  char text[2048];
};

/* Closes, in each child that is forked from now on, the sockets with an end at the address of a socket: at
 * that of its peer, or at its own. */
void close_in_children(int fd, bool peer);

#endif
