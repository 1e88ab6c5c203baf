/* Threads of the program count from their start, whether they call the library or not.
 *
 * Each is in a list. When the program connects to the NICs, all that are in the list get a place in
 * the session (waiting.c); later ones get it before they begin. A thread that clone() starts
 * without pthread_create counts from its first call of the library. */
#define _GNU_SOURCE /* RTLD_NEXT, pthread_attr_getsigmask_np */

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "library.h"

struct thread {
    uint32_t tid;
    struct thread *next;
};

struct start {
    void *(*routine)(void *);
    void *argument;
    bool holds_time, blocks_traps;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER;
static struct thread *threads;
static __thread struct thread self;

/* ---- the list ------------------------------------------------------------------------------ */

static void unlist(void)
{
    pthread_mutex_lock(&listing);
    for (struct thread **at = &threads; *at; at = &(*at)->next)
        if (*at == &self) {
            *at = self.next;
            break;
        }
    pthread_mutex_unlock(&listing);
}

static void thread_ends(void *value)
{
    (void)value;
    unlist();
    leave_place();
}

static void make_key(void)
{
    pthread_key_create(&key, thread_ends);
}

void watch_thread(void)
{
    pthread_once(&once, make_key);
    pthread_setspecific(key, &self);
}

static void enlist(void)
{
    watch_thread();
    pthread_mutex_lock(&listing);
    self = (struct thread){.tid = (uint32_t)syscall(SYS_gettid), .next = threads};
    threads = &self;
    pthread_mutex_unlock(&listing);
}

__attribute__((constructor)) static void enlist_first(void)
{
    inherit_mask(false);
    enlist();
}

void count_threads(void)
{
    pthread_mutex_lock(&listing);
    for (const struct thread *thread = threads; thread; thread = thread->next)
        count_thread(thread->tid);
    pthread_mutex_unlock(&listing);
}

void forget_threads(void)
{
    pthread_mutex_init(&listing, NULL);
    threads = NULL;
    enlist();
}

/* ---- new threads ---------------------------------------------------------------------------- */

static void *run(void *of)
{
    struct start start = *(struct start *)of;
    free(of);
    inherit_mask(start.blocks_traps);
    enlist();
    if (start.holds_time) {
        is_active();
        release_time();
    }
    return start.routine(start.argument);
}

/* Attributes may have a mask of their own, which the kernel gets as it is. */
static bool passes_mask(const pthread_attr_t *attr)
{
    sigset_t mask;
    bool has_own = attr && pthread_attr_getsigmask_np(attr, &mask) == 0;
    return !has_own && blocks_traps();
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *),
                          void *argument)
{
    struct start *start = malloc(sizeof *start);
    if (!start)
        return EAGAIN;
    *start = (struct start){.routine = routine,
                            .argument = argument,
                            .holds_time = is_emulated(),
                            .blocks_traps = passes_mask(attr)};
    if (start->holds_time)
        hold_time();
    bool holds_time = start->holds_time;
    int error = REAL(pthread_create)(thread, attr, run, start);
    if (!error)
        return 0;
    if (holds_time)
        release_time();
    free(start);
    return error;
}
