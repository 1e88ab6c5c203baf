/* The way between a NIC and the memory of its messages: PCIe, and where the memory is a
 * GPU's and the NIC cannot reach it (host-staged), a copy engine beside.
 *
 *     program ── doorbell ─▶ NIC ── read ──▶ memory         data leaves at the path's rate
 *     program ◀─ completion ─ NIC ── write ─▶ memory        and comes in at it (rx_throttle.h)
 *
 * Staged messages are copied in pieces: the first must be there before a message can
 * leave, and the last is copied when all have come; those between go along. */
#ifndef EMU_NIC_HOST_PATH_H
#define EMU_NIC_HOST_PATH_H

#include "nic/nic_api.h"
#include "sim/clock.h"

/* From the posting of a message until the NIC has its first byte. A fetch has none; inline data
 * comes with the doorbell. */
picoseconds host_path_before(const struct host_path *path, uint32_t length, bool fetches);

/* From a message's last byte in the NIC until it is where it belongs. */
picoseconds host_path_after(const struct host_path *path, uint32_t length);

#endif
