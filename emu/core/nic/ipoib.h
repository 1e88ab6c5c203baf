/* IP over InfiniBand: the interface between a host's IP and its NIC. Plain
 * declarations, read by the Python binding.
 *
 * It does no I/O. Its driver copies packets from the host's kernel into `ipoib_room`, and packets
 * for the kernel out of `ipoib_received`. */
#ifndef EMU_NIC_IPOIB_H
#define EMU_NIC_IPOIB_H

#include <stdbool.h>
#include <stdint.h>

struct nic;
struct ipoib;

struct ipoib_config {
    uint32_t mtu; /* bytes of IP packets: an RDMA MTU less IPoIB's 4 */
    uint32_t qkey;
};

/* Set-up only; uses one of the NIC's queue pairs and one of its regions. The NIC's port must be
 * connected. NULL: too few queue pairs or regions, too little memory, or a wrong MTU. */
struct ipoib *ipoib_new(struct nic *nic, const struct ipoib_config *config);
void ipoib_free(struct ipoib *ipoib);

/* Its queue pair's number: half of its hardware address. */
uint32_t ipoib_qpn(const struct ipoib *ipoib);

/* Set-up only: the IPv4 address `ip` is that queue pair at that LID, reached at service level
 * `sl`. Neighbours come in order of their addresses. False: no memory. */
bool ipoib_add_neighbour(struct ipoib *ipoib, uint32_t ip, uint32_t lid, uint32_t qpn, uint8_t sl);

/* Room for the next packet from the host: its MTU and one byte more, which shows that a packet is
 * too long. NULL: wait until the NIC has sent some. */
uint8_t *ipoib_room(struct ipoib *ipoib, uint32_t *bytes);
/* The room holds a packet of `length` bytes now. It is sent, or counted as dropped. */
void ipoib_send(struct ipoib *ipoib, uint32_t length, int64_t now_ps);

/* The oldest packet for the host; NULL: none. It stays until ipoib_taken. */
const uint8_t *ipoib_received(struct ipoib *ipoib, uint32_t *length, int64_t now_ps);
/* The host has taken the oldest packet, or refused it. */
void ipoib_taken(struct ipoib *ipoib, bool delivered, int64_t now_ps);

#endif
