/* Tributary: sums arrays through a card. The C interface of the Go package tributary/driver.
 *
 *   tributary_card *card;
 *   tributary_job *job;
 *   tributary_job_options options = {sizeof options, .workers = 2};
 *   tributary_open("cpu:", NULL, &card);
 *   tributary_configure(card, &options, &job);
 *   tributary_reduce(job, sum, (const void *[]){a, b}, 2, elements, TRIBUTARY_SUM);
 *   tributary_job_close(job);
 *   tributary_card_close(card);
 *
 * RETURN VALUES. Every function that can fail returns a tributary_error; TRIBUTARY_OK is 0. After a
 * failure tributary_error_text and tributary_error_ranks describe it, in the thread of the call. A
 * failed function writes nothing through its result pointers.
 *
 * THREADS. Any thread may call any function at any time, except where a comment excludes that. A thread
 * needs no set-up. A call may block its thread; it blocks no other thread.
 *
 * HANDLES are pointers that the library alone dereferences. A handle is valid until its close function
 * returns. The library never reuses a handle: a closed one gives TRIBUTARY_ERROR_CLOSED.
 *
 * ARRAYS belong to the caller. They have the card's format, or its result format for sums, in the
 * processor's byte order (little-endian), without gaps. From the start of a reduction until
 * tributary_wait returns its outcome, the caller must not free or write its arrays, nor read its sums.
 * dst may be one of the inputs if the two formats have the same size. Otherwise dst must not overlap an
 * input.
 *
 * PROCESSES. The library works in the process that loaded it. In a child that was forked later, every
 * function returns TRIBUTARY_ERROR_FORKED at once. Load the library in the child, or start another program
 * (exec). On Linux the child keeps no connection to a daemon, and no socket of tributary_serve: it does not
 * hide the parent's death. It keeps other links of cards until it ends.
 *
 * SIGNALS. The library handles no signals of the program, such as SIGINT. The program's own handlers need
 * SA_ONSTACK if they are installed after the library was loaded. No call returns early because of a
 * signal; wait in steps (tributary_wait) to react.
 *
 * FLOATING POINT. The calling thread's rounding mode and flush-to-zero mode do not affect sums, and calls
 * do not change them.
 */
#ifndef TRIBUTARY_H
#define TRIBUTARY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TRIBUTARY_API __attribute__((visibility("default")))
#else
#define TRIBUTARY_API
#endif

/* The version of this interface. A library with the same number runs programs that were compiled with this
 * header, and with all earlier headers of that number. */
#define TRIBUTARY_ABI_VERSION 1

/* Returns the library's TRIBUTARY_ABI_VERSION. Works in a forked child. */
TRIBUTARY_API uint32_t tributary_abi_version(void);

/* Returns the library's version, as in "0.1.0". Works in a forked child. The text is never freed. */
TRIBUTARY_API const char *tributary_version(void);

/* ------------------------------------------------------------------------------------------ Errors */

typedef enum tributary_error {
  TRIBUTARY_OK = 0,
  TRIBUTARY_ERROR_OTHER = 1,         /* no other kind; the text has the cause */
  TRIBUTARY_ERROR_INPUT = 2,         /* an argument is wrong; the card has not been touched */
  TRIBUTARY_ERROR_FORKED = 3,        /* this process was forked after the library was loaded */
  TRIBUTARY_ERROR_CLOSED = 4,        /* the handle, or its card, is closed */
  TRIBUTARY_ERROR_NO_CARD = 5,       /* no card has this name, or no card replies there */
  TRIBUTARY_ERROR_BUSY = 6,          /* another host has the card */
  TRIBUTARY_ERROR_INCOMPATIBLE = 7,  /* the card has another protocol version, or another configuration */
  TRIBUTARY_ERROR_FULL = 8,          /* the card has no room for another job */
  TRIBUTARY_ERROR_REFUSED = 9,       /* the card, or its daemon, refused a request */
  TRIBUTARY_ERROR_TIMEOUT = 10,      /* no progress for the card's timeout */
  TRIBUTARY_ERROR_MISSING = 11,      /* a timeout: contributions of some ranks are missing (ranks) */
  TRIBUTARY_ERROR_NOT_STARTED = 12,  /* a timeout: members did not join the job (ranks) */
  TRIBUTARY_ERROR_RUNNING = 13,      /* the reduction goes on: the time of tributary_wait is over */
  TRIBUTARY_ERROR_CANCELED = 14,     /* tributary_cancel ended the reduction */
  TRIBUTARY_ERROR_ENDED = 15,        /* the job is over */
  TRIBUTARY_ERROR_MEMBER_LOST = 16,  /* the job is over: processes of members have gone (ranks) */
  TRIBUTARY_ERROR_CALLS_DIFFER = 17, /* the job is over: members called for different reductions (ranks) */
  TRIBUTARY_ERROR_RESULT_LOST = 18,  /* the job is over: nobody keeps a result that some members lack */
  TRIBUTARY_ERROR_EVICTED = 19,      /* the member has left a job that goes on without it (ranks) */
  TRIBUTARY_ERROR_DIED = 20,         /* the card is gone */
  TRIBUTARY_ERROR_LOST = 21          /* the card is gone, and did not return in time (carry_on_ns) */
} tributary_error;

