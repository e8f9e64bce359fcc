//go:build roce

#define _DEFAULT_SOURCE /* getrandom, clock_gettime */

#include "tributary_roce.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "flow.h"

enum {
  port = 1,              /* of the RDMA device */
  largest_mtu = 4096,    /* bytes */
  psn_mask = 0xffffff,   /* 24 bits */
  hop_limit = 64,        /* TTL of IP */
  not_ready_timer = 12,  /* 0.64 ms; a receiver is ready whenever a sum comes */
  batch = 16,            /* completions that are polled at once */
  text_bytes = 256,
};

static const int64_t default_lateness = 1000000000;

/* Work requests carry what they are. */
enum work { work_send = 1, work_receive = 2 };

struct tributary_roce_region {
  struct ibv_mr *memory;
  struct tributary_roce_region *next;
};

struct tributary_roce {
  struct ibv_context *context;
  struct ibv_pd *domain;
  struct ibv_comp_channel *channel;
  struct ibv_cq *completions;
  struct ibv_qp *send, *receive; /* to the next rank, from the previous one; with two ranks the same */
  tributary_roce_region *regions;
  tributary_roce_region *spare; /* 2 MTUs: zeros to send, and room for padding that comes */

  int gid_index;
  union ibv_gid gid;
  uint8_t mac[6];
  uint32_t mtu, packets, credits, retries, ranks, psn;
  int timeout; /* the verbs' exponent */
  uint8_t traffic_class;
  int write;
  uint32_t target_key; /* the next rank's sums */
  uint64_t target;
  int cancel; /* an eventfd */
  int failed;
  char text[text_bytes];
};

/* ------------------------------------------------------------------------------------------ Errors */

__attribute__((format(printf, 3, 4))) static tributary_roce_error fail(tributary_roce *r, tributary_roce_error e,
                                                                       const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(r->text, sizeof r->text, format, arguments);
  va_end(arguments);
  return e;
}

/* refused is a failure of the device, with the cause in errno. */
static tributary_roce_error refused(tributary_roce *r, const char *what) {
  return fail(r, TRIBUTARY_ROCE_ERROR_DEVICE, "%s: %s", what, strerror(errno));
}

const char *tributary_roce_error_text(const tributary_roce *r) { return r->text; }

const char *tributary_roce_error_name(tributary_roce_error e) {
  static const char *const names[] = {"OK", "INPUT", "DEVICE", "CONNECTION", "TIMEOUT", "CANCELED", "LENGTH"};
  return (size_t)e < sizeof names / sizeof *names ? names[e] : "UNKNOWN";
}

/* ------------------------------------------------------------------------------------------ Device */

tributary_roce *tributary_roce_new(void) {
  tributary_roce *r = calloc(1, sizeof *r);
  if (r)
    r->cancel = -1;
  return r;
}

/* in_ipv4 reports whether a GID is an IPv4 address, as IPv6 maps it, and returns that address. */
static int in_ipv4(const union ibv_gid *gid, struct in_addr *address) {
  static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
  memcpy(address, gid->raw + sizeof mapped, sizeof *address);
  return memcmp(gid->raw, mapped, sizeof mapped) == 0;
}

