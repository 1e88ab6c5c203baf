/* SIGSEGV is never blocked, because this library needs it (traps.c): the kernel ends a thread that
 * blocks it when it reads the time stamp counter. The program reads back what it has set.
 *
 *     the program sets a mask with SIGSEGV     the kernel gets it without, the thread notes it
 *     it reads its mask                        SIGSEGV is in it again
 *     somebody sends SIGSEGV meanwhile         it is kept until the program unblocks it
 *
 * Masks of one call (ppoll, sigsuspend, sa_mask) have no SIGSEGV either. Left out: sigwait and
 * signalfd for SIGSEGV get none, and siglongjmp does not undo the note. */
#define _GNU_SOURCE /* RTLD_NEXT */

#include <unistd.h>

#include "library.h"

static __thread bool is_blocked, is_kept;

static int real_mask(int how, const sigset_t *set, sigset_t *before)
{
    return REAL(pthread_sigmask)(how, set, before);
}

const sigset_t *without_traps(const sigset_t *set, sigset_t *copy)
{
    if (!set)
        return NULL;
    *copy = *set;
    sigdelset(copy, SIGSEGV);
    return copy;
}

/* ---- the thread's note ----------------------------------------------------------------------- */

void take_mask(const sigset_t *mask)
{
    sigset_t copy;
    is_blocked = sigismember(mask, SIGSEGV) == 1;
    real_mask(SIG_SETMASK, without_traps(mask, &copy), NULL);
}

void inherit_mask(void)
{
    sigset_t mask;
    real_mask(SIG_SETMASK, NULL, &mask);
    take_mask(&mask);
}

bool keep_signal(void)
{
    is_kept |= is_blocked;
    return is_blocked;
}

static void release_signal(void)
{
    if (is_blocked || !is_kept)
        return;
    is_kept = false;
    raise(SIGSEGV);
}

/* ---- what the program calls ------------------------------------------------------------------ */

static void note(int how, const sigset_t *set)
{
    bool has = sigismember(set, SIGSEGV) == 1;
    if (how == SIG_SETMASK)
        is_blocked = has;
    else if (has)
        is_blocked = how == SIG_BLOCK;
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    sigset_t copy;
    bool was_blocked = is_blocked;
    const sigset_t wanted = set ? *set : (sigset_t){0}; /* it may be the same as `before` */
    int error = real_mask(how, without_traps(set, &copy), before);
    if (error)
        return error;
    if (before && was_blocked)
        sigaddset(before, SIGSEGV);
    if (!set)
        return 0;
    note(how, &wanted);
    release_signal();
    return 0;
}

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *before)
{
    int error = pthread_sigmask(how, set, before);
    if (error)
        errno = error;
    return error ? -1 : 0;
}

EXPORT int sigsuspend(const sigset_t *set)
{
    sigset_t copy;
    return REAL(sigsuspend)(without_traps(set, &copy));
}

/* ---- for this library ------------------------------------------------------------------------ */

sigset_t block_signals(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    return before;
}

void restore_signals(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}
