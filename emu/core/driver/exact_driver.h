/* The exact clock: a fabric in two processes of a lab, switches in one and NICs in the other, whose
 * emulated time waits for the frames between them. Plain prototypes, read by the Python binding.
 *
 * Frames travel on network interfaces as on the real clock (af_packet_driver.h), for as long as
 * that takes. Their emulated times travel beside them (exchange.h), so that everything happens at
 * the same emulated time as on the virtual clock. A frame that the machine loses, changes or
 * overtakes ends the run.
 *
 * Sockets are made and bound by the caller, as for the real clock. */
#ifndef EMU_DRIVER_EXACT_DRIVER_H
#define EMU_DRIVER_EXACT_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fabric;
struct fabric_switch;
struct exact_driver;
struct workload;

enum exact_side { EXACT_SWITCHES, EXACT_NICS };

/* How long to wait, on the wall clock: what has not come by then never comes. */
struct exact_patience {
    int64_t frame_ns; /* for a frame or packet that was sent */
    int64_t other_ns; /* for the other process to make progress */
};

/* Eventfds that wake the processes while a program decides what the NICs do next; -1: none, then
 * the switches take frames of programs 50 ms late. */
struct exact_wakes {
    int nudge_fd;  /* readable: the NICs should call exact_run; that reads it */
    int resume_fd; /* readable: the switches should call exact_run */
};

/* The size of the memory that both processes share, cleared, for so many cables between them. */
size_t exact_memory_bytes(uint32_t cables);

/* A process with up to so many cables to the other. A run ends with the step of `step_ps` in which
 * the workload ends. NULL: no memory. */
struct exact_driver *exact_new(struct fabric *fabric, enum exact_side side, uint32_t cables,
                               int64_t step_ps, int wake_fd, struct exact_patience patience);
void exact_free(struct exact_driver *driver);

/* Adds a socket that receives by a ring of so many frames; returns its channel, or -1. */
int exact_add_channel(struct exact_driver *driver, int fd, uint32_t ring_frames);
/* The cable end `index` is network interface `ifindex` on that channel. `cable`: its number in both
 * processes, from 0. `room`: how many of the frames that this process sends may be on the way at a
 * time. */
bool exact_attach_end(struct exact_driver *driver, int channel, int ifindex, uint32_t index,
                      uint32_t cable, uint32_t room);
/* Packets of the switch's port `number` reach the external datapath by network interface
 * `ifindex`. All cables must be connected. */
bool exact_attach_datapath(struct exact_driver *driver, int channel, int ifindex,
                           struct fabric_switch *sw, uint32_t number);
/* The eBPF program marks what joins the queues of these ports: `indices` of ports with
 * `ifindices`, the numbers by which the program knows them. `depths` has 8 queue depths for each
 * port index; `curves` has a struct wred_curves (wred.h). */
void exact_set_marker(struct exact_driver *driver, int program_fd, uint32_t *depths, void *curves,
                      const uint32_t *indices, const uint32_t *ifindices, uint32_t ports);
/* The workload whose end ends the run; in the process of the NICs. */
void exact_set_workload(struct exact_driver *driver, struct workload *workload);

/* Joins the other process, by the memory that both share, for one run, which ends at `limit_ps` at
 * the latest. All cables must be attached. The NICs' time 0 is the present time of the switches,
 * which must join first. The caller keeps the descriptors, and those of `wakes` open. */
bool exact_join(struct exact_driver *driver, int memory_fd, struct exact_wakes wakes,
                int64_t limit_ps);
/* Leaves the other process, at the end of the run or before. The switches can run on alone, and be
 * joined by other NICs. */
void exact_leave(struct exact_driver *driver);

/* Of the switches: emulated time stands in both processes at `at_ps`, or as soon as possible if
 * that is past; INT64_MAX: it runs on. */
void exact_hold(struct exact_driver *driver, int64_t at_ps);

/* Of the switches: to be called after they were changed, as by a fault, while emulated time is to
 * stand. What they published before does not count then. */
void exact_changed(struct exact_driver *driver);

/* Of the switches: exact_run returns EXACT_LINKS_CHANGED at the instant at which a link goes down
 * or comes back (fabric_links_changed), before any later event. */
