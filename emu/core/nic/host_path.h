/* The path between a NIC and the memory of its messages: PCIe, and a copy engine if the NIC
 * cannot reach the memory itself (host-staged).
 *
 *     program ── doorbell ─▶ NIC ── read ──▶ memory         data leaves at the path's rate
 *     program ◀─ completion ─ NIC ── write ─▶ memory        and comes in at it (rx_throttle.h)
 *
 * The engine copies a staged message in pieces. The first piece must be copied before the message
 * can leave. At the receiver the last piece is copied after all have arrived. Copying the pieces
 * between takes no extra time. */
#ifndef EMU_NIC_HOST_PATH_H
#define EMU_NIC_HOST_PATH_H

#include "nic/nic_api.h"
#include "sim/clock.h"

/* From the posting of a message until the NIC has its first byte. A fetch has none; inline data
 * comes with the doorbell. */
picoseconds host_path_before(const struct host_path *path, uint32_t length, bool fetches);

/* From a message's last byte in the NIC until it is in its memory. */
picoseconds host_path_after(const struct host_path *path, uint32_t length);

#endif
