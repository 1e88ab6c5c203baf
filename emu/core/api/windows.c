#include "api/windows.h"

#include <pthread.h>
#include <stdlib.h>

#include "sim/cache_line.h"
#include "sim/futex.h"

enum { SPINS = 400 }; /* before a thread sleeps: some microseconds */

/* What one thread writes and others read. */
struct part_state {
    _Atomic uint32_t taken; /* the number of the last window in which a thread has taken the part */
    picoseconds next_event;
    uint64_t events, events_in_window;
} __attribute__((aligned(CACHE_LINE)));

struct worker {
    struct windows *windows;
    pthread_t thread;
    uint32_t number;
};

struct windows {
    struct part *const *parts; /* that are run here */
    struct part *const *all;
    uint32_t count, threads, started;
    picoseconds lookahead;
    struct part_state *states;
    struct worker *workers;
    uint64_t done, busiest_events;
    uint64_t *events; /* for windows_balance */
    picoseconds until;
    bool ends;
    _Alignas(CACHE_LINE) _Atomic uint32_t number; /* of the window at hand */
    _Alignas(CACHE_LINE) _Atomic uint32_t busy;   /* workers in it */
    _Atomic uint32_t asleep;                      /* threads that must be woken */
};

/* ---- a window ----------------------------------------------------------------------- */

static bool take(struct part_state *state, uint32_t number)
{
    uint32_t before = number - 1;
    return atomic_load_explicit(&state->taken, memory_order_relaxed) == before &&
           atomic_compare_exchange_strong(&state->taken, &before, number);
}

static void run_part(struct windows *windows, uint32_t place)
{
    struct part *part = windows->parts[place];
    struct part_state *state = &windows->states[place];
    state->events_in_window = part_run(part, windows->all, windows->until);
    state->events += state->events_in_window;
    state->next_event = part_next_event(part);
}

/* Each thread begins at another part. */
static void run_parts(struct windows *windows, uint32_t thread)
{
    uint32_t number = windows->number;
    uint32_t first = (uint32_t)((uint64_t)thread * windows->count / windows->threads);
    for (uint32_t i = 0; i < windows->count; i++) {
        uint32_t place = (first + i) % windows->count;
        if (take(&windows->states[place], number))
            run_part(windows, place);
    }
}

/* ---- threads ------------------------------------------------------------------------- */

static void wait_while(struct windows *windows, _Atomic uint32_t *word, uint32_t value)
{
    for (int i = 0; i < SPINS; i++) {
        if (*word != value)
            return;
        spin_pause();
    }
    windows->asleep++;
    while (*word == value)
        futex_wait(word, value);
    windows->asleep--;
}

static void wake(struct windows *windows, _Atomic uint32_t *word)
{
    if (windows->asleep)
        futex_wake_all(word);
}

static void *work(void *argument)
{
    const struct worker *worker = argument;
    struct windows *windows = worker->windows;
    for (uint32_t number = 0;; number++) {
        wait_while(windows, &windows->number, number);
        if (windows->ends)
            return NULL;
        run_parts(windows, worker->number);
        if (--windows->busy == 0)
            wake(windows, &windows->busy);
    }
}

static void begin(struct windows *windows)
{
    windows->busy = windows->started;
    windows->number++;
    wake(windows, &windows->number);
}

static void wait_for_workers(struct windows *windows)
{
    for (uint32_t busy; (busy = windows->busy);)
        wait_while(windows, &windows->busy, busy);
}

/* A thread that the machine does not give is done without. They wait for window 0 to pass, so they
 * must be there before the first. */
static void start_workers(struct windows *windows)
{
    for (uint32_t i = 1; i < windows->threads; i++) {
        struct worker *worker = &windows->workers[windows->started];
        *worker = (struct worker){.windows = windows, .number = i};
        if (pthread_create(&worker->thread, NULL, work, worker) == 0)
            windows->started++;
    }
}

/* ---- all windows -------------------------------------------------------------------------- */

struct windows *windows_new(struct part *const *parts, uint32_t first, uint32_t count,
                            uint32_t threads)
{
    uint32_t room = count ? count : 1;
    struct windows *windows = aligned_alloc(CACHE_LINE, sizeof *windows);
    if (!windows)
        return NULL;
    *windows =
        (struct windows){.parts = parts + first, .all = parts, .count = count, .threads = threads};
    windows->states = aligned_alloc(CACHE_LINE, room * sizeof *windows->states);
    windows->workers = calloc(threads, sizeof *windows->workers);
    windows->events = calloc(room, sizeof *windows->events);
    if (!windows->states || !windows->workers || !windows->events) {
        windows_free(windows);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++)
        windows->states[i] = (struct part_state){.next_event = 0};
    return windows;
}

void windows_free(struct windows *windows)
{
    if (!windows)
        return;
    windows->ends = true;
    begin(windows);
    for (uint32_t i = 0; i < windows->started; i++)
        pthread_join(windows->workers[i].thread, NULL);
    free(windows->states);
    free(windows->workers);
    free(windows->events);
    free(windows);
}

void windows_set_lookahead(struct windows *windows, picoseconds lookahead)
{
    windows->lookahead = lookahead;
}

picoseconds windows_next_event(const struct windows *windows)
{
    picoseconds next = NEVER;
    for (uint32_t i = 0; i < windows->count; i++) {
        picoseconds own = part_next_event(windows->parts[i]);
        next = own < next ? own : next;
    }
    return next;
}

static uint64_t run_window(struct windows *windows, picoseconds until)
{
    uint64_t events = 0, most = 0;
    windows->until = until;
    begin(windows);
    run_parts(windows, 0);
    wait_for_workers(windows);
    for (uint32_t i = 0; i < windows->count; i++) {
        uint64_t own = windows->states[i].events_in_window;
        events += own;
        most = own > most ? own : most;
    }
    windows->done++;
    windows->busiest_events += most;
    return events;
}

static picoseconds earliest(const struct windows *windows)
{
    picoseconds next = NEVER;
    for (uint32_t i = 0; i < windows->count; i++)
        if (windows->states[i].next_event < next)
            next = windows->states[i].next_event;
    return next;
}

uint64_t windows_run_one(struct windows *windows, picoseconds until)
{
    if (windows->number == 0)
        start_workers(windows);
    return run_window(windows, until);
}

void windows_arrive(struct windows *windows, picoseconds until)
{
    for (uint32_t i = 0; i < windows->count; i++)
        clock_run_until(&windows->parts[i]->clock, until);
}

/* What was posted or set since the last run is not in the states yet. */
uint64_t windows_run(struct windows *windows, picoseconds until)
{
    uint64_t events = 0;
    for (picoseconds next = windows_next_event(windows); next <= until; next = earliest(windows)) {
        bool last = windows->lookahead > until - next;
        events += windows_run_one(windows, last ? until : next + windows->lookahead - 1);
    }
    windows_arrive(windows, until);
    return events;
}

struct windows_balance windows_balance(const struct windows *windows)
{
    for (uint32_t i = 0; i < windows->count; i++)
        windows->events[i] = windows->states[i].events;
    return (struct windows_balance){windows->done, windows->busiest_events, windows->events};
}
