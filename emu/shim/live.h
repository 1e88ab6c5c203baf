/* The real clock: a fabric driven by CLOCK_MONOTONIC, with AF_PACKET sockets
 * where its cables leave the process and where its switches hand packets to
 * Open vSwitch. Plain prototypes, read by the Python binding.
 *
 * Emulated time is (monotonic time - t0) / slowdown. The core's events happen
 * at their scheduled times; how much later the driver really got to them is
 * recorded in the ledger. A frame from outside arrives when the kernel stamped
 * it, not when this process woke up.
 *
 * Sockets are made and bound by the caller (they live in other namespaces);
 * the driver only sends and receives on them, and on the TUN devices of hosts that have
 * IP over InfiniBand. */
#ifndef EMU_LIVE_H
#define EMU_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fabric;
struct fabric_switch;
struct ipoib;
struct live;

struct live *live_new(struct fabric *fabric, double slowdown, int wake_fd);
void live_free(struct live *live);

/* A socket to receive from and send by; returns its channel, or -1. With `ring_frames`
 * it receives by a ring of so many frames, if the kernel has memory for that. */
int live_add_channel(struct live *live, int fd, uint32_t ring_frames);
/* The cable end `index` is network interface `ifindex` on that channel. `paced`: who sends there
 * keeps to the cable's rate. */
bool live_attach_end(struct live *live, int channel, int ifindex, uint32_t index, bool paced);
/* Port `number` of the switch is `ifindex`: its packets are forwarded there. */
bool live_attach_plane(struct live *live, int channel, int ifindex, struct fabric_switch *sw,
                       uint32_t number);
/* The IP interface's packets come and go by the TUN device `fd`, which does not block. */
bool live_add_tun(struct live *live, int fd, struct ipoib *ipoib);
/* Memory that the eBPF program reads, by port index of the switches: the depth board, 8 queues a
 * row, and the curves by which it marks, a row of which has so many bytes (wred.h). */
size_t live_curves_bytes(void);
void live_set_marker(struct live *live, uint32_t *depths, void *curves);

/* Before anything is attached: queues stand in the outer plane, so a frame is on time whenever
 * it returns from there. */
void live_queue_outside(struct live *live);
/* live_run returns LIVE_FINISHED when the flag is true. */
void live_set_finished(struct live *live, const bool *finished);

/* How live_run ends; a negative value is an errno. */
enum live_outcome { LIVE_WOKEN, LIVE_FINISHED, LIVE_PAUSED, LIVE_GOES_ON };

/* Runs from t0 (monotonic ns, may lie ahead) on, until wake_fd is readable, the
 * workload is finished, or `until_ns` (monotonic) is reached; then call it again. */
int live_run(struct live *live, int64_t t0_ns, int64_t until_ns);

/* The ledger. which: 0 how late frames left, 1 how late they were taken in from a cable, 2 how
 * late they came back from the forwarding plane, 3 how long the plane kept them; 1024 buckets,
 * see ledger.h. */
void live_histogram(const struct live *live, int which, uint64_t *buckets);
/* What happened in each interval of wall-clock time since t0: 1024 rows of how late a frame was
 * at most (all ways of being late together), how long the plane kept one at most, both in ns, and
 * of the frames lost in each way and of the lossless packets that headroom did not hold, see
 * ledger.h. Returns the interval in ns; 0: nothing happened. */
int64_t live_timeline(const struct live *live, int64_t *rows);
/* Frames lost so far, in each way: by the forwarding plane, or before it for want of room; as a
 * socket's buffer or ring was full; as the kernel refused them; and those that lost their place to
 * later ones of the same sender: the kernel queues what a virtual cable brings by the processor of
 * its sender, so one that is moved can overtake itself. Looks at all sockets, so that what it finds
 * is in the timeline afterwards.
 */
void live_lost(struct live *live, uint64_t *frames);
uint64_t live_frames_sent(const struct live *live);
uint64_t live_frames_received(const struct live *live);

#endif
