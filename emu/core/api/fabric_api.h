/* The fabric as Python sees it: plain prototypes, which the binding reads. Times are emulated
 * picoseconds, sizes bytes, rates bits/s.
 *
 * Order of use: fabric_new, add nodes with their settings, connect, fabric_start; then fabric_run
 * (virtual clock) or a driver (af_packet_driver.h). A set-up call that fails for want of memory
 * returns NULL or false. Every port has an index, chosen by the caller, which must be unique and
 * less than the number of ports given to fabric_new. */
#ifndef EMU_API_FABRIC_API_H
#define EMU_API_FABRIC_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fabric;
struct fabric_switch;
struct clock;
struct nic;
struct nic_config;
struct port_config;
struct switch_config;
struct switch_port_config;
struct workload;
struct fault;
struct fault_config;

/* The largest number of parts. */
enum { FABRIC_PARTS_MAX = 256 };

struct fabric_config {
    uint64_t seed;
    uint32_t ports;
    uint32_t small_frames, large_frames, frame_bytes; /* frame.h */
    uint32_t parts;   /* that the fabric is cut into; 1: it is in one piece */
    uint32_t threads; /* that run them, 1 to `parts` */
};

struct fabric *fabric_new(const struct fabric_config *config);
void fabric_free(struct fabric *fabric);

/* Adds a switch to a part. `ports` has the settings of config->ports ports, which are numbered from
 * 1 and have the indices from first_index on. NULL also when `ports` has a queue discipline or a
 * parameter that does not exist. */
struct fabric_switch *fabric_add_switch(struct fabric *fabric, uint32_t part, uint32_t first_index,
                                        const struct switch_config *config,
                                        const struct switch_port_config *ports);

/* Adds the end of a cable to another process, in part 0. A driver sends and receives its frames. */
bool fabric_add_socket(struct fabric *fabric, uint32_t index, const struct port_config *config);

/* Adds the end of a cable to another process that keeps the same emulated time (exact_driver.h). It
 * stands in for that process's port `index`; `cut_through`: whether it is one of a cut-through
 * switch. Faults of the line out of that port are to be added here. */
bool fabric_add_stand_in(struct fabric *fabric, uint32_t index, const struct port_config *config,
                         bool cut_through);

/* Adds a NIC with one port to a part. The fabric frees it. */
struct nic *fabric_add_nic(struct fabric *fabric, uint32_t part, uint32_t index,
                           const struct nic_config *config);

/* Connects two ports by a cable. If they are in different parts, the fabric is cut here. */
void fabric_connect(struct fabric *fabric, uint32_t index_a, uint32_t index_b, uint64_t rate_bps,
                    int64_t delay_ps);

/* Searches for deadlocks at this interval (deadlock.h). */
bool fabric_watch_deadlocks(struct fabric *fabric, int64_t interval_ps);
uint32_t fabric_deadlocks(const struct fabric *fabric);
/* One deadlock: the indices of the ports in its credit loop, or cyclic buffer dependency; returns
 * how many. */
uint32_t fabric_deadlock(const struct fabric *fabric, uint32_t which, int64_t *found_at_ps,
                         uint8_t *priority, const uint32_t **indices);

/* Captures the frames at a port, in both directions; see tap.h for the records. */
bool fabric_capture(struct fabric *fabric, uint32_t index, size_t ring_bytes);
void fabric_capture_end(struct fabric *fabric, uint32_t index);
/* Another thread than the one that runs the fabric may call these four, after the first capture has
 * begun. Only one thread at a time may remove captures. */
size_t fabric_captured(struct fabric *fabric, const uint8_t **bytes);
void fabric_captured_taken(struct fabric *fabric, size_t size);
uint64_t fabric_captures_missed(const struct fabric *fabric);
uint64_t fabric_captures_missed_at(const struct fabric *fabric, uint32_t index);
/* Whether captures should be removed now. Seven eighths of their memory are left for a step. */
bool fabric_captures_want_out(const struct fabric *fabric);

/* Samples the ports with these indices, and `flows` counters, into `capacity` rows. `flow_parts`:
 * the part in which each counter changes; NULL: part 0. */
bool fabric_sample(struct fabric *fabric, int64_t interval_ps, uint32_t capacity,
                   const uint32_t *indices, uint32_t ports, const uint64_t *flow_bytes,
                   const uint32_t *flow_parts, uint32_t flows);
