/* The signal SIGSEGV, which this library uses for itself:
 *
 *     a thread writes to pages that are about to be shared     it waits until they are
 *     a thread reads the time stamp counter                    it gets emulated time
 *
 * Every other SIGSEGV belongs to the program, including one that kill() or raise() sends. It goes
 * to the program's handler, on the stack that sigaltstack has set, or has the default action. No
 * thread blocks SIGSEGV (signal_masks.c). */
#define _GNU_SOURCE /* RTLD_NEXT */

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <ucontext.h>
#include <unistd.h>

#include "library.h"

static uint64_t held_from, held_to;
static uint64_t holds;              /* how often writers were held */
static struct sigaction of_program; /* its action for SIGSEGV */
static bool is_installed;

static int real_sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    static int (*real)(int, const struct sigaction *, struct sigaction *);
    if (!real)
        real = (int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_NEXT,
                                                                                 "sigaction");
    return real(number, action, before);
}

static bool is_held(uint64_t address)
{
    return address >= __atomic_load_n(&held_from, __ATOMIC_SEQ_CST) &&
           address < __atomic_load_n(&held_to, __ATOMIC_SEQ_CST);
}

/* As if the library had no handler. A thread that faulted does so again. */
static void take_default_action(bool was_sent)
{
    const struct sigaction action = {.sa_handler = SIG_DFL};
    real_sigaction(SIGSEGV, &action, NULL);
    if (was_sent)
        raise(SIGSEGV);
}

static void let_program_handle(int number, siginfo_t *info, void *context)
{
    struct sigaction action = of_program;
    bool was_sent = info->si_code <= 0; /* by kill, raise, ... */
    if (action.sa_handler == SIG_DFL || (action.sa_handler == SIG_IGN && !was_sent)) {
        take_default_action(was_sent);
        return;
    }
    if (action.sa_handler == SIG_IGN)
        return;
    if (action.sa_flags & (int)SA_RESETHAND)
        of_program.sa_handler = SIG_DFL;
    sigdelset(&action.sa_mask, SIGSEGV);
    pthread_sigmask(SIG_BLOCK, &action.sa_mask, NULL); /* up to the handler's end */
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(number, info, context);
    else
        action.sa_handler(number);
}

#if defined(__x86_64__)
static bool emulate_counter(ucontext_t *thread)
{
    greg_t *registers = thread->uc_mcontext.gregs;
    const uint8_t *code = (const uint8_t *)registers[REG_RIP]; // NOLINT
    unsigned length = counter_instruction_bytes(code);
    if (!length)
        return false;
    uint64_t count = read_counter(code);
    registers[REG_RAX] = (greg_t)(count & UINT32_MAX);
    registers[REG_RDX] = (greg_t)(count >> 32);
    if (length == 3) /* rdtscp: also the processor */
        registers[REG_RCX] = 0;
    registers[REG_RIP] += length;
    return true;
}
#else
static bool emulate_counter(ucontext_t *thread)
{
    (void)thread;
    return false;
}
#endif

/* A write that failed while pages were held succeeds when it is tried again. They may be released
 * before the thread is here, so a write is the program's fault only if it fails twice at the same
 * address, and none were held between. */
static bool may_succeed(uint64_t address)
{
    static __thread uint64_t last, holds_then;
    uint64_t holds_now = __atomic_load_n(&holds, __ATOMIC_SEQ_CST);
    bool is_new = address != last || holds_now != holds_then;
    last = address;
    holds_then = holds_now;
    return is_new;
}

static void handle(int number, siginfo_t *info, void *context)
{
    int error = errno;
    if (info->si_code <= 0) {
        if (!keep_signal())
            let_program_handle(number, info, context);
        return;
    }
    if (info->si_code == SI_KERNEL && emulate_counter(context)) {
        errno = error;
        return;
    }
    uint64_t address = (uintptr_t)info->si_addr;
    bool was_held = is_held(address);
    while (is_held(address))
        sched_yield();
    if (!was_held && (info->si_code != SEGV_ACCERR || !may_succeed(address)))
        let_program_handle(number, info, context);
}

void install_traps(void)
{
    if (is_installed)
        return;
    struct sigaction action = {.sa_sigaction = handle,
                               .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    real_sigaction(SIGSEGV, &action, &of_program);
    is_installed = true;
}

void hold_writers(uint64_t from, uint64_t to)
{
    install_traps();
    __atomic_add_fetch(&holds, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&held_from, from, __ATOMIC_SEQ_CST);
    __atomic_store_n(&held_to, to, __ATOMIC_SEQ_CST);
}

void release_writers(void)
{
    __atomic_store_n(&held_to, 0, __ATOMIC_SEQ_CST);
}

/* ---- the program's own handlers ---------------------------------------------------------- */

/* Whether the masks of the program's other handlers have SIGSEGV. */
static bool is_masked[NSIG];

static int set_action(int number, const struct sigaction *action, struct sigaction *before)
{
    struct sigaction wanted = action ? *action : (struct sigaction){0};
    bool was_masked = number > 0 && number < NSIG && is_masked[number];
    bool masks = sigismember(&wanted.sa_mask, SIGSEGV) == 1;
    sigdelset(&wanted.sa_mask, SIGSEGV);
    if (real_sigaction(number, action ? &wanted : NULL, before) != 0)
        return -1;
    if (before && was_masked)
        sigaddset(&before->sa_mask, SIGSEGV);
    if (action)
        is_masked[number] = masks;
    return 0;
}

EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    if (number != SIGSEGV)
        return set_action(number, action, before);
    if (!is_installed)
        return real_sigaction(number, action, before);
    struct sigaction wanted = action ? *action : of_program; /* it may be the same as `before` */
    if (before)
        *before = of_program;
    of_program = wanted;
    return 0;
}

EXPORT sighandler_t signal(int number, sighandler_t handler)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, before;
    return sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}
