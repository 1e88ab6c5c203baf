/* `mistakes CASE [@SERVER]`: two ends, one of which makes a mistake. Each prints the statuses of
 * its completions and its asynchronous events. */
#include "two_ends.h"

#include <signal.h>

enum { BYTES = 4096, RECEIVES = 4 };

static char memory[BYTES] __attribute__((aligned(4096)));

static bool is(const char *word, const char *other)
{
    return strcmp(word, other) == 0;
}

static const char *state_of(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    MUST(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0);
    return attr.qp_state == IBV_QPS_ERR ? "ERR" : attr.qp_state == IBV_QPS_RTS ? "RTS" : "other";
}

static void fill_queue(struct end *end, uint32_t wrs)
{
    int error = 0;
    for (uint32_t i = 0; i < wrs; i++)
        MUST(end_send(end, IBV_WR_RDMA_WRITE, 8) == 0);
    error = end_send(end, IBV_WR_RDMA_WRITE, 8);
    printf("%s\n", error == ENOMEM ? "ENOMEM" : strerror(error));
    for (uint32_t i = 0; i < wrs; i++)
        MUST(next_completion(end->cq).status == IBV_WC_SUCCESS);
}

static void make_mistake(struct end *end, const char *mistake)
{
    enum ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;
    uint32_t bytes = 64;
    if (is(mistake, "wrong_rkey"))
        end->far.rkey += 1;
    if (is(mistake, "out_of_bounds"))
        end->far.addr += BYTES - 8;
    if (is(mistake, "wrong_lkey"))
        end->mr->lkey += 1;
    if (is(mistake, "denied_read"))
        opcode = IBV_WR_RDMA_READ;
    if (is(mistake, "no_receive") || is(mistake, "small_receive"))
        opcode = IBV_WR_SEND;
    MUST(end_send(end, opcode, bytes) == 0);
    print_completion(end->cq);
}

/* As many completions as the queue holds, and some. */
static void overrun(struct end *end)
{
    for (int i = 0; i < 12; i++)
        MUST(end_send(end, IBV_WR_RDMA_WRITE, 8) == 0);
    print_event(end->context);
    print_event(end->context);
    struct ibv_wc wc;
    printf("poll %d\n", ibv_poll_cq(end->cq, 1, &wc));
}

static void print_port(struct end *end)
{
    struct ibv_port_attr port;
    print_event(end->context);
    MUST(ibv_query_port(end->context, 1, &port) == 0);
    puts(ibv_port_state_str(port.state));
    fflush(stdout);
}

/* Until something happens to the other end, or to the cable. */
static void write_on(struct end *end)
{
    struct ibv_wc wc;
    puts("ready");
    fflush(stdout);
    do {
        MUST(end_send(end, IBV_WR_RDMA_WRITE, 64) == 0);
        wc = next_completion(end->cq);
    } while (wc.status == IBV_WC_SUCCESS);
    printf("%s %u\n", ibv_wc_status_str(wc.status), wc.vendor_err);
}

static long now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Until a message takes far longer than the others. */
static void outlast_storm(struct end *end)
{
    struct ibv_wc wc;
    long took_us;
    puts("ready");
    fflush(stdout);
    do {
        long from_us = now_us();
        MUST(end_send(end, IBV_WR_RDMA_WRITE, 64) == 0);
        wc = next_completion(end->cq);
        took_us = now_us() - from_us;
    } while (wc.status == IBV_WC_SUCCESS && took_us < 100);
    printf("%s %ld\n", ibv_wc_status_str(wc.status), took_us);
}

/* Somebody takes the cable away, and puts it back. */
static void lose_link(struct end *end)
{
    write_on(end);
    print_port(end);
    puts("failed");
    fflush(stdout);
    print_port(end);
}

/* Sends when somebody has taken the cable away. */
static void send_without_link(struct end *end)
{
    puts("ready");
    fflush(stdout);
    print_port(end);
    long from_us = now_us();
    MUST(end_send(end, IBV_WR_RDMA_WRITE, 64) == 0);
    print_completion(end->cq);
    printf("%ld us\n", now_us() - from_us);
}

static void run_client(struct end *end, const char *mistake)
{
    if (is(mistake, "peer_dies")) {
        write_on(end);
        exit(0);
    }
    if (is(mistake, "dies_in_a_call")) {
        memory[0] = 1;
        MUST(end_send(end, IBV_WR_RDMA_READ, BYTES) == 0);
        MUST(end_send(end, IBV_WR_RDMA_WRITE, 64) == 0);
        print_completion(end->cq);
        print_completion(end->cq);
        exit(0);
    }
    if (is(mistake, "full_queue"))
        fill_queue(end, 16);
    else if (is(mistake, "link_down"))
        lose_link(end);
    else if (is(mistake, "no_link"))
        send_without_link(end);
    else if (is(mistake, "storm"))
        outlast_storm(end);
    else if (is(mistake, "overrun"))
        overrun(end);
    else
        make_mistake(end, mistake);
    printf("state %s\n", state_of(end->qp));
}

/* This process is killed in a call that holds emulated time, before its NIC has sent all of its
 * responses. */
static void die_in_a_call(void)
{
    uint32_t *session = NULL; /* struct uverbs_session */
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    MUST(maps);
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "emu-session"))
            MUST(sscanf(line, "%p", (void **)&session) == 1);
    MUST(session);
    while (!*(volatile char *)memory)
        ;
    __atomic_add_fetch(&session[1], 1, __ATOMIC_SEQ_CST); /* held */
    raise(SIGKILL);
}

static void look(struct end *end)
{
    struct ibv_wc wc;
    while (ibv_poll_cq(end->cq, 1, &wc) == 1)
        printf("receive: %s %u\n", ibv_wc_status_str(wc.status), wc.vendor_err);
    while (print_event_if_any(end->context))
        ;
    printf("state %s\n", state_of(end->qp));
}

int main(int argc, char **argv)
{
    struct end end = end_open(server_of(&argc, argv));
    const char *mistake = argv[1];
    struct ibv_cq *cq = ibv_create_cq(end.context, is(mistake, "overrun") ? 8 : 64, NULL, NULL, 0);
    MUST(cq);
    end_add_qp(&end, cq, NULL, 16);
    end_register(&end, memory, BYTES);
    end.rnr_retry = 3;
    end.timeout = is(mistake, "storm") ? 14 : 6;
    if (!end.server && is(mistake, "denied_write"))
        end.access = IBV_ACCESS_REMOTE_READ;
    if (!end.server && is(mistake, "denied_read"))
        end.access = IBV_ACCESS_REMOTE_WRITE;
    if (!end.server && is(mistake, "pkey"))
        end.pkey_index = 1;
    end_connect(&end);
    if (!end.server && is(mistake, "small_receive"))
        end_receive(&end, 16);
    end_meet(&end);
    if (end.server)
        run_client(&end, mistake);
    else if (is(mistake, "dies_in_a_call"))
        die_in_a_call();
    end_meet(&end);
    if (!end.server)
        look(&end);
    end_meet(&end);
    return 0;
}
