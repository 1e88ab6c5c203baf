#include "driver/ring.h"

#include <linux/if_packet.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "driver/rx_frame.h"
#include "driver/walltime.h"

enum {
    BLOCK_BYTES = 1 << 16, /* slots lie in blocks of contiguous memory, whole ones */
    MAC_ROOM = 16,         /* at least this is kept for link-layer headers */
    BEFORE_FRAME = TPACKET_ALIGN(TPACKET2_HDRLEN + MAC_ROOM) + VLAN_TAG_BYTES,
};

/* The layout is as documented in Documentation/networking/packet_mmap.rst. */
static bool request(int fd, struct ring *ring)
{
    int version = TPACKET_V2, reserve = VLAN_TAG_BYTES;
    struct tpacket_req layout = {
        .tp_block_size = BLOCK_BYTES,
        .tp_block_nr = (ring->slots + ring->slots_per_block - 1) / ring->slots_per_block,
        .tp_frame_size = ring->slot_bytes,
    };
    layout.tp_frame_nr = layout.tp_block_nr * ring->slots_per_block;
    ring->slots = layout.tp_frame_nr;
    ring->size = (size_t)layout.tp_block_nr * BLOCK_BYTES;
    return setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) == 0 &&
           setsockopt(fd, SOL_PACKET, PACKET_RESERVE, &reserve, sizeof reserve) == 0 &&
           setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &layout, sizeof layout) == 0;
}

bool ring_open(struct ring *ring, int fd, uint32_t slots, uint32_t frame_bytes)
{
    *ring = (struct ring){.slots = slots, .slot_bytes = TPACKET_ALIGN(BEFORE_FRAME + frame_bytes)};
    ring->slots_per_block = BLOCK_BYTES / ring->slot_bytes;
    if (!request(fd, ring))
        return false;
    void *memory = mmap(NULL, ring->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory != MAP_FAILED) {
        ring->memory = memory;
        return true;
    }
    struct tpacket_req none = {0};
    setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &none, sizeof none);
    return false;
}

void ring_close(struct ring *ring)
{
    if (ring->memory)
        munmap(ring->memory, ring->size);
    ring->memory = NULL;
}

static struct tpacket2_hdr *slot_at(const struct ring *ring, uint32_t slot)
{
    size_t block = slot / ring->slots_per_block, within = slot % ring->slots_per_block;
    return (void *)(ring->memory + block * BLOCK_BYTES + within * ring->slot_bytes);
}

bool ring_take(struct ring *ring, struct rx_frame *rx)
{
    struct tpacket2_hdr *header = slot_at(ring, ring->next);
    uint32_t status = __atomic_load_n(&header->tp_status, __ATOMIC_ACQUIRE);
    if (!(status & TP_STATUS_USER) || ring->taken == ring->slots)
        return false;
    const struct sockaddr_ll *sender =
        (const void *)((uint8_t *)header + TPACKET_ALIGN(sizeof *header));
    *rx = (struct rx_frame){.bytes = (uint8_t *)header + header->tp_mac,
                            .length = header->tp_len,
                            .ifindex = (uint32_t)sender->sll_ifindex,
                            .stamp_ns = (int64_t)header->tp_sec * NS_PER_S + header->tp_nsec};
    if (status & TP_STATUS_VLAN_VALID)
        rx_frame_restore_vlan_tag(rx, header->tp_vlan_tpid, header->tp_vlan_tci);
    ring->next = ring->next + 1 == ring->slots ? 0 : ring->next + 1;
    ring->taken++;
    return true;
}

void ring_release(struct ring *ring)
{
    uint32_t slot = (ring->next + ring->slots - ring->taken) % ring->slots;
    for (; ring->taken; ring->taken--) {
        __atomic_store_n(&slot_at(ring, slot)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
        slot = slot + 1 == ring->slots ? 0 : slot + 1;
    }
}
