/* Threads of the program count from their start, whether they call the library or not.
 *
 * Each is in a list. When the program connects to the NICs, all that are in the list get a place in
 * the session (waiting.c); later ones get it before they begin. A thread that clone() starts
 * without pthread_create or thrd_create counts from its first call of the library.
 *
 * In emulated time each thread needs a place. There are UVERBS_THREADS, some of which are for this
 * library's own threads; beyond that no thread begins (EAGAIN). */
#define _GNU_SOURCE /* RTLD_NEXT, pthread_attr_getsigmask_np */

#include <stdlib.h>
#include <threads.h>
#include <unistd.h>

#include "library.h"

struct thread {
    uint32_t tid;
    struct thread *next;
};

struct start {
    void *(*routine)(void *);
    int (*of_c11)(void *); /* in place of `routine` */
    void *argument;
    sigset_t mask;
    bool holds_time;
};

enum { OWN_PLACES = 8, PROGRAM_PLACES = UVERBS_THREADS - OWN_PLACES };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER; /* the program's attributes */
static struct thread *threads;
static uint32_t count; /* of those in the list, and of those that begin */
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
    __atomic_sub_fetch(&count, 1, __ATOMIC_SEQ_CST);
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
    self = (struct thread){.tid = (uint32_t)gettid(), .next = threads};
    threads = &self;
    pthread_mutex_unlock(&listing);
}

__attribute__((constructor)) static void enlist_first(void)
{
    inherit_mask();
    count = 1;
    enlist();
}

bool have_places(void)
{
    if (__atomic_load_n(&count, __ATOMIC_SEQ_CST) <= PROGRAM_PLACES)
        return true;
    debug("in emulated time a program has at most %d threads", (int)PROGRAM_PLACES);
    return false;
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
    pthread_mutex_init(&changing, NULL);
    threads = NULL;
    count = 1;
    enlist();
}

/* ---- new threads ----------------------------------------------------------------------------
 *
 * A thread begins with all signals blocked, and takes its mask when it has a place: a handler that
 * runs before could not wait, since time is held until then. */

static void *run(void *of)
{
    struct start start = *(struct start *)of;
    free(of);
    enlist();
    if (start.holds_time) {
        is_active();
        release_time();
    }
    take_mask(&start.mask);
    if (start.of_c11)
        return (void *)(intptr_t)start.of_c11(start.argument); // NOLINT: as thrd_join expects
    return start.routine(start.argument);
}

/* Attributes may have a mask of their own. It is changed for the call, under a lock, because other
 * threads may use the same attributes. */
static int create_with_own_mask(pthread_t *thread, pthread_attr_t *attr, struct start *start)
{
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    pthread_mutex_lock(&changing);
    pthread_attr_getsigmask_np(attr, &start->mask);
    pthread_attr_setsigmask_np(attr, &all);
    int error = REAL(pthread_create)(thread, attr, run, start);
    pthread_attr_setsigmask_np(attr, &start->mask);
    pthread_mutex_unlock(&changing);
    return error;
}

static int create(pthread_t *thread, const pthread_attr_t *attr, struct start *start)
{
    sigset_t mask;
    if (attr && pthread_attr_getsigmask_np(attr, &mask) == 0)
        return create_with_own_mask(thread, (pthread_attr_t *)attr, start);
    mask = start->mask = block_signals();
    int error = REAL(pthread_create)(thread, attr, run, start);
    restore_signals(&mask);
    return error;
}

static int begin_thread(pthread_t *thread, const pthread_attr_t *attr, const struct start *of)
{
    struct start *start = malloc(sizeof *start);
    bool holds_time = is_emulated();
    if (!start)
        return EAGAIN;
    *start = *of;
    start->holds_time = holds_time;
    if (holds_time)
        hold_time();
    int error = create(thread, attr, start);
    if (!error)
        return 0;
    if (holds_time)
        release_time();
    free(start);
    return error;
}

/* `most`: how many threads there may be then, if time is emulated. */
static int begin_counted(pthread_t *thread, const pthread_attr_t *attr, const struct start *of,
                         uint32_t most)
{
    int error = EAGAIN;
    if (__atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST) <= most || !is_emulated())
        error = begin_thread(thread, attr, of);
    else
        debug("no more threads: in emulated time a program has at most %d", (int)PROGRAM_PLACES);
    if (error)
        __atomic_sub_fetch(&count, 1, __ATOMIC_SEQ_CST);
    return error;
}

int create_own_thread(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *),
                      void *argument)
{
    const struct start start = {.routine = routine, .argument = argument};
    return begin_counted(thread, attr, &start, UVERBS_THREADS);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *),
                          void *argument)
{
    const struct start start = {.routine = routine, .argument = argument};
    return begin_counted(thread, attr, &start, PROGRAM_PLACES);
}

EXPORT int thrd_create(thrd_t *thread, thrd_start_t routine, void *argument)
{
    const struct start start = {.of_c11 = routine, .argument = argument};
    int error = begin_counted(thread, NULL, &start, PROGRAM_PLACES);
    return error == 0 ? thrd_success : error == ENOMEM ? thrd_nomem : thrd_error;
}
