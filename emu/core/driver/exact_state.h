/* The state of a process's part of a lab on the exact clock, and what its files call of each other:
 *
 *     exact_run.c        windows and the loop
 *     exact_frames.c     frames to and from the other process
 *     exact_datapath.c   packets through Open vSwitch, and the marker
 *     exact_set_up.c     memory, sockets, interfaces */
#ifndef EMU_DRIVER_EXACT_STATE_H
#define EMU_DRIVER_EXACT_STATE_H

#include "api/fabric.h"
#include "driver/channel.h"
#include "driver/exact_driver.h"
#include "driver/exchange.h"
#include "driver/external_marker.h"
#include "driver/walltime.h"

enum {
    EXACT_EVENTS = 64, /* that one wait returns at most */
    EXACT_COPIES_BYTES = 1 << 20,
};

#define WAIT_NS (NS_PER_S / 20)
/* How long the switches wait for a program before they say that time stands. */
#define PONDER_NS (NS_PER_S / 500)
/* How long a frame is on the way at most, unless it never arrives. Picoseconds. */
#define EXACT_SETTLES (10 * INT64_C(1000000000))

/* A network interface. */
struct attachment {
    struct channel *channel;
    struct sockaddr_ll address;
    uint32_t index; /* of the port that the frames sent here come from */
    /* A cable to the other process. `end` stands in for the port there. */
    struct port *end;
    uint32_t cable;
    struct stamp_ring *sends, *receives; /* NULL: there is no other process */
    uint32_t room;
    uint64_t received; /* frames */
    uint32_t taken;    /* of these, frames whose slots of the socket's ring are not released yet */
    /* Or a port of a switch with an external datapath. */
    struct fabric_switch *sw;
    uint32_t number;
    uint32_t in_datapath; /* room that its packets take there */
};

struct exact_driver {
    struct fabric *fabric;
    struct exact_patience patience;
    enum exact_side side;
    struct exchange exchange;
    picoseconds step, limit, stop, arrives;
    picoseconds hold;       /* of the switches: as exact_hold has it */
    bool hold_is_new;       /* the NICs were not nudged since */
    picoseconds idle_after; /* frames that are still on the way then never arrive */
    picoseconds
        runs_on_until; /* of the switches: up to this time, also without frames on the way */
    const bool *links_changed; /* a change of links stops exact_run; NULL: it does not */
    const bool *event;         /* of NICs: as exact_stop_at_event has it; NULL: no program posts */
    picoseconds event_at;      /* at the latest */
    bool unpublished;          /* the latest window, because the program may still post work */
    bool ponders;              /* the program may post work now */
    uint64_t order_left;       /* of the clock, when the program's turn began */
    uint32_t nudged;           /* the turn in which the NICs were nudged */
    bool stands;               /* both processes stand at the end of the latest window */
    uint32_t stood;            /* the turn of which exact_run has reported that */
    picoseconds checked;       /* the last end of a step; the workload had not ended then */
    struct workload *workload; /* NULL: it is in the other process */
    bool started, done;
    int epoll_fd, wake_fd;
    struct channel **channels;
    uint32_t channel_count, channel_room;
    struct attachment **by_index; /* by port index; of a cable: that of the end */
    struct attachment **cables;
    uint32_t attached_cables;
    uint64_t received;
    uint32_t in_datapath;
    uint8_t *copies; /* of frames that are to be sent */
    uint32_t copied;
    struct frame_list foreign; /* to be delivered at the beginning of the next window */
    uint32_t foreign_waiting, foreign_announced; /* the latter in the latest window */
    struct external_marker marker;
    uint32_t *marker_ifindex; /* by port index */
    struct exact_counts counts;
    bool has_failed;
    struct exact_failure failure;
    struct rx_frame inbox[RECEIVE_BATCH];
    struct receive_room receive_room;
};

/* The run has failed. The first failure counts. */
void exact_fail(struct exact_driver *driver, struct exact_failure failure);

/* exact_frames.c: what is known of a frame when it fails. */
struct exact_head exact_head_of(const struct frame *frame);
/* Queues a frame for an interface, and sends all that are queued. */
void exact_enqueue(struct exact_driver *driver, struct attachment *to, const struct frame *frame);
void exact_flush(struct exact_driver *driver);
/* A frame begins its way on a cable to the other process (fabric.h). */
void exact_departed(void *owner, struct port *end, const struct frame *frame, picoseconds start);
/* Takes in all frames that are there. */
void exact_drain(struct exact_driver *driver);
/* Waits, not long, for frames. */
void exact_wait_for_frames(const struct exact_driver *driver);
/* Takes in frames until so many have come from the other process since the start. */
void exact_receive_sent(struct exact_driver *driver, uint64_t sent);

/* exact_datapath.c: a packet came back. */
void exact_take_from_datapath(struct exact_driver *driver, const struct attachment *from,
                              const struct rx_frame *rx);

/* The port of this process on the cable of `end`. */
static inline struct port *exact_near_end(const struct port *end)
{
    struct port *near = end->line.far;
    while (near->outside) /* faults of the cable */
        near = near->line.far;
    return near;
}

/* exact_run.c: whether there is another process. */
static inline bool exact_has_joined(const struct exact_driver *driver)
{
    return driver->exchange.memory != NULL;
}

/* exact_set_up.c: an interface on a channel, for the port of this index; NULL: no memory. */
struct attachment *exact_attach(struct exact_driver *driver, int channel, int ifindex,
                                uint32_t index);

#endif