/* Returns the text of the last failure in this thread: what failed, where, and the remedy, in UTF-8 without a
 * newline. Without a failure it is empty. The text is valid until this thread calls a function that
 * returns a tributary_error. */
TRIBUTARY_API const char *tributary_error_text(void);

/* Returns the ranks that the last failure in this thread names: bit r for rank r. 0: it names none. */
TRIBUTARY_API uint64_t tributary_error_ranks(void);

/* Returns the name of an error, as in "MEMBER_LOST", or "UNKNOWN". The text is never freed. */
TRIBUTARY_API const char *tributary_error_name(tributary_error error);

/* ------------------------------------------------------------------------------------------- Cards */

typedef struct tributary_card tributary_card;
typedef struct tributary_job tributary_job;
typedef struct tributary_member tributary_member;
typedef struct tributary_pending tributary_pending;
typedef struct tributary_server tributary_server;

/* The format of elements. */
typedef enum tributary_format {
  TRIBUTARY_ANY_FORMAT = 0,
  TRIBUTARY_FP32 = 1,
  TRIBUTARY_BF16 = 2,
  TRIBUTARY_FP16 = 3,
  TRIBUTARY_FP8E4M3 = 4, /* without infinities; all ones below the sign is the NaN */
  TRIBUTARY_FP8E5M2 = 5,
  TRIBUTARY_INT32 = 6
} tributary_format;

/* Structures begin with their size, so that later versions of the library can add fields. Set it to the
 * sizeof of the structure, and all unused fields to 0, which means their default. */

typedef struct tributary_open_options {
  size_t size;        /* sizeof(tributary_open_options) */
  int64_t timeout_ns; /* how long calls wait without progress; default: 10 s */
  int32_t workers;    /* members that the caller needs: cpu: and model: then have that many ports.
                       * tributary_join: members that the job must have; default: any number */
  int32_t format;     /* a tributary_format: that of cpu: and model:, unless their name has one; default: fp32.
                       * tributary_join: the format that the card must have; default: any */
  uint8_t fixed_window; /* 1: keep each job's whole window in flight, also in a congested network */
} tributary_open_options;

typedef struct tributary_info {
  size_t size;          /* sizeof(tributary_info), set by the caller */
  uint64_t config_hash; /* equal for cards of the same shape */
  int32_t lanes;        /* elements in a beat */
  int32_t ports;        /* most members of a job */
  int32_t format;       /* a tributary_format: of contributions */
  int32_t result;       /* a tributary_format: of sums */
  int32_t format_size;  /* bytes of an element of a contribution */
  int32_t result_size;  /* bytes of an element of a sum */
  int32_t chunk;        /* most elements in a chunk */
  int32_t window;       /* most chunks in flight */
  int32_t jobs;         /* most jobs at once */
  char sum[16];         /* its arithmetic: "tree", "fused", "exact", "max" */
} tributary_info;

