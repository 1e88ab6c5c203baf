/* A set of switches, NICs and cable ends: the whole fabric on the virtual clock, or what one
 * process of a lab has. On the virtual clock it may be cut into parts, each with a clock of its
 * own; a lab's process has one. */
#ifndef EMU_API_FABRIC_H
#define EMU_API_FABRIC_H

#include "api/fabric_api.h"
#include "api/mail_bytes.h"
#include "api/processes_api.h"
#include "api/windows.h"
#include "fault/fault.h"
#include "link/tap.h"
#include "observe/deadlock.h"
#include "observe/sampler.h"
#include "sim/rng.h"
#include "switch/switch.h"

/* The end of a cable whose node is in another process. */
struct cable_end {
    struct port port;
    uint64_t backlog_discard; /* frames from outside that were dropped: too many waited */
    bool cut_through;         /* it stands in for a port of a cut-through switch */
};

/* A part of the fabric, and what is recorded there. */
struct fabric_part {
    struct part part;
    struct tap tap;
    struct sampler sampler;
    struct faults faults;
    uint64_t lossless_dropped; /* packets that exceeded the headroom of a switch */
};

struct fabric {
    struct arena arena; /* memory for switches, ports, NICs and their initial state */
    struct rng rng;
    struct fabric_part *parts;
    struct part **part_list;
    uint32_t part_count;
    uint32_t own_first, own_count; /* parts that this process runs: all, or see fabric_take_parts */
    struct windows *windows;       /* NULL: one part, which runs by itself */
    struct mail_reader readers[MAIL_KINDS];
    struct packet_of_mail *packets; /* for each process; NULL: one process runs all parts */
    const uint32_t *first_parts;    /* of each process, and how many parts there are */
    uint32_t process_count, own_process;
    struct deadlock_watch deadlocks;
    struct sample_table samples;
    struct port **ports; /* by index; NULL: no port, or one that another process runs */
    uint32_t port_count;
    struct fabric_switch **switches;
    uint32_t switch_count;
    struct cable_end **ends;
    uint32_t end_count;
    struct nic **nics;
    uint32_t nic_count;
    /* Sends a frame that has reached a cable end, and takes ownership of it. NULL: frames are
     * dropped. */
    void (*emit)(void *driver, struct port *end, struct frame *frame, picoseconds now);
    /* A frame has begun its way to a port that stands in for one of another process. NULL: it gets
     * lost there. */
    void (*departed)(void *driver, struct port *end, const struct frame *frame, picoseconds start);
    void *driver;
};

/* The clock and the frame pool of a fabric in one piece, as a lab's process has it. */
static inline struct clock *fabric_only_clock(const struct fabric *fabric)
{
    assert(fabric->part_count == 1);
    return &fabric->parts[0].part.clock;
}

static inline struct frame_pool *fabric_only_pool(const struct fabric *fabric)
{
    assert(fabric->part_count == 1);
    return &fabric->parts[0].part.pool;
}

/* A part that this process runs. */
static inline struct fabric_part *fabric_own_part(const struct fabric *fabric, uint32_t place)
{
    return &fabric->parts[fabric->own_first + place];
}

/* Whether this process runs the nodes on a clock. */
static inline bool fabric_runs_node(const struct fabric *fabric, struct clock *clock)
{
    return part_of_clock(clock)->number - fabric->own_first < fabric->own_count;
}

/* Of mail to other processes. */
void fabric_free_packets(struct fabric *fabric);

/* While nothing but credit updates happens, everything repeats after this time; NEVER: never, or
 * there are no such updates. */
picoseconds fabric_upkeep_period(const struct fabric *fabric);
/* Lets `span` pass, a multiple of the period, as if that had happened: see clock_skip. */
void fabric_skip(struct fabric *fabric, picoseconds span);

/* A frame came from outside at the cable end `index`. False when the frame was dropped. If it is
 * longer than a frame of the pool, only so many bytes have to be stored at `bytes`. */
bool fabric_input(struct fabric *fabric, uint32_t index, uint8_t kind, const uint8_t *bytes,
                  uint32_t length, picoseconds now);

#endif
