/* `deaths COUNT`: that many children use the NIC, and each is killed at some moment: before it has
 * opened the device, while it makes or destroys objects, or under traffic. */
#include "one_host.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

enum { LATEST_US = 30000 };

static void make_and_destroy(void)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(near_end.context);
    struct ibv_cq *cq = ibv_create_cq(near_end.context, 100, NULL, channel, 0);
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 50, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(near_end.pd, &attr);
    struct end third = near_end;
    char *memory = malloc(100000);
    struct ibv_mr *mr = ibv_reg_mr(near_end.pd, memory, 100000, 0xf);
    MUST(channel && cq && srq && mr);
    end_add_qp(&third, cq, srq, 10);
    end_to_init(&third);
    MUST(ibv_destroy_qp(third.qp) == 0 && ibv_destroy_srq(srq) == 0 && ibv_destroy_cq(cq) == 0);
    MUST(ibv_destroy_comp_channel(channel) == 0 && ibv_dereg_mr(mr) == 0);
    free(memory);
}

/* Never ends. */
static void live(void)
{
    static char memory[1 << 20];
    connect_both();
    struct ibv_mr *mr = ibv_reg_mr(near_end.pd, memory, sizeof memory, 0xf);
    MUST(mr);
    far_end.far.addr = (uintptr_t)memory;
    far_end.far.rkey = mr->rkey;
    for (;;) {
        for (int i = 0; i < 8; i++)
            MUST(end_send(&far_end, IBV_WR_RDMA_WRITE, WINDOW_BYTES) == 0);
        make_and_destroy();
        for (int i = 0; i < 8; i++)
            MUST(next_completion(far_end.cq).status == IBV_WC_SUCCESS);
    }
}

int main(int argc, char **argv)
{
    MUST(argc == 2);
    srand(7);
    for (int i = 0; i < atoi(argv[1]); i++) {
        pid_t child = fork();
        if (child == 0)
            live();
        struct timespec life = {.tv_nsec = 1000L * (rand() % LATEST_US)};
        nanosleep(&life, NULL);
        int status;
        MUST(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
        MUST(WIFSIGNALED(status)); /* it did not fail before */
    }
    return 0;
}
