/* `not_yet CASE`: waits by asking again and again. Ends with 0 if emulated time passes meanwhile,
 * and not for long. */
#define _GNU_SOURCE
#include "one_host.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>

enum { PLACES = 16, LARGE = 60000, MOST_NS = 10000000, PAGE = 4096 };

static struct end near_one, far_one; /* connected, with a channel */
static struct ibv_comp_channel *channel;
static struct ibv_cq *queue;
static struct ibv_mr *region;
static char memory[LARGE];
static volatile int polled, stops;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void set_up(void)
{
    struct ibv_context *context = near_end.context;
    channel = ibv_create_comp_channel(context);
    MUST(channel);
    queue = ibv_create_cq(context, 64, NULL, channel, 0);
    MUST(queue);
    near_one = near_end;
    far_one = far_end;
    end_add_qp(&near_one, queue, NULL, PLACES);
    end_add_qp(&far_one, queue, NULL, PLACES);
    connect_ends(&near_one, &far_one);
    MUST(ibv_req_notify_cq(queue, 0) == 0);
    region = ibv_reg_mr(near_end.pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
    MUST(region);
}

static int post(uint32_t rkey, uint32_t bytes)
{
    struct ibv_sge sge = {(uintptr_t)memory, bytes, region->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {(uintptr_t)window, rkey}};
    return ibv_post_send(near_one.qp, &wr, &bad);
}

static void write_bytes(uint32_t bytes)
{
    MUST(post(far_end.mr->rkey, bytes) == 0);
}

static void write_badly(void)
{
    MUST(post(far_end.mr->rkey ^ 1, 8) == 0);
}

static bool has_arrived(void)
{
    return *(volatile char *)window != 0;
}

static void *poll_queue(void *unused)
{
    struct ibv_wc wc;
    while (!stops)
        polled += ibv_poll_cq(queue, 1, &wc) > 0;
    return unused;
}

/* ---- cases --------------------------------------------------------------------------------- */

static void completion_event(void)
{
    struct ibv_cq *of;
    void *context;
    fcntl(channel->fd, F_SETFL, O_NONBLOCK);
    write_bytes(8);
    while (ibv_get_cq_event(channel, &of, &context) != 0)
        MUST(errno == EAGAIN);
}

static void asynchronous_event(void)
{
    struct ibv_async_event event;
    fcntl(near_end.context->async_fd, F_SETFL, O_NONBLOCK);
    write_badly();
    while (ibv_get_async_event(near_end.context, &event) != 0)
        MUST(errno == EAGAIN);
}

static void state(void)
{
    struct ibv_qp_attr attr = {0};
    struct ibv_qp_init_attr init;
    write_badly();
    while (attr.qp_state != IBV_QPS_ERR)
        MUST(ibv_query_qp(near_one.qp, &attr, IBV_QP_STATE, &init) == 0);
}

static void request_for_an_event(void)
{
    struct pollfd file = {channel->fd, POLLIN, 0};
    write_bytes(8);
    while (poll(&file, 1, 0) == 0)
        MUST(ibv_req_notify_cq(queue, 0) == 0);
}

static void place_for_a_send(void)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, poll_queue, NULL) == 0);
    for (int posted = 0; posted < 5 * PLACES;)
        if (post(far_end.mr->rkey, LARGE) == 0)
            posted++;
        else
            sched_yield();
    while (polled < 5 * PLACES)
        usleep(1);
    stops = 1;
    pthread_join(thread, NULL);
}

static void place_for_a_send_and_another_queue(void)
{
    struct ibv_wc wc;
    struct ibv_cq *other = near_end.cq;
    memory[0] = 1;
    for (int i = 0; i < PLACES; i++)
        write_bytes(LARGE);
    while (!has_arrived()) {
        MUST(post(far_end.mr->rkey, 8) == ENOMEM);
        MUST(ibv_poll_cq(other, 1, &wc) == 0);
    }
}

static void place_for_a_receive(void)
{
    struct ibv_recv_wr *bad, wr = {0};
    memory[0] = 1;
    write_bytes(8);
    while (!has_arrived())
        ibv_post_recv(far_one.qp, &wr, &bad);
}

/* Nothing says that this waits, but for how long it takes. */
static void memory_between_registrations(void)
{
    memory[0] = 1;
    write_bytes(8);
    while (!has_arrived())
        MUST(ibv_dereg_mr(ibv_reg_mr(near_end.pd, window + PAGE, 8, 0)) == 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"completion_event", completion_event},
        {"asynchronous_event", asynchronous_event},
        {"state", state},
        {"request_for_an_event", request_for_an_event},
        {"place_for_a_send", place_for_a_send},
        {"place_for_a_send_and_another_queue", place_for_a_send_and_another_queue},
        {"place_for_a_receive", place_for_a_receive},
        {"memory_between_registrations", memory_between_registrations},
    };
    MUST(argc > 1);
    connect_both();
    set_up();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].name, argv[1]) == 0) {
            int64_t from_ns = now_ns();
            cases[i].run();
            MUST(now_ns() - from_ns < MOST_NS);
            return 0;
        }
    return 2;
}
