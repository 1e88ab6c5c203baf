/* A fabric over several processes (mail_bytes.h), as Python sees it: plain prototypes, as in
 * fabric_api.h.
 *
 * Each process builds the same fabric and workload, and calls fabric_take_parts before
 * fabric_sample and fabric_start. Then, in place of fabric_run:
 *
 *     fabric_pack_mail; exchange the packets; fabric_unpack_mail for each one that came
 *     next = the earliest of all processes' next events
 *     fabric_run_window(next + fabric_lookahead - 1), or to the end if that is earlier
 *
 * and so on until `next` is later than the end; then fabric_arrive. */
#ifndef EMU_API_PROCESSES_API_H
#define EMU_API_PROCESSES_API_H

#include "api/fabric_api.h"

/* Of `processes`, this one is number `own`. Process i runs the parts from first_parts[i] up to, and
 * without, first_parts[i + 1]: at least one. `threads`: at most as many as these. False when there
 * is no memory. */
bool fabric_take_parts(struct fabric *fabric, const uint32_t *first_parts, uint32_t processes,
                       uint32_t own, uint32_t threads, const struct workload *workload);
/* Whether this process runs the node of the port with this index. */
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