void exact_stop_at_link_changes(struct exact_driver *driver);
/* Of NICs whose work a program posts: exact_run returns EXACT_EVENT at `until_ps`, or at the
 * instant at which `event` becomes true, before any later event. INT64_MAX: the program waits for
 * nothing but `event`; then exact_run returns EXACT_IDLE as soon as that will not come by itself.
 * After both outcomes, and EXACT_STANDS, emulated time stands, and the program may post work, and
 * take any time for that: the other process learns only with the next exact_run what the NICs do
 * next. Without new work, frames of programs, another `until_ps` or exact_hold, that is EXACT_IDLE
 * or EXACT_STANDS at the same time again. */
void exact_stop_at_event(struct exact_driver *driver, const bool *event, int64_t until_ps);
/* Of the switches: emulated time runs on up to `until_ps` at least, alone or beside programs, also
 * without frames on the way. */
void exact_run_on(struct exact_driver *driver, int64_t until_ps);
/* Returns when the external datapath has given all packets back, or the run has failed. */
void exact_empty_datapath(struct exact_driver *driver);

/* How exact_run ends. */
enum exact_outcome {
    EXACT_WOKEN,         /* wake_fd is readable */
    EXACT_FINISHED,      /* the run is over, in both processes */
    EXACT_PAUSED,        /* `until_ns` has passed, or captures want to be removed */
    EXACT_FAILED,        /* exact_failed says why */
    EXACT_STANDS,        /* emulated time stands by exact_hold; or, of the switches, while a program
                            decides what the NICs do, or alone with nothing on the way */
    EXACT_LINKS_CHANGED, /* exact_stop_at_link_changes; call fabric_links_changed before it again */
    EXACT_EVENT,         /* exact_stop_at_event */
    EXACT_IDLE,          /* the same; nothing is left to happen in either process */
};

/* Runs until one of these, with `until_ns` on CLOCK_MONOTONIC; then call it again. Switches alone
 * run on while there are frames on the way, or up to the time of exact_hold. If they stand, they
 * should be called again when a socket, wake_fd or resume_fd is readable. */
enum exact_outcome exact_run(struct exact_driver *driver, int64_t until_ns);

enum exact_failure_kind {
    EXACT_FRAME_LOST,       /* a frame did not come in */
    EXACT_FRAME_CHANGED,    /* one that was not sent came in its place */
    EXACT_FRAME_OVERTAKEN,  /* a later one came in its place: it is lost, or late */
    EXACT_FRAME_REFUSED,    /* the kernel did not send it */
    EXACT_LOST_IN_DATAPATH, /* the external datapath did not give a packet back */
    EXACT_POOL_EXHAUSTED,   /* there was no memory for a frame that came in */
    EXACT_NO_MARKER,        /* the kernel did not run the marker */
    EXACT_OTHER_LEFT,       /* the other process has ended the run */
    EXACT_OTHER_SILENT,     /* the other process has made no progress for a long time */
};

/* The first bytes of a frame, which hold its headers up to the BTH. */
enum { EXACT_HEAD = 64 };
struct exact_head {
    uint8_t bytes[64]; /* EXACT_HEAD */
    uint8_t length;
};

struct exact_failure {
    enum exact_failure_kind kind;
    uint32_t index;  /* of a frame on a cable: the port that it was sent by; in the datapath: the
                        port of the switch that it came in by */
    uint64_t number; /* of the frame, from 1, among those of this direction of the cable */
    int64_t at_ps;   /* when it was sent, or came into the switch */
    uint32_t length;
    struct exact_head head; /* empty: not known */
    int error;              /* errno of the kernel's refusal, or 0 */
};

/* Why the run failed. */
struct exact_failure exact_failed(const struct exact_driver *driver);

struct exact_counts {
    uint64_t windows;
    uint64_t sent;     /* frames to the other process */
    uint64_t datapath; /* packets through the external datapath */
    uint64_t marked;   /* frames that the external marker decided about */
    uint64_t foreign;  /* frames that came from outside the emulation: from programs, the kernel */
};

struct exact_counts exact_counted(const struct exact_driver *driver);

#endif