/* Opens the card of a name: "cpu:", "model:lanes=4,workers=2", "serve:unix:/run/tributary.sock". options may
 * be NULL. tributary_card_close closes *card.
 * Errors: INPUT, NO_CARD, BUSY, INCOMPATIBLE. */
TRIBUTARY_API tributary_error tributary_open(const char *name, const tributary_open_options *options,
                                             tributary_card **card);

/* Describes the card in *info. The caller sets info->size.
 * Errors: INPUT, CLOSED. */
TRIBUTARY_API tributary_error tributary_card_info(tributary_card *card, tributary_info *info);

/* Ends the card's jobs and reductions, and releases the card and its handle. When it returns, the library
 * uses no array of these reductions any more. Handles of its jobs, members and reductions stay valid; close
 * them before or after.
 * Errors: CLOSED; OTHER if the link did not close well. The handle is closed in any case. */
TRIBUTARY_API tributary_error tributary_card_close(tributary_card *card);

/* ----------------------------------------------------------------------------------------- Servers */

/* Opens the card of a name, as tributary_open does, and shares it among processes until
 * tributary_server_close or tributary_server_abort closes *server. It is the daemon of `tributary serve -card
 * NAME -listen ADDRESS` in this process: other processes open the card under the name of
 * tributary_server_name, or join its jobs by their tickets. So may this process, also while it serves.
 * options may be NULL. A card that goes away is opened again when it is back. Cards that a daemon shares
 * already (serve:, roce:) are refused.
 *
 * address is unix:PATH, a Unix socket that this user alone may open, in a folder that exists. It replaces
 * the socket of a process that was killed. address may also be tcp:127.0.0.1:PORT, which all users of this
 * machine can open; port 0 takes a free one. Addresses that other machines can reach are refused.
 * Errors: INPUT, also if the process cannot listen at address; those of tributary_open. */
TRIBUTARY_API tributary_error tributary_serve(const char *name, const tributary_open_options *options,
                                              const char *address, tributary_server **server);

/* Writes the name under which processes of this machine open the card (tributary_open), as in
 * "serve:unix:/tmp/card", as tributary_job_ticket writes a ticket. 256 bytes are enough.
 * Errors: INPUT if capacity is too small; CLOSED. */
TRIBUTARY_API tributary_error tributary_server_name(tributary_server *server, char *buffer, size_t capacity,
                                                    size_t *length);

/* Ends the server in order, and closes its card and its handle. The server refuses new jobs, and ends those
 * that wait for members. Running jobs may finish, and clients close their cards and members, for at most
 * grace_ns, 0 or more. Jobs that are left end: their reductions return ENDED or DIED. The function does not
 * wait if no client is there, so close the cards, jobs and members of this process before. It returns within
 * grace_ns and a few seconds for a card, or clients, that do not reply. tributary_server_abort from another
 * thread ends a wait.
 * Errors: INPUT if grace_ns is negative, and the server goes on; CLOSED; OTHER if the card's link did not close
 * well. The handle is closed in the last two cases. */
TRIBUTARY_API tributary_error tributary_server_close(tributary_server *server, int64_t grace_ns);

/* Ends the server at once: tributary_server_close without a grace. */
TRIBUTARY_API tributary_error tributary_server_abort(tributary_server *server);

/* -------------------------------------------------------------------------------------------- Jobs */

typedef struct tributary_job_options {
  size_t size;              /* sizeof(tributary_job_options) */
  int32_t workers;          /* members; default: all ports of the card */
  int32_t chunk;            /* elements in a chunk, a multiple of the lanes; default: the card's */
  int32_t window;           /* chunks in flight, a power of two; default: an equal share for each job */
  int32_t here_count;       /* length of here; default: all members are in this process */
  const int32_t *here;      /* ranks of the members in this process, on a card that a daemon shares */
  int64_t wait_ns;          /* how long members elsewhere may take to join; default: the daemon's, which limits it */
  int64_t carry_on_ns;      /* how long the job waits for a card that is gone; default: it fails at once */
  int64_t deadline_ns;      /* from the first to the last contribution to a chunk; default: none */
  uint32_t deadline_cycles; /* the same in cycles of the card; give one of the two */
  uint8_t partial;          /* 1: sum an overdue chunk without the late members; needs a deadline */
  uint8_t queue;            /* 1: wait until a shared card has room, instead of FULL */
} tributary_job_options;