/* find_mac reads the MAC address of a network interface. */
static int find_mac(uint32_t interface, uint8_t mac[6]) {
  char name[IF_NAMESIZE], path[sizeof name + 32];
  if (!if_indextoname(interface, name))
    return 0;
  snprintf(path, sizeof path, "/sys/class/net/%s/address", name);
  FILE *file = fopen(path, "r");
  if (!file)
    return 0;
  int read = fscanf(file, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx", mac, mac + 1, mac + 2, mac + 3, mac + 4, mac + 5);
  fclose(file);
  return read == 6;
}

/* find_address looks for an IPv4 address of RoCEv2 in the device's table; address 0 is any. */
static int find_address(tributary_roce *r, struct ibv_context *device, struct in_addr address) {
  struct ibv_port_attr attributes;
  if (ibv_query_port(device, port, &attributes))
    return 0;
  for (int i = 0; i < attributes.gid_tbl_len; i++) {
    struct ibv_gid_entry entry;
    struct in_addr own;
    if (ibv_query_gid_ex(device, port, (uint32_t)i, &entry, 0) || entry.gid_type != IBV_GID_TYPE_ROCE_V2 ||
        !in_ipv4(&entry.gid, &own) || (address.s_addr && address.s_addr != own.s_addr) ||
        !find_mac(entry.ndev_ifindex, r->mac))
      continue;
    r->gid = entry.gid;
    r->gid_index = i;
    return 1;
  }
  return 0;
}

/* open_device opens the device that has the name and the address. */
static tributary_roce_error open_device(tributary_roce *r, const tributary_roce_options *o) {
  struct in_addr address = {0};
  if (o->address && inet_pton(AF_INET, o->address, &address) != 1)
    return fail(r, TRIBUTARY_ROCE_ERROR_INPUT, "%s is no IPv4 address", o->address);
  struct ibv_device **devices = ibv_get_device_list(NULL);
  if (!devices)
    return errno == ENOSYS ? fail(r, TRIBUTARY_ROCE_ERROR_DEVICE, "the kernel has no RDMA: load the driver of the device; Linux's Soft-RoCE is `modprobe rdma_rxe`")
                           : refused(r, "no list of RDMA devices");
  for (struct ibv_device **d = devices; *d && !r->context; d++) {
    if (o->device && strcmp(o->device, ibv_get_device_name(*d)) != 0)
      continue;
    struct ibv_context *context = ibv_open_device(*d);
    if (context && find_address(r, context, address))
      r->context = context;
    else if (context)
      ibv_close_device(context);
  }
  ibv_free_device_list(devices);
  if (!r->context)
    return fail(r, TRIBUTARY_ROCE_ERROR_DEVICE, "no RDMA device %s%swith %s%s for RoCEv2; `ibv_devices` and `rdma link` list devices",
                o->device ? o->device : "", o->device ? " " : "",
                o->address ? "the IPv4 address " : "an IPv4 address", o->address ? o->address : "");
  return TRIBUTARY_ROCE_OK;
}

/* ------------------------------------------------------------------------------------- Queue pairs */

static enum ibv_mtu verbs_mtu(uint32_t bytes) {
  switch (bytes) {
  case 256:
    return IBV_MTU_256;
  case 512:
    return IBV_MTU_512;
  case 1024:
    return IBV_MTU_1024;
  case 2048:
    return IBV_MTU_2048;
  default:
    return IBV_MTU_4096;
  }
}

/* take checks the options that need no device. */
static tributary_roce_error take(tributary_roce *r, const tributary_roce_options *o, uint32_t ranks) {
  if (o->size != sizeof *o)
    return fail(r, TRIBUTARY_ROCE_ERROR_INPUT, "options.size is %zu, not %zu", o->size, sizeof *o);
  if (ranks < 2)
    return fail(r, TRIBUTARY_ROCE_ERROR_INPUT, "%u ranks cannot form a ring; at least 2 can", ranks);
  r->ranks = ranks;
  r->mtu = o->mtu;
  r->packets = o->packets ? o->packets : 1;
  uint32_t window = o->window ? o->window : r->packets;
  r->credits = tributary_flow_credits(window, r->packets);
  if (r->credits == 0)
    return fail(r, TRIBUTARY_ROCE_ERROR_INPUT, "a message of %u packets does not fit into the window of %u", r->packets, window);
  r->retries = o->retries ? o->retries : 6;
  if (r->retries > 6)
    return fail(r, TRIBUTARY_ROCE_ERROR_INPUT, "%u retries: more than 6 never end in some stacks", r->retries);
  int64_t lateness = o->lateness_ns ? o->lateness_ns : default_lateness;
  r->timeout = lateness < 0 ? -1 : tributary_flow_timeout(r->retries, lateness);
  if (r->timeout < 0)
    return fail(r, TRIBUTARY_ROCE_ERROR_INPUT, "no timer of RDMA is long enough for ranks that are %.0f s late", lateness / 1e9);
  if (o->fixed_psn && o->psn > psn_mask)
    return fail(r, TRIBUTARY_ROCE_ERROR_INPUT, "the PSN %#x has more than 24 bits", o->psn);
  r->write = o->write != 0;
  r->traffic_class = o->traffic_class;
  r->psn = o->psn;
  if (!o->fixed_psn && getrandom(&r->psn, sizeof r->psn, 0) != sizeof r->psn)
    return refused(r, "no random PSN");
  r->psn &= psn_mask;
  return TRIBUTARY_ROCE_OK;
}

/* fit_mtu checks the MTU, or takes the port's. */
static tributary_roce_error fit_mtu(tributary_roce *r) {
  struct ibv_port_attr attributes;
  if (ibv_query_port(r->context, port, &attributes))
    return refused(r, "the port of the RDMA device");
  if (attributes.state != IBV_PORT_ACTIVE)
    return fail(r, TRIBUTARY_ROCE_ERROR_DEVICE, "the port of %s is down: `rdma link` shows it", ibv_get_device_name(r->context->device));
  uint32_t active = 128u << attributes.active_mtu;
  if (r->mtu == 0)
    r->mtu = active < largest_mtu ? active : largest_mtu;
  if (r->mtu < 256 || r->mtu > largest_mtu || (r->mtu & (r->mtu - 1)))
    return fail(r, TRIBUTARY_ROCE_ERROR_INPUT, "an MTU of %u bytes; use 1024, 2048 or 4096", r->mtu);
  if (r->mtu > active)
    return fail(r, TRIBUTARY_ROCE_ERROR_DEVICE, "an MTU of %u bytes does not fit into the network's frames, which hold %u: set the MTU of the interface", r->mtu, active);
  return TRIBUTARY_ROCE_OK;
}

/* make_pair makes a queue pair in state INIT. */
static struct ibv_qp *make_pair(tributary_roce *r) {
  struct ibv_qp_init_attr init = {
      .send_cq = r->completions,
      .recv_cq = r->completions,
      .cap = {.max_send_wr = r->credits, .max_recv_wr = r->credits, .max_send_sge = 2, .max_recv_sge = 2},
      .qp_type = IBV_QPT_RC,
      .sq_sig_all = 1,
  };
  struct ibv_qp *pair = ibv_create_qp(r->domain, &init);
  if (!pair)
    return NULL;
  struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_INIT, .port_num = port, .qp_access_flags = r->write ? IBV_ACCESS_REMOTE_WRITE : 0};
  int error = ibv_modify_qp(pair, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error) {
    ibv_destroy_qp(pair);
    errno = error;
    return NULL;
  }
  return pair;
}

