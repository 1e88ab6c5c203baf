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
                           .done = window->done};
}

void exchange_publish(struct exchange *exchange, const struct window *window)
{
    struct exchange_side *own = exchange->own;
    uint32_t turn = own->turn + 1;
    own->window[turn % 2] = shifted_window(window, exchange->epoch);
    __atomic_store_n(&own->turn, turn, __ATOMIC_SEQ_CST);
    if (flag(&exchange->other->sleeps))
        futex_wake(&own->turn);
}

static bool is_behind(uint32_t turn, uint32_t own)
{
    return (int32_t)(turn - own) < 0;
}

bool exchange_wait(struct exchange *exchange, int64_t wait_ns)
{
    struct exchange_side *own = exchange->own, *other = exchange->other;
    uint32_t turn = load(&other->turn);
    if (!is_behind(turn, own->turn))
        return true;
    set_flag(&own->sleeps, true);
    if (!flag(&other->wants_room))
        futex_wait(&other->turn, turn, wait_ns);
    set_flag(&own->sleeps, false);
    return !is_behind(load(&other->turn), own->turn);
}

struct window exchange_own(const struct exchange *exchange)
{
    const struct exchange_side *own = exchange->own;
    return shifted_window(&own->window[own->turn % 2], -exchange->epoch);
}

struct window exchange_other(const struct exchange *exchange)
{
    const struct exchange_side *other = exchange->other;
    return shifted_window(&other->window[exchange->own->turn % 2], -exchange->epoch);
}

void exchange_ponder(struct exchange *exchange, bool ponders)
{
    set_flag(&exchange->own->pondering, ponders);
}

bool exchange_other_ponders(const struct exchange *exchange)
{
    return flag(&exchange->other->pondering);
}

void exchange_leave(struct exchange *exchange)
{
    set_flag(&exchange->own->left, true);
    futex_wake(&exchange->own->turn);
}

/* In this order: the other publishes its last window before it leaves. */
bool exchange_is_left(struct exchange *exchange)
{
    return flag(&exchange->other->left) && !exchange_wait(exchange, 0);
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
    if (flag(&other->sleeps))
        futex_wake(&own->turn);
    futex_wait(&other->progress, progress, ROOM_WAIT_NS);
    set_flag(&own->wants_room, false);
}
