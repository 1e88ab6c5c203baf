#include "driver/tun.h"

#include <unistd.h>

void tun_read(struct tun *tun, picoseconds now)
{
    uint32_t room;
    uint8_t *packet;
    while (tun->readable && (packet = ipoib_room(tun->ipoib, &room))) {
        ssize_t length = read(tun->fd, packet, room);
        if (length > 0)
            ipoib_send(tun->ipoib, (uint32_t)length, now);
        else
            tun->readable = false; /* until the kernel says so again */
    }
}

void tun_write(struct tun *tun, picoseconds now)
{
    uint32_t length;
    const uint8_t *packet;
    while ((packet = ipoib_received(tun->ipoib, &length, now)))
        ipoib_taken(tun->ipoib, write(tun->fd, packet, length) == (ssize_t)length, now);
}
