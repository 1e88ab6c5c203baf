/* A host's ib0: a TUN device, by which its kernel hands IP packets over to the NIC and
 * gets those that came. The device is opened by the caller, without blocking. */
#ifndef EMU_DRIVER_TUN_H
#define EMU_DRIVER_TUN_H

#include "nic/ipoib.h"
#include "sim/clock.h"

struct tun {
    int fd;
    bool readable; /* there may be packets in the kernel's queue */
    struct ipoib *ipoib;
};

/* Hands the kernel's packets to the NIC, as many as there are and it has room for. */
void tun_read(struct tun *tun, picoseconds now);
/* Hands the packets that have arrived to the kernel. */
void tun_write(struct tun *tun, picoseconds now);

#endif