/* Sets up a job on the card. options may be NULL. The library copies here. tributary_job_close or
 * tributary_job_abort closes *job. If all members are in this process, the function returns when the job has
 * started.
 * Errors: INPUT, CLOSED, FULL, REFUSED, TIMEOUT, NOT_STARTED, DIED. */
TRIBUTARY_API tributary_error tributary_configure(tributary_card *card, const tributary_job_options *options,
                                                  tributary_job **job);

/* Writes the job's ticket, a text with a final 0, into buffer of capacity bytes, and its length with the
 * final 0 into *length, which may be NULL. The ticket is empty if the card is not shared by a daemon. 256
 * bytes are enough for most tickets. If capacity is too small, *length is still written.
 * Errors: INPUT if capacity is too small; CLOSED. */
TRIBUTARY_API tributary_error tributary_job_ticket(tributary_job *job, char *buffer, size_t capacity,
                                                   size_t *length);

/* Returns the job's member of a rank in *member. The member is in this process. tributary_member_close closes
 * *member.
 * Errors: INPUT, CLOSED. */
TRIBUTARY_API tributary_error tributary_job_member(tributary_job *job, int32_t rank,
                                                   tributary_member **member);

/* Finishes the job: the card learns that all members here have their sums. Closes the handle, unless a
 * reduction is running.
 * Errors: INPUT if a reduction is running, and the job goes on; CLOSED; ENDED or another kind if the
 * job has ended without a finish; TIMEOUT. */
TRIBUTARY_API tributary_error tributary_job_close(tributary_job *job);

/* Ends the job at once, for all its members, and closes the handle. Its reductions return ENDED. When the
 * function returns, the library uses no array of them any more.
 * Errors: CLOSED; TIMEOUT if the card did not confirm the end. The handle is closed in any case. */
TRIBUTARY_API tributary_error tributary_job_abort(tributary_job *job);

/* ----------------------------------------------------------------------------------------- Members */

/* The rank that takes any free one. */
#define TRIBUTARY_ANY_RANK (-1)

/* Joins the job of a ticket, from this process or another one. rank is a rank or TRIBUTARY_ANY_RANK. options
 * may be NULL. tributary_member_close or tributary_member_abort closes *member. The function returns when the
 * rank is taken. The member's reductions wait until all members are there.
 * Errors: INPUT for a ticket that is none, or if workers or format differ; NO_CARD; REFUSED if the job is over,
 * or the rank taken; TIMEOUT. */
TRIBUTARY_API tributary_error tributary_join(const char *ticket, int32_t rank,
                                             const tributary_open_options *options,
                                             tributary_member **member);

/* Returns the member's rank, and the number of members of its job. Either pointer may be NULL.
 * Errors: CLOSED. */
TRIBUTARY_API tributary_error tributary_member_rank(tributary_member *member, int32_t *rank,
                                                    int32_t *workers);

/* Describes the card of the member, as tributary_card_info does.
 * Errors: INPUT, CLOSED. */
TRIBUTARY_API tributary_error tributary_member_info(tributary_member *member, tributary_info *info);

/* Finishes the part of a member of tributary_join, and ends its connection. For a member of
 * tributary_job_member it closes the handle alone. Closes the handle, unless a reduction is running.
 * Errors: INPUT if a reduction is running; CLOSED; ENDED or another kind if the job has ended without a
 * finish; TIMEOUT. */
TRIBUTARY_API tributary_error tributary_member_close(tributary_member *member);

/* Ends the connection of a member of tributary_join without a finish: the other members get MEMBER_LOST, or
 * go on with partial sums. When it returns, the library uses no array of the member's reductions any more.
 * For a member of tributary_job_member it is tributary_member_close.
 * Errors: CLOSED. The handle is closed in any case. */
TRIBUTARY_API tributary_error tributary_member_abort(tributary_member *member);

/* -------------------------------------------------------------------------------------- Reductions */

/* What a reduction computes, element by element. A daemon compares the members' operations: where they differ,
 * all members get CALLS_DIFFER. Without a daemon, each member gets its own. */
