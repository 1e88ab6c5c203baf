/* Children of the program. Each has memory, queues and descriptors of its own, and its own
 * connection from its first call on; its parent's objects are none of its own.
 *
 *     fork                          by pthread_atfork
 *     _Fork, clone, system calls    here: libc does not tell about these
 *
 * A child that shares memory or descriptors with its parent (vfork, CLONE_VM, CLONE_FILES) stays as
 * it is, up to exec. */
#define _GNU_SOURCE /* RTLD_NEXT, _Fork, clone */

#include <linux/sched.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "library.h"

static void in_child(void)
{
    forget_connection();
    own_queue_memory();
    forget_objects();
    forget_place();
    forget_alarms();
    forget_timers();
    forget_threads();
    forget_files();
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

static long forked(long result)
{
    int error = errno;
    if (result == 0)
        in_child();
    else
        after_fork();
    errno = error;
    return result;
}

EXPORT pid_t _Fork(void) // NOLINT: libc's name
{
    before_fork();
    return (pid_t)forked(REAL(_Fork)());
}

/* ---- system calls ---------------------------------------------------------------------------- */

static bool copies_all(unsigned long flags)
{
    return !(flags & (CLONE_VM | CLONE_VFORK | CLONE_FILES));
}

bool is_fork(long number, const long *of)
{
    switch (number) {
#ifdef SYS_fork /* not on arm64 */
    case SYS_fork:
        return true;
#endif
    case SYS_clone:
        return copies_all((unsigned long)of[0]) && of[1] == 0;
    case SYS_clone3: {
        const struct clone_args *args = (const void *)of[0]; // NOLINT: an argument of the program
        return args && copies_all(args->flags) && args->stack == 0;
    }
    default:
        return false;
    }
}

long fork_by_call(long number, const long *of)
{
    before_fork();
    return forked(REAL(syscall)(number, of[0], of[1], of[2], of[3], of[4], of[5]));
}

/* ---- clone -------------------------------------------------------------------------------------
 */

struct begin {
    int (*routine)(void *);
    void *argument;
};

static int begin_child(void *of)
{
    const struct begin *begin = of;
    in_child();
    return begin->routine(begin->argument);
}

EXPORT int clone(int (*routine)(void *), void *stack, int flags, void *argument, ...)
{
    va_list list;
    va_start(list, argument);
    pid_t *parent = va_arg(list, pid_t *);
    void *tls = va_arg(list, void *);
    pid_t *child = va_arg(list, pid_t *);
    va_end(list);
    if (!routine || !stack || !copies_all((unsigned long)flags))
        return REAL(clone)(routine, stack, flags, argument, parent, tls, child);
    struct begin begin = {routine, argument};
    before_fork();
    int made = REAL(clone)(begin_child, stack, flags, &begin, parent, tls, child);
    int error = errno;
    after_fork();
    errno = error;
    return made;
}