tributary_roce_error tributary_roce_open(tributary_roce *r, const tributary_roce_options *options, uint32_t ranks) {
  if (r->context)
    return fail(r, TRIBUTARY_ROCE_ERROR_INPUT, "opened twice");
  tributary_roce_error e = take(r, options, ranks);
  if (!e)
    e = open_device(r, options);
  if (!e)
    e = fit_mtu(r);
  if (e)
    return e;
  if ((r->cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
    return refused(r, "an eventfd");
  if (!(r->domain = ibv_alloc_pd(r->context)))
    return refused(r, "a protection domain");
  if (!(r->channel = ibv_create_comp_channel(r->context)))
    return refused(r, "a completion channel");
  if (!(r->completions = ibv_create_cq(r->context, (int)(4 * r->credits), NULL, r->channel, 0)))
    return refused(r, "a completion queue");
  if (!(r->send = make_pair(r)))
    return refused(r, "a queue pair");
  if (!(r->receive = ranks == 2 ? r->send : make_pair(r)))
    return refused(r, "a second queue pair");
  void *memory = calloc(2, r->mtu);
  if (!memory)
    return refused(r, "memory for padding");
  if ((e = tributary_roce_register(r, memory, 2 * r->mtu, &r->spare)))
    free(memory);
  return e;
}

tributary_roce_error tributary_roce_register(tributary_roce *r, void *memory, size_t bytes, tributary_roce_region **region) {
  if (!r->domain || !memory || !bytes)
    return fail(r, TRIBUTARY_ROCE_ERROR_INPUT, "nothing to register, or no device");
  tributary_roce_region *one = calloc(1, sizeof *one);
  if (!one)
    return refused(r, "a region");
  int access = IBV_ACCESS_LOCAL_WRITE | (r->write ? IBV_ACCESS_REMOTE_WRITE : 0);
  if (!(one->memory = ibv_reg_mr(r->domain, memory, bytes, access))) {
    free(one);
    if (errno == ENOMEM)
      return fail(r, TRIBUTARY_ROCE_ERROR_DEVICE, "%zu bytes cannot be locked in memory: raise `ulimit -l`", bytes);
    return refused(r, "memory for RDMA");
  }
  one->next = r->regions;
  *region = r->regions = one;
  return TRIBUTARY_ROCE_OK;
}

tributary_roce_error tributary_roce_local(tributary_roce *r, const tributary_roce_region *sums, tributary_roce_end *own) {
  if (!r->spare)
    return fail(r, TRIBUTARY_ROCE_ERROR_INPUT, "no device is open");
  if (r->write && !sums)
    return fail(r, TRIBUTARY_ROCE_ERROR_INPUT, "RDMA WRITE needs the region of the sums");
  struct in_addr address;
  in_ipv4(&r->gid, &address);
  *own = (tributary_roce_end){.send_qpn = r->send->qp_num, .receive_qpn = r->receive->qp_num, .psn = r->psn, .mtu = r->mtu};
  memcpy(own->ip, &address, sizeof own->ip);
  memcpy(own->mac, r->mac, sizeof own->mac);
  if (r->write) {
    own->rkey = sums->memory->rkey;
    own->address = (uint64_t)(uintptr_t)sums->memory->addr;
  }
  return TRIBUTARY_ROCE_OK;
}

/* join connects a queue pair with that of a peer. from is the PSN of the peer's first packet. */
static int join(tributary_roce *r, struct ibv_qp *pair, const tributary_roce_end *peer, uint32_t qpn, uint32_t from) {
  struct ibv_qp_attr ready = {
      .qp_state = IBV_QPS_RTR,
      .path_mtu = verbs_mtu(r->mtu),
      .dest_qp_num = qpn,
      .rq_psn = from,
      .max_dest_rd_atomic = 1,
      .min_rnr_timer = not_ready_timer,
      .ah_attr = {.is_global = 1,
                  .port_num = port,
                  .grh = {.sgid_index = (uint8_t)r->gid_index, .hop_limit = hop_limit, .traffic_class = r->traffic_class}},
  };
  ready.ah_attr.grh.dgid.raw[10] = ready.ah_attr.grh.dgid.raw[11] = 0xff;
  memcpy(ready.ah_attr.grh.dgid.raw + 12, peer->ip, sizeof peer->ip);
  int error = ibv_modify_qp(pair, &ready, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error)
    return error;
  struct ibv_qp_attr send = {
      .qp_state = IBV_QPS_RTS,
      .timeout = (uint8_t)r->timeout,
      .retry_cnt = (uint8_t)r->retries,
      .rnr_retry = (uint8_t)r->retries,
      .sq_psn = r->psn,
      .max_rd_atomic = 1,
  };
  return ibv_modify_qp(pair, &send, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                        IBV_QP_MAX_QP_RD_ATOMIC);
}

tributary_roce_error tributary_roce_connect(tributary_roce *r, const tributary_roce_end *previous, const tributary_roce_end *next) {
  if (!r->spare)
    return fail(r, TRIBUTARY_ROCE_ERROR_INPUT, "no device is open");
  if (previous->mtu != r->mtu || next->mtu != r->mtu)
    return fail(r, TRIBUTARY_ROCE_ERROR_INPUT, "this rank has an MTU of %u bytes, its neighbours have %u and %u", r->mtu, previous->mtu, next->mtu);
  r->target = next->address;
  r->target_key = next->rkey;
  /* The next rank sends nothing but acknowledgements on the connection to it, unless it is the previous one too. */
  int error = join(r, r->send, next, next->receive_qpn, next->psn);
  if (!error && r->receive != r->send)
    error = join(r, r->receive, previous, previous->send_qpn, previous->psn);
  errno = error;
  return error ? refused(r, "the peers' queue pairs") : TRIBUTARY_ROCE_OK;
}

/* --------------------------------------------------------------------------------------- Reduction */

/* reduction is one call of tributary_roce_reduce. */
struct reduction {
  tributary_roce *r;
  const tributary_roce_region *inputs, *sums;
  size_t in_at, out_at;
  struct tributary_flow flow;
};

/* list makes the scatter-gather list of a message: its bytes in the array, and its padding. */
static int list(struct ibv_sge sge[2], const struct tributary_message *m, const tributary_roce_region *array, size_t at,
                const tributary_roce_region *spare, size_t spare_at) {
  sge[0] = (struct ibv_sge){(uintptr_t)array->memory->addr + at + m->at, m->bytes, array->memory->lkey};
  sge[1] = (struct ibv_sge){(uintptr_t)spare->memory->addr + spare_at, m->padding, spare->memory->lkey};
  return m->padding ? 2 : 1;
}

static tributary_roce_error post_receive(struct reduction *d) {
  tributary_roce *r = d->r;
  struct tributary_message m = tributary_flow_message(&d->flow, d->flow.receives);
  struct ibv_sge sge[2];
  struct ibv_recv_wr work = {.wr_id = work_receive}, *bad;
  if (!r->write) { /* RDMA WRITE consumes a receive, and no memory of it */
    work.sg_list = sge;
    work.num_sge = list(sge, &m, d->sums, d->out_at, r->spare, r->mtu);
  }
  errno = ibv_post_recv(r->receive, &work, &bad);
  if (errno)
    return refused(r, "a receive");
  d->flow.receives++;
  return TRIBUTARY_ROCE_OK;
}

static tributary_roce_error post_send(struct reduction *d) {
  tributary_roce *r = d->r;
  struct tributary_message m = tributary_flow_message(&d->flow, d->flow.sends);
  struct ibv_sge sge[2];
  struct ibv_send_wr work = {.wr_id = work_send, .sg_list = sge, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
  work.num_sge = list(sge, &m, d->inputs, d->in_at, r->spare, 0);
  if (r->write) {
    work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    work.imm_data = htonl((uint32_t)d->flow.sends);
    work.wr.rdma.remote_addr = r->target + d->out_at + m.at;
    work.wr.rdma.rkey = r->target_key;
  }
  errno = ibv_post_send(r->send, &work, &bad);
  if (errno)
    return refused(r, "a send");
  d->flow.sends++;
  return TRIBUTARY_ROCE_OK;
}

/* post posts all receives and then all sends that may be posted. */
static tributary_roce_error post(struct reduction *d) {
  tributary_roce_error e = TRIBUTARY_ROCE_OK;
  while (!e && tributary_flow_may_receive(&d->flow))
    e = post_receive(d);
  while (!e && tributary_flow_may_send(&d->flow))
    e = post_send(d);
  return e;
}

/* broken describes the completion of a queue pair that has failed. */
static tributary_roce_error broken(struct reduction *d, const struct ibv_wc *c) {
  const char *hint = "";
  if (c->status == IBV_WC_RETRY_EXC_ERR)
    hint = ": no acknowledgement; is every rank here, and the job set up on the card?";
  else if (c->status == IBV_WC_RNR_RETRY_EXC_ERR)
    hint = ": the next rank has posted no receive; are the connections registered with the card?";
  else if (c->status == IBV_WC_LOC_LEN_ERR)
    hint = ": a message is longer than those of this rank; do all ranks sum arrays of the same size?";
  else if (c->status == IBV_WC_WR_FLUSH_ERR)
    hint = ": the queue pair has failed before";
  return fail(d->r, TRIBUTARY_ROCE_ERROR_CONNECTION, "%s %llu of %llu failed: %s (%d)%s",
              c->wr_id == work_send ? "send" : "receive", (unsigned long long)(c->wr_id == work_send ? d->flow.sent : d->flow.received),
              (unsigned long long)d->flow.messages, ibv_wc_status_str(c->status), c->status, hint);
}

/* count counts a completion. */
static tributary_roce_error count(struct reduction *d, const struct ibv_wc *c) {
  if (c->status != IBV_WC_SUCCESS)
    return broken(d, c);
  if (c->wr_id == work_send) {
    d->flow.sent++;
    return TRIBUTARY_ROCE_OK;
  }
  struct tributary_message m = tributary_flow_message(&d->flow, d->flow.received);
  if (c->byte_len != m.bytes + m.padding)
    return fail(d->r, TRIBUTARY_ROCE_ERROR_LENGTH, "message %llu has %u bytes, not %u: do all ranks sum arrays of the same size?",
                (unsigned long long)d->flow.received, c->byte_len, m.bytes + m.padding);
  if (d->r->write && ntohl(c->imm_data) != (uint32_t)d->flow.received)
    return fail(d->r, TRIBUTARY_ROCE_ERROR_LENGTH, "message %u came instead of message %llu", ntohl(c->imm_data), (unsigned long long)d->flow.received);
  d->flow.received++;
  return TRIBUTARY_ROCE_OK;
}

/* drain counts all completions that are there; *any reports whether there were some. */
static tributary_roce_error drain(struct reduction *d, int *any) {
  struct ibv_wc list[batch];
  int n;
  *any = 0;
  while ((n = ibv_poll_cq(d->r->completions, batch, list)) > 0) {
    *any = 1;
    for (int i = 0; i < n; i++) {
      tributary_roce_error e = count(d, list + i);
      if (e)
        return e;
    }
  }
  return n < 0 ? refused(d->r, "the completion queue") : TRIBUTARY_ROCE_OK;
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* pause_until waits for an event of the completion queue, which is armed. end 0 is no limit. */
static tributary_roce_error pause_until(tributary_roce *r, int64_t end) {
  struct pollfd files[] = {{.fd = r->channel->fd, .events = POLLIN}, {.fd = r->cancel, .events = POLLIN}};
  int64_t left = end ? end - now() : 0;
  if (end && left <= 0)
    return TRIBUTARY_ROCE_ERROR_TIMEOUT;
  int limit = end ? (int)(left / 1000000 < 1000000 ? left / 1000000 + 1 : 1000000) : -1;
  if (poll(files, 2, limit) < 0 && errno != EINTR)
    return refused(r, "poll");
  if (files[1].revents)
    return fail(r, TRIBUTARY_ROCE_ERROR_CANCELED, "canceled");
  if (files[0].revents) {
    struct ibv_cq *queue;
    void *context;
    if (ibv_get_cq_event(r->channel, &queue, &context))
      return refused(r, "an event of the completion queue");
    ibv_ack_cq_events(queue, 1);
  }
  return TRIBUTARY_ROCE_OK;
}

/* run sends and receives everything. */
static tributary_roce_error run(struct reduction *d, int64_t end) {
  for (;;) {
    int any;
    tributary_roce_error e = post(d);
    if (!e)
      e = drain(d, &any);
    if (e || tributary_flow_over(&d->flow))
      return e;
    if (any)
      continue;
    /* What completes after the last look and before the queue is armed causes no event. */
    errno = ibv_req_notify_cq(d->r->completions, 0);
    if (errno)
      return refused(d->r, "the completion queue");
    if ((e = drain(d, &any)) || any) {
      if (e)
        return e;
      continue;
    }
    e = pause_until(d->r, end);
    if (e == TRIBUTARY_ROCE_ERROR_TIMEOUT)
      return fail(d->r, e, "the deadline is over with %llu of %llu messages received, and %llu of %llu sends acknowledged",
                  (unsigned long long)d->flow.received, (unsigned long long)d->flow.messages, (unsigned long long)d->flow.sent,
                  (unsigned long long)d->flow.sends);
    if (e)
      return e;
  }
}

/* check refuses arrays that are not in their regions. */
static tributary_roce_error check(struct reduction *d, size_t bytes) {
  tributary_roce *r = d->r;
  if (!d->inputs || !d->sums || d->in_at > d->inputs->memory->length || bytes > d->inputs->memory->length - d->in_at)
    return fail(r, TRIBUTARY_ROCE_ERROR_INPUT, "%zu bytes are not all in the region of the inputs", bytes);
  size_t room = r->write ? (bytes + r->mtu - 1) / r->mtu * r->mtu : bytes;
  if (d->out_at > d->sums->memory->length || room > d->sums->memory->length - d->out_at)
    return fail(r, TRIBUTARY_ROCE_ERROR_INPUT, "%zu bytes are not all in the region of the sums%s", room,
                r->write ? ": RDMA WRITE writes whole packets" : "");
  uintptr_t in = (uintptr_t)d->inputs->memory->addr + d->in_at, out = (uintptr_t)d->sums->memory->addr + d->out_at;
  if (in < out + room && out < in + bytes)
    return fail(r, TRIBUTARY_ROCE_ERROR_INPUT, "inputs and sums overlap");
  return TRIBUTARY_ROCE_OK;
}

tributary_roce_error tributary_roce_reduce(tributary_roce *r, const tributary_roce_region *inputs, size_t in_at,
                                           const tributary_roce_region *sums, size_t out_at, size_t bytes, int64_t deadline_ns) {
  struct reduction d = {.r = r, .inputs = inputs, .sums = sums, .in_at = in_at, .out_at = out_at};
  if (!r->spare)
    return fail(r, TRIBUTARY_ROCE_ERROR_INPUT, "no device is open");
  if (r->failed)
    return fail(r, TRIBUTARY_ROCE_ERROR_CONNECTION, "a reduction has failed before; open the device again");
  tributary_roce_error e = bytes ? check(&d, bytes) : TRIBUTARY_ROCE_OK;
  if (e || !bytes)
    return e;
  d.flow = tributary_flow_begin(bytes, r->mtu, r->packets, r->credits);
  e = run(&d, deadline_ns ? now() + deadline_ns : 0);
  r->failed = e != TRIBUTARY_ROCE_OK;
  return e;
}

int64_t tributary_roce_patience(const tributary_roce *r) { return tributary_flow_patience(r->retries, r->timeout); }

void tributary_roce_cancel(tributary_roce *r) {
  uint64_t one = 1;
  ssize_t n = write(r->cancel, &one, sizeof one); /* fails if it has been called very often */
  (void)n;
}

void tributary_roce_close(tributary_roce *r) {
  if (!r)
    return;
  if (r->receive && r->receive != r->send)
    ibv_destroy_qp(r->receive);
  if (r->send)
    ibv_destroy_qp(r->send);
  void *spare = r->spare ? r->spare->memory->addr : NULL;
  for (tributary_roce_region *one = r->regions, *next; one; one = next) {
    next = one->next;
    ibv_dereg_mr(one->memory);
    free(one);
  }
  free(spare);
  if (r->completions)
    ibv_destroy_cq(r->completions);
  if (r->channel)
    ibv_destroy_comp_channel(r->channel);
  if (r->domain)
    ibv_dealloc_pd(r->domain);
  if (r->context)
    ibv_close_device(r->context);
  if (r->cancel >= 0)
    close(r->cancel);
  free(r);
}
