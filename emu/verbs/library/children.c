/* Programs that this one starts read the true time stamp counter: the trap would last beyond
 * execve, and end a program that does not expect it.
 *
 * A function that starts a program in a child of its own lifts the calling thread's trap for as
 * long as it takes. The new program lives in emulated time from its own first verbs call on. */
#define _GNU_SOURCE /* execvpe */

#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "library.h"

extern char **environ;

/* The result of a call without a trap. */
#define UNTRAPPED(call)                                                                            \
    ({                                                                                             \
        bool was_trapped = release_counter();                                                      \
        __typeof__(call) result = (call);                                                          \
        if (was_trapped)                                                                           \
            trap_counter();                                                                        \
        result;                                                                                    \
    })

/* ---- exec ---------------------------------------------------------------------------------- */

EXPORT int execve(const char *path, char *const arguments[], char *const environment[])
{
    return UNTRAPPED(REAL(execve)(path, arguments, environment));
}

EXPORT int fexecve(int fd, char *const arguments[], char *const environment[])
{
    return UNTRAPPED(REAL(fexecve)(fd, arguments, environment));
}

EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[])
{
    return UNTRAPPED(REAL(execvpe)(file, arguments, environment));
}

EXPORT int execv(const char *path, char *const arguments[])
{
    return execve(path, arguments, environ);
}

EXPORT int execvp(const char *file, char *const arguments[])
{
    return execvpe(file, arguments, environ);
}

/* With the NULL at the end. */
static int count_arguments(const char *first, va_list *list)
{
    int count = 1;
    va_list copy;
    va_copy(copy, *list);
    for (const char *next = first; next; next = va_arg(copy, char *))
        count++;
    va_end(copy);
    return count;
}

static void take_arguments(const char *first, va_list *list, char **to)
{
    for (char *next = (char *)first; next; next = va_arg(*list, char *))
        *to++ = next;
    *to = NULL;
}

EXPORT int execl(const char *path, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    char *arguments[count_arguments(first, &list)];
    take_arguments(first, &list, arguments);
    va_end(list);
    return execv(path, arguments);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    char *arguments[count_arguments(first, &list)];
    take_arguments(first, &list, arguments);
    va_end(list);
    return execvp(file, arguments);
}

EXPORT int execle(const char *path, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    char *arguments[count_arguments(first, &list)];
    take_arguments(first, &list, arguments);
    char *const *environment = va_arg(list, char *const *);
    va_end(list);
    return execve(path, arguments, environment);
}

/* ---- children ---------------------------------------------------------------------------- */

EXPORT int posix_spawn(pid_t *restrict pid, const char *restrict path,
                       const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *restrict attr, char *const arguments[restrict],
                       char *const environment[restrict])
{
    return UNTRAPPED(REAL(posix_spawn)(pid, path, actions, attr, arguments, environment));
}

EXPORT int posix_spawnp(pid_t *restrict pid, const char *restrict file,
                        const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *restrict attr, char *const arguments[restrict],
                        char *const environment[restrict])
{
    return UNTRAPPED(REAL(posix_spawnp)(pid, file, actions, attr, arguments, environment));
}

EXPORT int system(const char *command)
{
    return UNTRAPPED(REAL(system)(command));
}

EXPORT FILE *popen(const char *command, const char *mode)
{
    return UNTRAPPED(REAL(popen)(command, mode));
}
