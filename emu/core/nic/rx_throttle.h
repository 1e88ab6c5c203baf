/* A NIC that receives more slowly than its cable, because its memory is slower (a busy PCIe bus,
 * a cold translation cache; Guo et al., SIGCOMM'16, 4.4). Packets wait in the NIC:
 *
 *     lossless priority   a full buffer pauses the leaf until half of it is free; packets that
 *                         are on the way by then still find room
 *     lossy priority      a full buffer drops packets
 *     InfiniBand          the credit of a packet returns when memory has taken it
 *
 * While a rate is set, the throttle is between the port and the NIC's handler. */
#ifndef EMU_NIC_RX_THROTTLE_H
#define EMU_NIC_RX_THROTTLE_H

#include "link/port.h"

struct rx_throttle {
    struct port *port;
    struct port_handler handler;      /* the port's, while there is a rate, ... */
    const struct port_handler *quick; /* ... and without one */
    struct qos_map qos_map;           /* priorities of what arrives */
    uint64_t rate_bps;                /* 0: at once */
    uint32_t buffer_bytes;
    struct frame_list held;
    uint32_t held_bytes[CLASSES];
    struct timer next;
    uint64_t packets;           /* that have arrived so far */
    uint64_t *waited, *dropped; /* the counters of those that waited, and of those dropped */
};

/* Set-up only. The port must have its handler. */
void rx_throttle_init(struct rx_throttle *throttle, struct port *port, struct qos_map map,
                      uint64_t *waited, uint64_t *dropped);

/* Rate 0 ends the throttling: the NIC receives all waiting packets at once. */
void rx_throttle_set(struct rx_throttle *throttle, uint64_t rate_bps, uint32_t buffer_bytes,
                     picoseconds now);

#endif
