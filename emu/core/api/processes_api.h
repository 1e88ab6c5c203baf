/* A fabric over several processes (mail_bytes.h), as Python sees it: plain prototypes, as in
 * fabric_api.h.
 *
 * Each process builds the nodes that it runs. Of the others there is what these need: the port at
 * the far end of a cable that is cut (fabric_add_far_port), and the far end of a queue pair
 * (qp_connect_far). Indices, numbers and keys are the same in all processes, and so is the
 * workload.
 *
 * Each calls fabric_take_parts before fabric_sample and fabric_start. Then, in place of fabric_run:
 *
 *     fabric_pack_mail; exchange the packets; fabric_unpack_mail for each one that came
 *     next = the earliest of all processes' next events
 *     fabric_run_window(next + lookahead - 1), or to the end if that is earlier
 *
 * and so on until `next` is later than the end; then fabric_arrive. `lookahead` is the least of all
 * processes' fabric_lookahead. */
#ifndef EMU_API_PROCESSES_API_H
#define EMU_API_PROCESSES_API_H

#include "api/fabric_api.h"

/* Adds a port of a node in a part that another process runs. Its cable leads to a node that this
 * process runs. `cut_through`: whether it is one of a cut-through switch. */
bool fabric_add_far_port(struct fabric *fabric, uint32_t part, uint32_t index,
                         const struct port_config *config, bool cut_through);

/* In place of nic_add_region for a NIC that another process runs: returns the key that the region
 * has there. `number`: of the region at its NIC, from 1 on. All processes add all regions in the
 * same order. */
uint32_t fabric_far_key(struct fabric *fabric, uint32_t number);

/* Of `processes`, this one is number `own`. Process i runs the parts from first_parts[i] up to, and
 * without, first_parts[i + 1]: at least one. `threads`: at most as many as these. False when there
 * is no memory. */
bool fabric_take_parts(struct fabric *fabric, const uint32_t *first_parts, uint32_t processes,
                       uint32_t own, uint32_t threads, const struct workload *workload);
/* Whether the port with this index exists, and this process runs its node. */
bool fabric_runs(const struct fabric *fabric, uint32_t index);
/* Packs the mail to each of the others; returns when the next event here is due. */
int64_t fabric_pack_mail(struct fabric *fabric);
/* The packet for a process; returns its size. It is there until mail is packed again. */
size_t fabric_packed_mail(const struct fabric *fabric, uint32_t process, const uint8_t **bytes);
void fabric_unpack_mail(struct fabric *fabric, const uint8_t *bytes);
/* Returns how many events there were. */
uint64_t fabric_run_window(struct fabric *fabric, int64_t until_ps);
void fabric_arrive(struct fabric *fabric, int64_t until_ps);

/* A search for deadlocks by all processes (deadlock.h), when all stand just before its time. It is
 * a sequence of these steps, after each of which the processes combine what deadlock_set or
 * deadlock_places gives: a value for each port, and one for each port and class. */
bool fabric_share_deadlocks(struct fabric *fabric);
uint32_t fabric_deadlock_classes(const struct fabric *fabric);
uint16_t *fabric_deadlock_set(struct fabric *fabric);
uint32_t *fabric_deadlock_places(struct fabric *fabric);
void fabric_deadlock_heads(struct fabric *fabric, uint16_t classes);
void fabric_deadlock_begin(struct fabric *fabric);
void fabric_deadlock_count(struct fabric *fabric);
void fabric_deadlock_strike(struct fabric *fabric);
bool fabric_deadlock_struck(struct fabric *fabric);
void fabric_deadlock_follow(struct fabric *fabric);
void fabric_deadlock_report(struct fabric *fabric, int64_t now_ps);

#endif
