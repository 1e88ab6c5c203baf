#define _GNU_SOURCE /* syscall */

#include "driver/exchange.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/walltime.h"

enum { ROOM_WAIT_NS = 1000000 };

size_t exchange_bytes(uint32_t cables)
{
    return sizeof(struct exchange_memory) + 2 * (size_t)cables * sizeof(struct stamp_ring);
}

bool exchange_open(struct exchange *exchange, int fd, uint32_t cables, unsigned side)
{
    size_t size = exchange_bytes(cables);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    *exchange = (struct exchange){.size = size, .side = side};
    if (memory == MAP_FAILED)
        return false;
    exchange->memory = memory;
    exchange->wakes = (struct exact_wakes){-1, -1};
    exchange->own = &exchange->memory->side[side];
    exchange->other = &exchange->memory->side[1 - side];
    return true;
}

void exchange_close(struct exchange *exchange)
{
    if (exchange->memory)
        munmap(exchange->memory, exchange->size);
    *exchange = (struct exchange){0};
}

struct stamp_ring *exchange_sends(const struct exchange *exchange, uint32_t cable)
{
    return &exchange->memory->ring[2 * cable + exchange->side];
}

struct stamp_ring *exchange_receives(const struct exchange *exchange, uint32_t cable)
{
    return &exchange->memory->ring[2 * cable + 1 - exchange->side];
}

/* ---- futexes ------------------------------------------------------------------- */

static void futex_wait(const uint32_t *word, uint32_t value, int64_t wait_ns)
{
    struct timespec timeout = {wait_ns / NS_PER_S, wait_ns % NS_PER_S};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0);
}

