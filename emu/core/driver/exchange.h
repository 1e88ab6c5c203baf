/* What the two processes of a lab on the exact clock tell each other, in shared memory: up to which
 * emulated time each may go on, and the emulated times of the frames on the cables between them.
 *
 *     switches                                     NICs
 *     window 7: runs its events                    window 7: runs its events
 *     publishes its state ──────▶ memory ◀──────── publishes its state
 *     waits for the other's       (futex)          waits for the other's
 *     window 8 ...                                 window 8 ...
 *
 * Time is cut into windows (conservative synchronisation: Chandy and Misra 1979, Bryant 1977;
 * YAWNS, Nicol 1993). After a window, each process publishes when its next event is due. A frame
 * that it sends then arrives at the other process no earlier than that time and the lookahead: the
 * least time from the decision to send a frame to its arrival. So both know how far the next window
 * may reach, whatever the other does in it, and times without events are jumped.
 *
 * A program that posts the NICs' work may take any time for that, after a window that the NICs have
 * not published yet: they ponder. Then the switches may wait for sockets, too, instead of the
 * futex; eventfds wake each process:
 *
 *     nudge     the switches have frames of programs, so the NICs should go on
 *     resume    the NICs have published
 *
 * A fault may change the switches while time stands. Their latest window does not contain the new
 * events, so it is outdated: in it, time passes in neither process. Both publish the next window,
 * which contains them.
 *
 * The frames themselves travel on network interfaces. For each frame, its times are in a ring of
 * the cable's direction, in the order in which frames enter the interface. */
#ifndef EMU_DRIVER_EXCHANGE_H
#define EMU_DRIVER_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/fabric_api.h"
#include "driver/exact_driver.h"
#include "sim/cache_line.h"
#include "sim/clock.h"

enum { STAMPS = 256 };

/* A frame on its way from one process to the other. */
struct stamp {
    picoseconds start;   /* its first bit leaves */
    picoseconds tail_at; /* its last bit arrives */
    picoseconds due_at;  /* the far end handles it */
    uint64_t id;
    uint32_t digest; /* of its bytes */
    uint32_t length;
    uint16_t cuts; /* of the line (port.h) */
    uint8_t kind, tc;
    bool corrupt;
    struct exact_head head;
};

/* One direction of a cable. The sender writes `head`, the receiver `tail`. */
struct stamp_ring {
    ON_A_LINE uint32_t head;
    ON_A_LINE uint32_t tail;
    ON_A_LINE struct stamp at[STAMPS];
};

/* The state of a process at the end of a window. */
struct window {
    picoseconds next; /* its next event is due; NEVER: it has none */
    picoseconds
        arrives;      /* the first of the frames that it sent in the window; NEVER: it sent none */
    picoseconds stop; /* the run ends then; NEVER: not known yet */
    picoseconds checked; /* of the NICs: the last end of a step, when the workload had not ended */
    picoseconds now;     /* everything up to this time has happened there */
    picoseconds hold;    /* of the NICs, as the switches have asked: both stand there, or at once if
                            that is past; NEVER */
    uint64_t sent;       /* frames so far */
    enum fabric_activity activity; /* if programs post the NICs' work */
    /* At rest: its next event besides credit updates (NEVER: it has none); the time after which
     * these repeat themselves (NEVER: they do not), and when the last of those is due that are on
     * their way or set. */
    picoseconds awaits, upkeep_period, last_upkeep;
    bool done; /* it has reached the end */
};

struct exchange_side {
    ON_A_LINE uint32_t turn;           /* how many windows it has published */
    uint32_t bell;                     /* changes when the other should look; a futex */
    bool sleeps;                       /* it waits for the other's bell */
    bool polls;                        /* it waits for the eventfd `resume` */
    ON_A_LINE uint32_t progress;       /* changes when it has received frames; a futex */
    bool wants_room;                   /* it cannot send before the other receives frames */
    ON_A_LINE struct window window[2]; /* by turn */
    picoseconds lookahead;             /* of the frames that it sends */
    picoseconds hold;                  /* of the switches: for the next window of the NICs */
    uint32_t outdated;                 /* of the switches: the number of the outdated window */
    bool pondering;                    /* a program decides what it does next, ... */
    bool idle;                         /* ... for which it may take hours */
    bool left;                         /* it publishes no more windows */
};

