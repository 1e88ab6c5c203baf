/* Signals in programs whose time is emulated. Prints for each case its name and a number, which
 * test_signals.py knows. */
#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum { BYTES = 1 << 20, PAGE = 4096, ROUNDS = 50 };

static struct ibv_context *context;
static volatile int handled, stopped;
static volatile const char *stack_of_handler;
static sigjmp_buf before_fault;

static void tell(const char *name, long result)
{
    printf("%s %ld\n", name, result);
    fflush(stdout);
}

static void count(int number)
{
    (void)number;
    handled++;
}

static void handle(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(number, &action, NULL);
}

/* ---- masks --------------------------------------------------------------------------------- */

static sigset_t block_all(void)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    return all;
}

static int blocks_segv(void)
{
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    return sigismember(&now, SIGSEGV);
}

static void *read_counter(void *unused)
{
    (void)unused;
    return (void *)(uintptr_t)(blocks_segv() && __rdtsc() > 0);
}

static void *block_and_read(void *unused)
{
    block_all();
    return read_counter(unused);
}

static void *write_on(void *of)
{
    char *bytes = of;
    block_all();
    while (!stopped)
        for (int at = 0; at < BYTES; at += PAGE)
            bytes[at]++;
    return (void *)1;
}

static long result_of(void *(*routine)(void *), void *argument, const pthread_attr_t *attr)
{
    pthread_t thread;
    void *result = NULL;
    pthread_create(&thread, attr, routine, argument);
    pthread_join(thread, &result);
    return (long)(uintptr_t)result;
}

static long register_beside_writer(void)
{
    pthread_t thread;
    void *result = NULL;
    char *bytes = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_pd *pd = ibv_alloc_pd(context);
    pthread_create(&thread, NULL, write_on, bytes);
    for (int i = 0; i < ROUNDS; i++)
        ibv_dereg_mr(ibv_reg_mr(pd, bytes, BYTES, IBV_ACCESS_LOCAL_WRITE));
    stopped = 1;
    pthread_join(thread, &result);
    return (long)(uintptr_t)result;
}

static void read_counter_in_handler(int number)
{
    handled += number == SIGUSR1 && __rdtsc() > 0;
}

/* 1 if the counter is readable in the handler, 2 if its mask is as it was set. */
static long handler_that_blocks_all(void)
{
    struct sigaction action = {.sa_handler = read_counter_in_handler}, now;
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR1, NULL, &now);
    handled = 0;
    raise(SIGUSR1);
    return handled + 2 * sigismember(&now.sa_mask, SIGSEGV);
}

static void show_masks(void)
{
    pthread_attr_t attr;
    sigset_t all = block_all(), none;
    sigemptyset(&none);
    tell("main-blocks-all", result_of(read_counter, NULL, NULL) + 2 * (long)read_counter(NULL));
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    tell("unblocked", blocks_segv());
    tell("thread-blocks-all", result_of(block_and_read, NULL, NULL));
    pthread_attr_init(&attr);
    pthread_attr_setsigmask_np(&attr, &all);
    tell("attribute-blocks-all", result_of(read_counter, NULL, &attr));
    tell("writer-blocks-all", register_beside_writer());
    tell("handler-blocks-all", handler_that_blocks_all());
}

/* ---- calls that signals interrupt ------------------------------------------------------------ */

/* Returns errno. */
static long interrupted(int which)
{
    struct ibv_async_event async;
    struct rdma_cm_event *of_cm;
    struct ibv_cq *of;
    void *of_cq;
    struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
    struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, channel, 0);
    ibv_req_notify_cq(cq, 0);
    alarm(1);
    int result = which == 'c'   ? ibv_get_cq_event(channel, &of, &of_cq)
                 : which == 'a' ? ibv_get_async_event(context, &async)
                                : rdma_get_cm_event(rdma_create_event_channel(), &of_cm);
    return result == -1 ? errno : 0;
}

/* The handler of the second alarm ends the program's wait. */
static void end_wait(int number)
{
    if (++handled == 1)
        alarm(1);
    else
        siglongjmp(before_fault, number);
}

static long restarted(void)
{
    struct ibv_async_event async;
    handled = 0;
    handle(SIGALRM, end_wait, SA_RESTART);
    alarm(1);
    if (!sigsetjmp(before_fault, 1))
        ibv_get_async_event(context, &async);
    return handled;
}

static void show_interrupted(void)
{
    handle(SIGALRM, count, 0);
    tell("cq-event", interrupted('c'));
    tell("async-event", interrupted('a'));
    tell("cm-event", interrupted('r'));
    tell("restarted", restarted());
}

/* ---- the program's own SIGSEGV --------------------------------------------------------------- */

static void leave_fault(int number)
{
    char here;
    stack_of_handler = &here;
    siglongjmp(before_fault, number);
}

static int fill_stack(int depth)
{
    volatile char used[PAGE];
    used[0] = (char)depth;
    return depth < 0 ? 0 : fill_stack(depth + 1) + used[0];
}

static long overflow_on_own_stack(void)
{
    static char own[1 << 16];
    const stack_t stack = {.ss_sp = own, .ss_size = sizeof own};
    sigaltstack(&stack, NULL);
    handle(SIGSEGV, leave_fault, SA_ONSTACK);
    if (!sigsetjmp(before_fault, 1))
        fill_stack(0);
    return stack_of_handler >= own && stack_of_handler < own + sizeof own;
}

/* Twice the signals that were handled while it was blocked, and those after that. */
static long sent_while_blocked(void)
{
    sigset_t segv;
    sigemptyset(&segv);
    sigaddset(&segv, SIGSEGV);
    handle(SIGSEGV, count, 0);
    handled = 0;
    sigprocmask(SIG_BLOCK, &segv, NULL);
    raise(SIGSEGV);
    int meanwhile = handled;
    sigprocmask(SIG_UNBLOCK, &segv, NULL);
    return 2 * meanwhile + handled;
}

/* The signal that ends a child which sends SIGSEGV to itself. */
static long sent_without_handler(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        ibv_get_device_list(NULL);
        kill(getpid(), SIGSEGV);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static long sent_to_handler(void)
{
    handled = 0;
    handle(SIGSEGV, count, 0);
    kill(getpid(), SIGSEGV);
    raise(SIGSEGV);
    return handled;
}

int main(void)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    if (!devices || !devices[0] || !(context = ibv_open_device(devices[0])))
        return 1;
    usleep(1000); /* the counter begins at 0 */
    show_masks();
    show_interrupted();
    tell("overflow", overflow_on_own_stack());
    tell("sent", sent_to_handler());
    tell("sent-while-blocked", sent_while_blocked());
    tell("sent-without-handler", sent_without_handler());
    return 0;
}
