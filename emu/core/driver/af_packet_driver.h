/* The real clock: a fabric driven by CLOCK_MONOTONIC, with AF_PACKET sockets
 * where its cables leave the process and where its switches hand packets to
 * Open vSwitch. Plain prototypes, read by the Python binding.
 *
 * Emulated time is (monotonic time - t0) / slowdown. The core's events happen
 * at their scheduled times; histograms record how much later the driver
 * carried them out. A frame from outside arrives when the kernel stamped
 * it, not when this process woke up.
 *
 * Sockets are made and bound by the caller (they live in other namespaces);
 * the driver only sends and receives on them, and on the TUN devices of hosts that have
 * IP over InfiniBand. */
#ifndef EMU_DRIVER_AF_PACKET_DRIVER_H
#define EMU_DRIVER_AF_PACKET_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fabric;
struct workload;
struct fabric_switch;
struct ipoib;
struct driver;

struct driver *driver_new(struct fabric *fabric, double slowdown, int wake_fd);
void driver_free(struct driver *driver);

/* Adds a socket to receive from and to send to; returns its channel, or -1. With `ring_frames` it
 * receives by a ring of so many frames, if the kernel has memory for that. */
int driver_add_channel(struct driver *driver, int fd, uint32_t ring_frames);
/* The cable end `index` is network interface `ifindex` on that channel. `paced`: the sender
 * keeps to the cable's rate. */
bool driver_attach_end(struct driver *driver, int channel, int ifindex, uint32_t index, bool paced);
/* Packets of the switch's port `number` reach the external datapath by network interface
 * `ifindex`. */
bool driver_attach_datapath(struct driver *driver, int channel, int ifindex,
                            struct fabric_switch *sw, uint32_t number);
/* Packets between the switch's port `number` and the switch's control plane are on network
 * interface `ifindex`. All ports of a switch that has one are to be attached, before the run.
 * `class`: that of packets which it sends. */
bool driver_attach_cpu(struct driver *driver, int channel, int ifindex, struct fabric_switch *sw,
                       uint32_t number, uint32_t class);
/* The IP interface sends and receives its packets on the TUN device `fd`, which does not block. */
bool driver_add_tun(struct driver *driver, int fd, struct ipoib *ipoib);
/* The size of a row of `curves`. */
size_t driver_curves_bytes(void);
/* Memory that the eBPF program reads, with a row for each switch port, by its index: `depths` has 8
 * queue depths in a row, in bytes; `curves` has a struct wred_curves (wred.h). */
void driver_set_marker(struct driver *driver, uint32_t *depths, void *curves);

/* Set-up only, before anything is attached: the queues are in the external datapath, so a frame is
 * never late when it returns from there. */
void driver_queue_outside(struct driver *driver);
/* driver_run returns DRIVER_FINISHED when the flag is true, or the workload has ended. */
void driver_set_finished(struct driver *driver, const bool *finished);
void driver_set_workload(struct driver *driver, struct workload *workload);

/* How driver_run ends; a negative value is an errno. */
enum driver_outcome { DRIVER_WOKEN, DRIVER_FINISHED, DRIVER_PAUSED, DRIVER_GOES_ON };

/* Runs from t0 (monotonic ns, may be in the future) on, until wake_fd is readable, the
 * workload has ended, or `until_ns` (monotonic) is reached; then call it again. */
int driver_run(struct driver *driver, int64_t t0_ns, int64_t until_ns);

/* A histogram of lateness. which: 0 how late frames left, 1 how late they were taken in from a
 * cable, 2 how late they came back from the external datapath, 3 how long it kept them; 1024
 * buckets, see latency_histogram.h. */
void driver_histogram(const struct driver *driver, int which, uint64_t *buckets);
/* What happened in each interval of wall-clock time since t0: 1024 rows, each with the members of a
 * struct interval (latency_histogram.h), times in ns. Returns the length of an interval in ns; 0:
 * nothing was recorded. */
int64_t driver_timeline(const struct driver *driver, int64_t *rows);
/* Frames lost so far, for each value of enum loss (latency_histogram.h). A frame can lose its place
 * because the kernel has one queue for each processor for what arrives on virtual cables: when a
 * sender moves to another processor, its later frames can overtake its earlier ones. Reads the drop
 * counts of all sockets, so that the timeline has them afterwards. */
void driver_lost(struct driver *driver, uint64_t *frames);
uint64_t driver_frames_sent(const struct driver *driver);
uint64_t driver_frames_received(const struct driver *driver);

#endif