struct exchange_memory {
    picoseconds epoch; /* the switches' time at which that of the NICs begins */
    struct exchange_side side[2];
    struct stamp_ring ring[]; /* for each cable: from the switches, from the NICs */
};

/* Times in the memory are those of the switches; the functions here convert those of windows. */
struct exchange {
    struct exchange_memory *memory;
    picoseconds epoch; /* what this process adds to its times */
    size_t size;
    struct exchange_side *own, *other;
    unsigned side;            /* of this process: 0 or 1 */
    struct exact_wakes wakes; /* -1: none */
};

size_t exchange_bytes(uint32_t cables);
/* Maps the memory. False when that fails. */
bool exchange_open(struct exchange *exchange, int fd, uint32_t cables, unsigned side);
void exchange_close(struct exchange *exchange);

/* The rings of a cable for the frames that this process sends, and for those that it receives. */
struct stamp_ring *exchange_sends(const struct exchange *exchange, uint32_t cable);
struct stamp_ring *exchange_receives(const struct exchange *exchange, uint32_t cable);

/* Publishes the state at the end of a window, and wakes the other process if it waits for it. */
void exchange_publish(struct exchange *exchange, const struct window *window);
/* Waits until the other process has published so many windows more than this one. False after
 * `wait_ns`, when it wants this process to receive frames, or when it is idle. */
bool exchange_wait(struct exchange *exchange, uint32_t more, int64_t wait_ns);
/* The next window takes as long as a program takes to decide what this process does. */
void exchange_ponder(struct exchange *exchange, bool is_idle);
void exchange_go_on(struct exchange *exchange);
bool exchange_other_ponders(const struct exchange *exchange);
/* Of the switches: asks the NICs to stand then. Both know it from the next window of the NICs. */
void exchange_ask_to_hold(struct exchange *exchange, picoseconds at);
/* Of the switches, while both stand or the NICs ponder: the latest window is outdated. */
void exchange_outdate(struct exchange *exchange);
/* Whether a window is outdated, of either process: `more` windows after this one's latest. */
bool exchange_is_outdated(const struct exchange *exchange, uint32_t more);
/* Of the NICs: when they should stand. */
picoseconds exchange_asked_to_hold(const struct exchange *exchange);
/* Whether this process waits for the eventfd `resume`, which the other then writes. */
void exchange_poll(struct exchange *exchange, bool polls);
/* Writes, and reads, the eventfds. */
void exchange_nudge(const struct exchange *exchange);
bool exchange_is_nudged(const struct exchange *exchange);
void exchange_take_resume(const struct exchange *exchange);
/* Tells the other process that there will be no more windows. */
void exchange_leave(struct exchange *exchange);
/* Whether the other process has left before the window that this one waits for. */
bool exchange_is_left(struct exchange *exchange);
/* The state of this process, and of the other, at the end of the latest window of this process. */
struct window exchange_own(const struct exchange *exchange);
struct window exchange_other(const struct exchange *exchange);
/* That of the other one window later. */
struct window exchange_other_next(const struct exchange *exchange);

/* Frames have been received: wakes the other process if it waits for room. */
void exchange_received(struct exchange *exchange);
/* Waits, not long, until the other process has received some frames. */
void exchange_wait_for_room(struct exchange *exchange);

static inline uint32_t ring_count(const struct stamp_ring *ring)
{
    return __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) -
           __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
}

/* The ring must have room. */
static inline void ring_put(struct stamp_ring *ring, const struct stamp *stamp)
{
    ring->at[ring->head % STAMPS] = *stamp;
    __atomic_store_n(&ring->head, ring->head + 1, __ATOMIC_RELEASE);
}

/* The stamp at this place, from 0, of those in the ring. */
static inline const struct stamp *ring_at(const struct stamp_ring *ring, uint32_t place)
{
    return &ring->at[(ring->tail + place) % STAMPS];
}

/* The sender may send so many frames more. */
static inline void ring_pop(struct stamp_ring *ring, uint32_t count)
{
    __atomic_store_n(&ring->tail, ring->tail + count, __ATOMIC_RELEASE);
}

#endif
