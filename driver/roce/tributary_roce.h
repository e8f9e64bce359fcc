/* Tributary under RoCEv2: sums an array of each rank through a card with shell roce, by the RDMA stack of the
 * machine (libibverbs). driver/wire/ROCE.md specifies what happens on the wire.
 *
 *   tributary_roce_options options = {sizeof options, .packets = 16, .window = 64};
 *   tributary_roce *r = tributary_roce_new();
 *   tributary_roce_open(r, &options, ranks);
 *   tributary_roce_register(r, in, bytes, &inputs);
 *   tributary_roce_register(r, out, bytes, &sums);
 *   tributary_roce_local(r, sums, &own);
 *       ... exchange the ends; the owner registers all connections with the card ...
 *   tributary_roce_connect(r, &previous, &next);
 *       ... wait until all ranks are here ...
 *   tributary_roce_reduce(r, inputs, 0, sums, 0, bytes, deadline_ns);
 *       ... wait until all ranks are here ...
 *   tributary_roce_close(r);
 *
 * RANKS form a ring: each sends to the next one and receives from the previous one, over a connection of its
 * own. Two ranks share one connection. The ends travel over any channel. Nothing here talks to the card.
 *
 * RETURN VALUES. Every function that can fail returns a tributary_roce_error; TRIBUTARY_ROCE_OK is 0.
 * tributary_roce_error_text describes the failure. After a failure of tributary_roce_open,
 * tributary_roce_connect or tributary_roce_reduce, only tributary_roce_close is of use.
 *
 * THREADS. One thread at a time uses a tributary_roce; any thread may call tributary_roce_cancel.
 *
 * THE END. A queue pair must live until all ranks have everything: a rank whose queue pair is gone cannot
 * acknowledge, and cannot repeat what another rank's sum needs. Wait for all ranks, with a deadline, before
 * tributary_roce_close.
 */
#ifndef TRIBUTARY_ROCE_H
#define TRIBUTARY_ROCE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tributary_roce_error {
  TRIBUTARY_ROCE_OK = 0,
  TRIBUTARY_ROCE_ERROR_INPUT = 1,      /* an argument is wrong */
  TRIBUTARY_ROCE_ERROR_DEVICE = 2,     /* no such RDMA device, or it refused a request */
  TRIBUTARY_ROCE_ERROR_CONNECTION = 3, /* a queue pair failed: its retries ended, or its peer is gone */
  TRIBUTARY_ROCE_ERROR_TIMEOUT = 4,    /* the deadline is over */
  TRIBUTARY_ROCE_ERROR_CANCELED = 5,   /* tributary_roce_cancel */
  TRIBUTARY_ROCE_ERROR_LENGTH = 6      /* a message has another length than those of this rank: calls differ */
} tributary_roce_error;

typedef struct tributary_roce tributary_roce;
typedef struct tributary_roce_region tributary_roce_region;

/* Set size to the sizeof of the structure, and all unused fields to 0, which means their default. */
typedef struct tributary_roce_options {
  size_t size;
  const char *device;    /* as in "rxe0"; default: the first that has such an address */
  const char *address;   /* its IPv4 address, as in "192.168.84.1"; default: the first of RoCEv2 */
  uint32_t mtu;          /* bytes of payload of a packet: 1024, 2048, 4096; default: the port's, at most 4096 */
  uint32_t packets;      /* packets of a message; default: 1 */
  uint32_t window;       /* packets in flight: the window of the job on the card; default: packets */
  uint32_t retries;      /* of a packet, 1 to 6; default: 6 */
  int64_t lateness_ns;   /* the longest time that another rank may come late; default: 1 s */
  uint8_t write;         /* 1: RDMA WRITE with immediate, instead of SEND */
  uint8_t traffic_class; /* TOS of IP: DSCP in bits 7:2, ECN in bits 1:0 */
  uint8_t fixed_psn;     /* 1: begin with psn, for tests; default: a random PSN */
  uint32_t psn;          /* 24 bits */
} tributary_roce_options;

/* What other ranks and the owner of the card need to know of a rank. */
typedef struct tributary_roce_end {
  uint8_t ip[4];        /* the first byte highest */
  uint8_t mac[6];       /* of the network interface */
  uint32_t send_qpn;    /* of the queue pair to the next rank */
  uint32_t receive_qpn; /* of the one from the previous rank; with two ranks the same one */
  uint32_t psn;         /* of the first packet to the next rank */
  uint32_t mtu;
  uint32_t rkey;        /* of the sums, for RDMA WRITE */
  uint64_t address;     /* of the sums, for RDMA WRITE */
} tributary_roce_end;

/* Returns a new object without a device, or NULL if memory is short. */
tributary_roce *tributary_roce_new(void);

/* Opens the device and makes queue pairs for a number of ranks.
 * Errors: INPUT, DEVICE. */
tributary_roce_error tributary_roce_open(tributary_roce *r, const tributary_roce_options *options, uint32_t ranks);

/* Registers memory of bytes bytes with the device. *region is valid until tributary_roce_close. RDMA reads and
 * writes the memory directly: it must stay where it is.
 * Errors: INPUT, DEVICE. */
tributary_roce_error tributary_roce_register(tributary_roce *r, void *memory, size_t bytes,
                                             tributary_roce_region **region);

/* Describes this rank. sums is the region of the sums; it may be NULL without RDMA WRITE.
 * Errors: INPUT. */
tributary_roce_error tributary_roce_local(tributary_roce *r, const tributary_roce_region *sums,
                                          tributary_roce_end *own);

/* Connects with the previous rank and the next one; with two ranks they are the same one.
 * Errors: INPUT if the ends do not fit together; DEVICE. */
tributary_roce_error tributary_roce_connect(tributary_roce *r, const tributary_roce_end *previous,
                                            const tributary_roce_end *next);

/* Sends bytes bytes of inputs, from the offset in_at on, and receives as many into sums, from out_at on: with
 * registered connections, the sums of all ranks. All ranks call it with the same bytes, and with RDMA WRITE
 * with the same out_at. inputs and sums must not overlap. Blocks until all sums are here and the next rank has
 * all of its own, which takes at most deadline_ns if that is not 0.
 *
 * The last packet is padded with zeros. RDMA WRITE writes the padding's sum behind the sums, so their region
 * must have room up to a multiple of the MTU.
 *
 * Errors: INPUT, CONNECTION, TIMEOUT, CANCELED, LENGTH, DEVICE. */
tributary_roce_error tributary_roce_reduce(tributary_roce *r, const tributary_roce_region *inputs, size_t in_at,
                                           const tributary_roce_region *sums, size_t out_at, size_t bytes,
                                           int64_t deadline_ns);

/* Returns how long tributary_roce_reduce may take to notice that a peer is gone, in ns, without a
 * deadline: all retries, each with the longest time that a device may take for its timer. */
int64_t tributary_roce_patience(const tributary_roce *r);

/* Ends a tributary_roce_reduce that runs in another thread, and all later ones. */
void tributary_roce_cancel(tributary_roce *r);

/* Returns the text of the last failure: what failed, and the remedy. Without a failure it is empty. */
const char *tributary_roce_error_text(const tributary_roce *r);

/* Returns the name of an error, as in "TIMEOUT". The text is never freed. */
const char *tributary_roce_error_name(tributary_roce_error error);

/* Removes the queue pairs, the regions and the object. r may be NULL. */
void tributary_roce_close(tributary_roce *r);

#ifdef __cplusplus
}
#endif

#endif
