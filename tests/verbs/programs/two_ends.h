/* For test programs of verbs that run on two hosts: `PROGRAM WORDS` is the server, and `PROGRAM
 * WORDS @HOST` the client. They connect a queue pair each, and keep a TCP connection to take
 * turns. */
#ifndef TWO_ENDS_H
#define TWO_ENDS_H

#define _GNU_SOURCE /* accept4 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 18515, GID_INDEX = 0 };

/* What one end says to the other. */
struct words {
    uint32_t qpn, rkey;
    uint64_t addr;
    uint32_t lid;
    union ibv_gid gid;
};

struct end {
    const char *server; /* NULL: this is the server */
    int line;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct words own, far;
    bool is_ethernet;
    /* Set before end_connect. */
    unsigned access; /* of the queue pair */
    uint8_t rnr_retry, timeout;
    uint16_t pkey_index;
};

#define MUST(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #what, strerror(errno));        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static struct ibv_context *open_nic(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    MUST(list && list[0]);
    struct ibv_context *context = ibv_open_device(list[0]);
    MUST(context);
    ibv_free_device_list(list);
    return context;
}

/* The last argument names the server's host after an @, or there is none. */
static const char *server_of(int *argc, char **argv)
{
    return *argc > 1 && argv[*argc - 1][0] == '@' ? argv[--*argc] + 1 : NULL;
}

static int connect_line(const char *server)
{
    if (!server) {
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
        struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        MUST(bind(listener, (struct sockaddr *)&any, sizeof any) == 0 && listen(listener, 1) == 0);
        puts("listens");
        fflush(stdout);
        int line = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        close(listener);
        return line;
    }
    struct addrinfo *to, hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    MUST(getaddrinfo(server, "18515", &hints, &to) == 0);
    int line = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    MUST(connect(line, to->ai_addr, to->ai_addrlen) == 0);
    freeaddrinfo(to);
    return line;
}

static struct end end_open(const char *server)
{
    struct end end = {.server = server, .access = 0xf, .rnr_retry = 7, .timeout = 14};
    struct ibv_port_attr port;
    end.context = open_nic();
    MUST(ibv_query_port(end.context, 1, &port) == 0);
    end.is_ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
    end.own.lid = port.lid;
    MUST(ibv_query_gid(end.context, 1, GID_INDEX, &end.own.gid) == 0);
    end.pd = ibv_alloc_pd(end.context);
    MUST(end.pd);
    return end;
}

static void end_add_qp(struct end *end, struct ibv_cq *cq, struct ibv_srq *srq, uint32_t wrs)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .srq = srq,
        .cap = {.max_send_wr = wrs, .max_recv_wr = wrs, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC};
    end->cq = cq;
    end->qp = ibv_create_qp(end->pd, &attr);
    MUST(end->qp);
    end->own.qpn = end->qp->qp_num;
}

static void end_register(struct end *end, void *memory, size_t length)
{
    end->mr = ibv_reg_mr(end->pd, memory, length, 0xf);
    MUST(end->mr);
    end->own.addr = (uintptr_t)memory;
    end->own.rkey = end->mr->rkey;
}

/* Both ends come here, and go on together. */
static void end_meet(const struct end *end)
{
    char byte = 0;
    MUST(write(end->line, &byte, 1) == 1);
    MUST(read(end->line, &byte, 1) == 1);
}

static void end_to_init(const struct end *end)
{
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = end->pkey_index,
                               .port_num = 1,
                               .qp_access_flags = end->access};
    MUST(ibv_modify_qp(end->qp, &init,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
}

static void end_to_rtr(const struct end *end)
{
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_1024,
                              .dest_qp_num = end->far.qpn,
                              .max_dest_rd_atomic = 1,
                              .min_rnr_timer = 1,
                              .ah_attr = {.dlid = (uint16_t)end->far.lid,
                                          .port_num = 1,
                                          .is_global = end->is_ethernet,
                                          .grh = {.dgid = end->far.gid, .hop_limit = 64}}};
    MUST(ibv_modify_qp(end->qp, &rtr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
}

static void end_to_rts(const struct end *end)
{
    end_to_rtr(end);
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
                              .timeout = end->timeout,
                              .retry_cnt = 3,
                              .rnr_retry = end->rnr_retry,
                              .max_rd_atomic = 1};
    MUST(ibv_modify_qp(end->qp, &rts,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static void end_connect(struct end *end)
{
    end_to_init(end);
    end->line = connect_line(end->server);
    MUST(write(end->line, &end->own, sizeof end->own) == sizeof end->own);
    MUST(read(end->line, &end->far, sizeof end->far) == sizeof end->far);
    end_to_rts(end);
    end_meet(end);
}

static int end_send(const struct end *end, enum ibv_wr_opcode opcode, uint32_t bytes)
{
    struct ibv_sge sge = {.addr = end->own.addr, .length = bytes, .lkey = end->mr->lkey};
    struct ibv_send_wr *bad,
        wr = {.wr_id = 7,
              .sg_list = &sge,
              .num_sge = 1,
              .opcode = opcode,
              .send_flags = IBV_SEND_SIGNALED,
              .wr.rdma = {.remote_addr = end->far.addr, .rkey = end->far.rkey}};
    return ibv_post_send(end->qp, &wr, &bad);
}

static void end_receive(const struct end *end, uint32_t bytes)
{
    struct ibv_sge sge = {.addr = end->own.addr, .length = bytes, .lkey = end->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1};
    MUST(ibv_post_recv(end->qp, &wr, &bad) == 0);
}

static struct ibv_wc next_completion(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int count;
    while ((count = ibv_poll_cq(cq, 1, &wc)) == 0)
        ;
    MUST(count == 1);
    return wc;
}

/* The status of the next completion, by its name in libibverbs. */
static void print_completion(struct ibv_cq *cq)
{
    struct ibv_wc wc = next_completion(cq);
    printf("%s %u\n", ibv_wc_status_str(wc.status), wc.vendor_err);
}

static void print_event(struct ibv_context *context)
{
    struct ibv_async_event event;
    MUST(ibv_get_async_event(context, &event) == 0);
    printf("%s\n", ibv_event_type_str(event.event_type));
    ibv_ack_async_event(&event);
}

/* Whether there is one. */
static bool print_event_if_any(struct ibv_context *context)
{
    MUST(fcntl(context->async_fd, F_SETFL, O_NONBLOCK) == 0);
    struct ibv_async_event event;
    if (ibv_get_async_event(context, &event) != 0)
        return false;
    printf("%s\n", ibv_event_type_str(event.event_type));
    ibv_ack_async_event(&event);
    return true;
}

#endif
