/* `processes CASE`: children of a program, and contexts that are closed. Ends with 0 if neither
 * disturbs what is still in use. */
#define _GNU_SOURCE
#include "one_host.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
    PAGE = 4096,
    MESSAGES = 50,
    ROUNDS = 8200, /* the NIC has 8191 handles */
    ROUNDS_OF_7 = 1200,
    LIMIT = 200 /* of descriptors */
};

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
static int use_parents(void *unused)
{
    struct ibv_wc wc;
    (void)unused;
    for (int i = 0; i < 3; i++)
        MUST(ibv_poll_cq(near_end.cq, 1, &wc) == 0);
    MUST(end_send(&near_end, IBV_WR_RDMA_WRITE, 8) == EINVAL);
    MUST(ibv_destroy_qp(near_end.qp) == EINVAL && ibv_destroy_cq(near_end.cq) == EINVAL);
    window[0] = 'c';
    connect_both(); /* its own, with handles that the parent has, too */
    write_some();
    _exit(0);
}

static void before_child(void)
{
    write_some();
    window[0] = 'p';
    MUST(end_send(&near_end, IBV_WR_RDMA_WRITE, 8) == 0);
    usleep(100);
}

static void after_child(pid_t child)
{
    must_end_well(child);
    MUST(window[0] == 'p');
    MUST(next_completion(near_end.cq).status == IBV_WC_SUCCESS);
    write_some();
}

static void child_uses_parents(void)
{
    before_child();
    pid_t child = fork();
    if (child == 0)
        use_parents(NULL);
    after_child(child);
}

static void child_of_fork_without_handlers(void)
{
    before_child();
    pid_t child = _Fork();
    if (child == 0)
        use_parents(NULL);
    after_child(child);
}

static void child_of_a_system_call(void)
{
    before_child();
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0)
        use_parents(NULL);
    after_child(child);
}

static void child_of_clone(void)
{
    static char stack[1 << 20] __attribute__((aligned(16)));
    before_child();
    after_child(clone(use_parents, stack + sizeof stack, SIGCHLD, NULL));
}

/* As daemons do. */
static void all_files_closed(void)
{
    write_some();
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    write_some();
    MUST(ibv_dereg_mr(ibv_reg_mr(near_end.pd, window, PAGE, IBV_ACCESS_LOCAL_WRITE)) == 0);
    MUST(close_range(3, ~0U, 0) == 0);
    closefrom(3);
    MUST(syscall(SYS_close_range, 3, ~0U, 0) == 0);
    write_some();
    connect_both();
    write_some();
}

/* A file of the program takes the place of each number; nothing else is written there. */
static void other_files_in_all_places(void)
{
    static const char text[] = "the program's own";
    struct stat seen;
    char name[] = "/tmp/emu-own-XXXXXX";
    int file = mkstemp(name);
    MUST(file >= 0 && unlink(name) == 0);
    MUST(write(file, text, sizeof text) == sizeof text);
    for (int fd = 3; fd < 64; fd++)
        MUST(dup2(file, fd) == fd);
    write_some();
    MUST(ibv_dereg_mr(ibv_reg_mr(near_end.pd, window, PAGE, IBV_ACCESS_LOCAL_WRITE)) == 0);
    poll(NULL, 0, 1);
    write_some();
    char is[sizeof text];
    MUST(fstat(3, &seen) == 0 && seen.st_size == sizeof text);
    MUST(pread(3, is, sizeof is, 0) == sizeof is && memcmp(is, text, sizeof is) == 0);
}

static void no_descriptor_left(void)
{
    struct rlimit limit = {LIMIT, LIMIT};
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_qp_init_attr qp = {.send_cq = near_end.cq,
                                  .recv_cq = near_end.cq,
                                  .cap = {1, 1, 1, 1, 0},
                                  .qp_type = IBV_QPT_RC};
    MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    while (open("/dev/null", O_RDONLY) >= 0)
        continue;
    MUST(!ibv_create_comp_channel(near_end.context) && errno == EMFILE);
    MUST(!ibv_create_cq(near_end.context, 4, NULL, NULL, 0) && errno == EMFILE);
    MUST(!ibv_create_srq(near_end.pd, &srq) && errno == EMFILE);
    MUST(!ibv_create_qp(near_end.pd, &qp) && errno == EMFILE);
    write_some();
}

static void *acknowledge_late(void *done)
{
    usleep(50000);
    *(int *)done = 1;
    ibv_ack_cq_events(near_end.cq, 1);
    return NULL;
}

/* Its destruction waits for the acknowledgement. */
static void event_that_is_acknowledged_late(void)
{
    int done = 0;
    pthread_t thread;
    void *context;
    struct ibv_comp_channel *channel = ibv_create_comp_channel(near_end.context);
    MUST(channel);
    near_end.cq = ibv_create_cq(near_end.context, 64, NULL, channel, 0);
    far_end.cq = near_end.cq;
    end_add_qp(&near_end, near_end.cq, NULL, 16);
    end_add_qp(&far_end, near_end.cq, NULL, 16);
    connect_ends(&near_end, &far_end);
    MUST(ibv_req_notify_cq(near_end.cq, 0) == 0);
    near_end.own.addr = near_end.far.addr = far_end.own.addr;
    near_end.mr = far_end.mr;
    near_end.far.rkey = far_end.mr->rkey;
    MUST(end_send(&near_end, IBV_WR_RDMA_WRITE, 8) == 0);
    MUST(ibv_get_cq_event(channel, &near_end.cq, &context) == 0);
    MUST(ibv_destroy_qp(near_end.qp) == 0 && ibv_destroy_qp(far_end.qp) == 0);
    MUST(pthread_create(&thread, NULL, acknowledge_late, &done) == 0);
    MUST(ibv_destroy_cq(near_end.cq) == 0 && done);
    pthread_join(thread, NULL);
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
        {"child_of_fork_without_handlers", child_of_fork_without_handlers},
        {"child_of_a_system_call", child_of_a_system_call},
        {"child_of_clone", child_of_clone},
        {"all_files_closed", all_files_closed},
        {"other_files_in_all_places", other_files_in_all_places},
        {"no_descriptor_left", no_descriptor_left},
        {"event_that_is_acknowledged_late", event_that_is_acknowledged_late},
        {"closed_contexts", closed_contexts},
        {"closed_with_everything", closed_with_everything},
        {"waits_for_event", waits_for_event},
        {"nowhere", nowhere},
    };
    return run_case(cases, sizeof cases / sizeof *cases, argc, argv);
}