/* Returns the number of samples. `values` are their rows of `columns` values; `places` are the
 * positions of the rows in order of time. */
uint32_t fabric_samples(const struct fabric *fabric, const int64_t **values,
                        const uint32_t **places, uint32_t *columns);
void fabric_sample_now(struct fabric *fabric);

/* Touches the memory of samples, captures and `frames` frames of either size, so that no page
 * fault delays a run in a lab. */
void fabric_prefault(struct fabric *fabric, uint32_t frames);

void fabric_start(struct fabric *fabric);
/* Runs all events up to `until_ps`. Returns how many. */
uint64_t fabric_run(struct fabric *fabric, int64_t until_ps);
/* The same, but stops at the instant at which `event` becomes true. The fabric is in one piece. */
void fabric_run_to_event(struct fabric *fabric, int64_t until_ps, const bool *event);
/* The same in steps of `step_ps`. Stops also after a step in which the workload has ended, or in
 * which captures filled a good part of their memory. */
void fabric_run_steps(struct fabric *fabric, int64_t until_ps, int64_t step_ps,
                      struct workload *workload);
int64_t fabric_now(const struct fabric *fabric);
int64_t fabric_next_deadline(struct fabric *fabric);
/* The clock of a part. */
struct clock *fabric_clock(struct fabric *fabric, uint32_t part);
/* Whether memory was short for what parts send each other; then the run is worthless. */
bool fabric_out_of_memory(const struct fabric *fabric);

/* How the work of a fabric in parts was spread: its lookahead; windows; events of each part; and,
 * summed over all windows, events of the part that had the most in each. */
struct fabric_balance {
    int64_t lookahead_ps;
    uint64_t windows, busiest_events;
    const uint64_t *events;
};
struct fabric_balance fabric_balance(const struct fabric *fabric);
/* The least time between sending and arriving on all cables that are cut; INT64_MAX: none is. */
int64_t fabric_lookahead(const struct fabric *fabric);

uint64_t fabric_frames_exhausted(const struct fabric *fabric);
uint32_t fabric_frames_in_use(const struct fabric *fabric);

/* What goes on in a fabric if nothing comes from outside. Flow-control packets, faults, samples and
 * what congestion control and watchdogs do periodically do not count. */
enum fabric_activity {
    FABRIC_RESTS,
    FABRIC_WAITS, /* frames are on the way, or NICs wait to send: for ever if they are stuck */
    FABRIC_WORKS, /* something is due at a known time */
};
enum fabric_activity fabric_activity(const struct fabric *fabric);

/* Puts a frame on the cable at port `index` as if its node had sent it now. `kind`: enum
 * frame_kind. False when it is too long or no frame is free. */
bool fabric_inject(struct fabric *fabric, uint32_t index, uint8_t kind, const uint8_t *bytes,
                   uint32_t length);

/* ---- faults (fault_api.h) ---- */

/* A fault at port `index`, on the line out of it, or on its cable to `far_index`. It lives as long
 * as the fabric. NULL when there is no memory, when no such kind or parameter exists, or when the
 * fabric is cut at that cable. */
struct fault *fabric_add_fault(struct fabric *fabric, uint32_t index, uint32_t far_index,
                               const struct fault_config *config);
/* Whether links went down or came back since the previous call, and the time of the last change.
 * The flag is true from such a change until the next call; a driver polls it. */
bool fabric_links_changed(struct fabric *fabric, int64_t *at_ps);
const bool *fabric_links_changed_flag(const struct fabric *fabric);
/* Whether no fault keeps the link at port `index` down. */
bool fabric_link_is_up(const struct fabric *fabric, uint32_t index);

/* All counters of a port (counters.h). */
void fabric_counters(struct fabric *fabric, uint32_t index, int64_t *cells);

/* The present state of one class of a port: bytes in its egress queue; bytes in its ingress buffer;
 * whether the far end has paused it; bytes that its credit allows (InfiniBand). */
uint64_t fabric_queued(const struct fabric *fabric, uint32_t index, uint8_t tc);
uint64_t fabric_held(const struct fabric *fabric, uint32_t index, uint8_t tc);
bool fabric_paused(const struct fabric *fabric, uint32_t index, uint8_t tc);
uint64_t fabric_credit(const struct fabric *fabric, uint32_t index, uint8_t vl);

#endif
