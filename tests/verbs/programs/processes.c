/* `processes CASE`: children of a program, and contexts that are closed. Ends with 0 if neither
 * disturbs what is still in use. */
#include "one_host.h"

#include <sys/wait.h>

enum { MESSAGES = 50, ROUNDS = 8200, ROUNDS_OF_7 = 1200 }; /* the NIC has 8191 handles */

static void write_some(void)
{
    near_end.own.addr = near_end.far.addr = far_end.own.addr;
    near_end.mr = far_end.mr;
    near_end.far.rkey = far_end.mr->rkey;
    for (int i = 0; i < MESSAGES; i++) {
        MUST(end_send(&near_end, IBV_WR_RDMA_WRITE, 8) == 0);
        MUST(next_completion(near_end.cq).status == IBV_WC_SUCCESS);
    }
}

static void must_end_well(pid_t child)
{
    int status;
    MUST(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

/* The child uses all that the parent has, while completions wait. */
static void child_uses_parents(void)
{
    struct ibv_wc wc;
    write_some();
    MUST(end_send(&near_end, IBV_WR_RDMA_WRITE, 8) == 0);
    usleep(100);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 3; i++)
            MUST(ibv_poll_cq(near_end.cq, 1, &wc) == 0);
        MUST(end_send(&near_end, IBV_WR_RDMA_WRITE, 8) == EINVAL);
        MUST(ibv_destroy_qp(near_end.qp) == EINVAL && ibv_destroy_cq(near_end.cq) == EINVAL);
        connect_both(); /* its own, with handles that the parent has, too */
        write_some();
        _exit(0);
    }
    must_end_well(child);
    MUST(next_completion(near_end.cq).status == IBV_WC_SUCCESS);
    write_some();
}

static void closed_contexts(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_context *context = open_nic();
        MUST(ibv_alloc_pd(context));
        MUST(ibv_close_device(context) == 0);
    }
    write_some();
}

/* Of every kind, with users that were made before and after what they use. */
static void closed_with_everything(void)
{
    static char memory[8192] __attribute__((aligned(4096)));
    for (int i = 0; i < ROUNDS_OF_7; i++) {
        struct end one = {0};
        struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
        one.context = open_nic();
        one.pd = ibv_alloc_pd(one.context);
        struct ibv_comp_channel *channel = ibv_create_comp_channel(one.context);
        struct ibv_cq *cq = ibv_create_cq(one.context, 8, NULL, channel, 0);
        struct ibv_srq *srq = ibv_create_srq(one.pd, &init);
        MUST(one.pd && channel && cq && srq);
        end_add_qp(&one, cq, srq, 4);
        end_register(&one, memory, sizeof memory);
        MUST(ibv_rereg_mr(one.mr, IBV_REREG_MR_CHANGE_PD, ibv_alloc_pd(one.context), NULL, 0, 0) ==
             0);
        MUST(ibv_close_device(one.context) == 0);
    }
    struct ibv_mr *mr = ibv_reg_mr(near_end.pd, memory, sizeof memory, 0xf);
    MUST(mr && ibv_dereg_mr(mr) == 0);
    write_some();
}

/* Up to the end of the lab. */
static void waits_for_event(void)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(near_end.context);
    struct ibv_cq *cq;
    void *context;
    MUST(channel);
    puts("ready");
    fflush(stdout);
    MUST(ibv_get_cq_event(channel, &cq, &context) == -1);
    printf("%s\n", strerror(errno));
}

static void nowhere(void)
{
    MUST(!ibv_reg_mr(near_end.pd, NULL, 4096, 0xf) && errno == EFAULT);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"child_uses_parents", child_uses_parents},
        {"closed_contexts", closed_contexts},
        {"closed_with_everything", closed_with_everything},
        {"waits_for_event", waits_for_event},
        {"nowhere", nowhere},
    };
    return run_case(cases, sizeof cases / sizeof *cases, argc, argv);
}