typedef enum tributary_op {
  TRIBUTARY_SUM = 0, /* the card's result: a sum, or the largest element on a card with sum "max" */
  TRIBUTARY_MEAN = 1 /* the sum divided by the number of its contributors, rounded once more */
} tributary_op;

/* Flags of tributary_start and tributary_start_reduce. */
enum {
  /* tributary_cancel lets the member leave the reduction, and the job goes on: the library copies the inputs
   * that the card still needs, and the other members get their sums. Without this flag, tributary_cancel ends
   * the job, or leaves it (partial). */
  TRIBUTARY_DETACH = 1
};

/* Replaces the elements at dst by the sum of the members' elements at src. src may be dst. All members call
 * it with the same number of elements, in the same order. Blocks until the sums are there, or the reduction
 * has failed. After a failure only some elements of dst are sums.
 * Errors: INPUT, CLOSED, TIMEOUT, MISSING, NOT_STARTED, ENDED, MEMBER_LOST, CALLS_DIFFER, RESULT_LOST,
 * EVICTED, REFUSED, DIED, LOST. */
TRIBUTARY_API tributary_error tributary_all_reduce(tributary_member *member, void *dst, const void *src,
                                                   size_t elements, tributary_op op);

/* Starts tributary_all_reduce and returns at once. The member's reductions queue in the order of their
 * starts. flags is 0 or TRIBUTARY_DETACH. tributary_pending_close closes *pending.
 * Errors: INPUT, CLOSED, ENDED and its kinds, EVICTED. Others come from tributary_wait. */
TRIBUTARY_API tributary_error tributary_start(tributary_member *member, void *dst, const void *src,
                                              size_t elements, tributary_op op, uint32_t flags,
                                              tributary_pending **pending);

/* Adds up inputs[0] to inputs[count-1], one array of each member, all in this process, into dst. Each array
 * has elements elements. The library copies the list inputs itself. Blocks like tributary_all_reduce, with
 * its errors. */
TRIBUTARY_API tributary_error tributary_reduce(tributary_job *job, void *dst, const void *const *inputs,
                                               size_t count, size_t elements, tributary_op op);

/* Starts tributary_reduce and returns at once, like tributary_start. */
TRIBUTARY_API tributary_error tributary_start_reduce(tributary_job *job, void *dst, const void *const *inputs,
                                                     size_t count, size_t elements, tributary_op op,
                                                     uint32_t flags, tributary_pending **pending);

/* Waits until the reduction is over, and returns its outcome, also when called again. timeout_ns limits the
 * wait: 0 tests, and a negative number sets no limit. RUNNING means that the limit is over; the reduction
 * goes on, and its arrays stay in use. Several threads may wait.
 * Errors: those of tributary_all_reduce, RUNNING, CANCELED. */
TRIBUTARY_API tributary_error tributary_wait(tributary_pending *pending, int64_t timeout_ns);

/* Ends a running reduction, as its flags chose, and waits until the library uses its arrays no more. Returns
 * the outcome as tributary_wait does: CANCELED, or another one that came first.
 * Errors: those of tributary_wait, except RUNNING. */
TRIBUTARY_API tributary_error tributary_cancel(tributary_pending *pending);

/* Elements from from to to-1 whose sums lack members (partial). ranks has bit r for each contributing rank r.
 */
typedef struct tributary_partial {
  uint64_t from, to;
  uint64_t ranks;
} tributary_partial;

/* Writes which sums of a finished reduction lack members, in the order of the elements: the first capacity
 * entries into list, and the number of all entries into *count. *count is 0 if all sums are complete, and
 * before the reduction is over. list may be NULL if capacity is 0.
 * Errors: CLOSED. */
TRIBUTARY_API tributary_error tributary_partials(tributary_pending *pending, tributary_partial *list,
                                                 size_t capacity, size_t *count);

/* Closes the handle. It cancels a running reduction first, as tributary_cancel does, and drops its outcome.
 * Errors: CLOSED. */
TRIBUTARY_API tributary_error tributary_pending_close(tributary_pending *pending);

#ifdef __cplusplus
}
#endif

#endif