static void futex_wake(const uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static uint32_t load(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static bool flag(const bool *flag)
{
    return __atomic_load_n(flag, __ATOMIC_SEQ_CST);
}

static void set_flag(bool *flag, bool value)
{
    __atomic_store_n(flag, value, __ATOMIC_SEQ_CST);
}

/* ---- windows -------------------------------------------------------------------- */

static picoseconds shifted(picoseconds time, picoseconds by)
{
    return time == NEVER ? NEVER : time + by;
}

static struct window shifted_window(const struct window *window, picoseconds by)
{
    return (struct window){.next = shifted(window->next, by),
                           .arrives = shifted(window->arrives, by),
                           .stop = shifted(window->stop, by),
                           .checked = shifted(window->checked, by),
                           .now = shifted(window->now, by),
                           .hold = shifted(window->hold, by),
                           .sent = window->sent,
                           .activity = window->activity,
                           .awaits = shifted(window->awaits, by),
                           .upkeep_period = window->upkeep_period,
                           .last_upkeep = shifted(window->last_upkeep, by),
                           .done = window->done};
}

static void write_event(int fd)
{
    uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof one);
    (void)written; /* it fails only if the event is there already */
}

static bool read_event(int fd)
{
    uint64_t count;
    return read(fd, &count, sizeof count) == sizeof count;
}

/* Lets the other process look at what has changed here, if it sleeps. */
static void ring(const struct exchange *exchange)
{
    struct exchange_side *own = exchange->own, *other = exchange->other;
    __atomic_add_fetch(&own->bell, 1, __ATOMIC_SEQ_CST);
    if (flag(&other->sleeps))
        futex_wake(&own->bell);
    if (flag(&other->polls))
        write_event(exchange->wakes.resume_fd);
}

void exchange_publish(struct exchange *exchange, const struct window *window)
{
    struct exchange_side *own = exchange->own;
    uint32_t turn = own->turn + 1;
    own->window[turn % 2] = shifted_window(window, exchange->epoch);
    __atomic_store_n(&own->turn, turn, __ATOMIC_SEQ_CST);
    ring(exchange);
}

static bool is_behind(uint32_t turn, uint32_t own)
{
    return (int32_t)(turn - own) < 0;
}

bool exchange_wait(struct exchange *exchange, uint32_t more, int64_t wait_ns)
{
    struct exchange_side *own = exchange->own, *other = exchange->other;
    uint32_t bell = load(&other->bell), awaited = own->turn + more;
    if (!is_behind(load(&other->turn), awaited))
        return true;
    set_flag(&own->sleeps, true);
    if (wait_ns > 0 && !flag(&other->wants_room) &&
        !(flag(&other->idle) && exchange->wakes.resume_fd >= 0))
        futex_wait(&other->bell, bell, wait_ns);
    set_flag(&own->sleeps, false);
    return !is_behind(load(&other->turn), awaited);
}

struct window exchange_own(const struct exchange *exchange)
{
    const struct exchange_side *own = exchange->own;
    return shifted_window(&own->window[own->turn % 2], -exchange->epoch);
}

static struct window others_window(const struct exchange *exchange, uint32_t turn)
{
    return shifted_window(&exchange->other->window[turn % 2], -exchange->epoch);
}

struct window exchange_other(const struct exchange *exchange)
{
    return others_window(exchange, exchange->own->turn);
}

/* It is there until this process has published two windows more. */
struct window exchange_other_next(const struct exchange *exchange)
{
    return others_window(exchange, exchange->own->turn + 1);
}

void exchange_ponder(struct exchange *exchange, bool is_idle)
{
    struct exchange_side *own = exchange->own;
    set_flag(&own->pondering, true);
    if (own->idle == is_idle)
        return;
    set_flag(&own->idle, is_idle);
    ring(exchange);
}

void exchange_go_on(struct exchange *exchange)
{
    set_flag(&exchange->own->idle, false);
    set_flag(&exchange->own->pondering, false);
}

void exchange_ask_to_hold(struct exchange *exchange, picoseconds at)
{
    __atomic_store_n(&exchange->own->hold, shifted(at, exchange->epoch), __ATOMIC_SEQ_CST);
}

void exchange_outdate(struct exchange *exchange)
{
    struct exchange_side *own = exchange->own;
    __atomic_store_n(&own->outdated, own->turn, __ATOMIC_SEQ_CST);
}

bool exchange_is_outdated(const struct exchange *exchange, uint32_t more)
{
    uint32_t turn = exchange->own->turn + more;
    return load(&exchange->own->outdated) == turn || load(&exchange->other->outdated) == turn;
}

picoseconds exchange_asked_to_hold(const struct exchange *exchange)
{
    return shifted(__atomic_load_n(&exchange->other->hold, __ATOMIC_SEQ_CST), -exchange->epoch);
}

void exchange_poll(struct exchange *exchange, bool polls)
{
    set_flag(&exchange->own->polls, polls);
}

void exchange_nudge(const struct exchange *exchange)
{
    write_event(exchange->wakes.nudge_fd);
}

bool exchange_is_nudged(const struct exchange *exchange)
{
    return exchange->wakes.nudge_fd >= 0 && read_event(exchange->wakes.nudge_fd);
}

void exchange_take_resume(const struct exchange *exchange)
{
    read_event(exchange->wakes.resume_fd);
}

bool exchange_other_ponders(const struct exchange *exchange)
{
    return flag(&exchange->other->pondering);
}

void exchange_leave(struct exchange *exchange)
{
    set_flag(&exchange->own->left, true);
    ring(exchange);
}

/* In this order: the other publishes its last window before it leaves. */
bool exchange_is_left(struct exchange *exchange)
{
    return flag(&exchange->other->left) && !exchange_wait(exchange, 0, 0);
}

/* ---- room for frames --------------------------------------------------------------- */

void exchange_received(struct exchange *exchange)
{
    struct exchange_side *own = exchange->own;
    if (!flag(&exchange->other->wants_room))
        return;
    __atomic_add_fetch(&own->progress, 1, __ATOMIC_SEQ_CST);
    futex_wake(&own->progress);
}

void exchange_wait_for_room(struct exchange *exchange)
{
    struct exchange_side *own = exchange->own, *other = exchange->other;
    uint32_t progress = load(&other->progress);
    set_flag(&own->wants_room, true);
    ring(exchange);
    futex_wait(&other->progress, progress, ROOM_WAIT_NS);
    set_flag(&own->wants_room, false);
}
