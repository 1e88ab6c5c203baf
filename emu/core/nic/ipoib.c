/* IP over InfiniBand in datagram mode (RFC 4391): an IP packet is the payload of one datagram,
 * after a header of 4 bytes.
 *
 *     | ethertype 16 | 0 16 | IPv4 packet ... |
 *
 *     kernel ──▶ room ──▶ send ring ──▶ queue pair ──▶ fabric
 *     kernel ◀── received ◀── receive ring ◀── queue pair ◀── fabric
 *
 *  - A packet that is not IPv4, or for an address that is no neighbour, is dropped.
 *  - While every slot of the send ring is in use, packets wait in the kernel's queue.
 *  - A datagram that finds no receive is lost (`out_of_buffer`). The rings are as long as those of
 *    Linux, and the driver empties the receive ring whenever it runs.
 *
 * Left out: ARP and the broadcast group, with all multicast (neighbours are configured); connected
 * mode, IPv6, offloads. */
#include "nic/ipoib.h"

#include <stdlib.h>

#include "nic/datagram.h"
#include "nic/nic.h"
#include "nic/receive_queue.h"
#include "nic/send_queue.h"

enum {
    SEND_SLOTS = 128, /* ipoib_sendq_size and ipoib_recvq_size of Linux */
    RECEIVE_SLOTS = 256,
    ENCAPSULATION_BYTES = 4,
    ETHERTYPE_IPV4 = 0x0800,
    IPV4_HEADER_MIN = 20,
    IPV4_DESTINATION = 16,
};

struct neighbour {
    uint32_t ip;
    struct address address;
};

struct sending {
    struct message message;
    struct message_record record; /* its `pending`: whether the slot is in use */
};

/* The slots of each ring are used in order, and complete in order. */
struct ipoib {
    struct nic *nic;
    struct qp *qp;
    uint32_t mtu, slot_bytes, lkey;
    uint8_t *slots; /* memory of the send ring, then of the receive ring */
    struct neighbour *neighbours;
    uint32_t neighbour_count;
    uint32_t next_send, next_receive;
    struct sending sends[SEND_SLOTS];
    struct receive receives[RECEIVE_SLOTS];
};

/* ---- set-up ------------------------------------------------------------------- */

static uint64_t slot_at(const struct ipoib *ipoib, uint32_t slot)
{
    return (uint64_t)slot * ipoib->slot_bytes;
}

static uint8_t *send_slot(const struct ipoib *ipoib)
{
    return ipoib->slots + slot_at(ipoib, ipoib->next_send);
}

static uint8_t *receive_slot(const struct ipoib *ipoib)
{
    return ipoib->slots + slot_at(ipoib, SEND_SLOTS + ipoib->next_receive);
}

static void offer(struct ipoib *ipoib, uint32_t slot, picoseconds now)
{
    struct receive *receive = &ipoib->receives[slot];
    receive->lkey = ipoib->lkey;
    receive->va = slot_at(ipoib, SEND_SLOTS + slot);
    receive->length = ipoib->slot_bytes;
    receive_queue_post(ipoib->qp, receive, now);
}

static bool set_up(struct ipoib *ipoib, const struct ipoib_config *config)
{
    uint64_t bytes = slot_at(ipoib, SEND_SLOTS + RECEIVE_SLOTS);
    const struct qp_config qp = {.transport = TRANSPORT_UD,
                                 .mtu = config->mtu + ENCAPSULATION_BYTES,
                                 .qkey = config->qkey,
                                 .recovery = "go-back-n",
                                 .cc = {.algorithm = "none"}};
    ipoib->slots = calloc(1, bytes);
    if (!ipoib->slots)
        return false;
    ipoib->lkey = nic_add_region(ipoib->nic, 0, 0, bytes, ACCESS_LOCAL_WRITE, ipoib->slots);
    ipoib->qp = nic_add_qp(ipoib->nic, &qp);
    if (!ipoib->lkey || !ipoib->qp)
        return false;
    qp_connect(ipoib->qp, &(struct qp_remote){0});
    for (uint32_t slot = 0; slot < RECEIVE_SLOTS; slot++)
        offer(ipoib, slot, 0);
    return true;
}

struct ipoib *ipoib_new(struct nic *nic, const struct ipoib_config *config)
{
    struct ipoib *ipoib = calloc(1, sizeof *ipoib);
    if (!ipoib)
        return NULL;
    ipoib->nic = nic;
    ipoib->mtu = config->mtu;
    ipoib->slot_bytes = GRH_BYTES + ENCAPSULATION_BYTES + config->mtu + 1;
    if (set_up(ipoib, config))
        return ipoib;
    ipoib_free(ipoib);
    return NULL;
}

void ipoib_free(struct ipoib *ipoib)
{
    free(ipoib->neighbours);
    free(ipoib->slots);
    free(ipoib);
}

uint32_t ipoib_qpn(const struct ipoib *ipoib)
{
    return qp_number(ipoib->qp);
}

bool ipoib_add_neighbour(struct ipoib *ipoib, uint32_t ip, uint32_t lid, uint32_t qpn, uint8_t sl)
{
    size_t count = ipoib->neighbour_count + 1;
    struct neighbour *grown = realloc(ipoib->neighbours, count * sizeof *grown);
    if (!grown)
        return false;
    ipoib->neighbours = grown;
    struct neighbour *added = &grown[ipoib->neighbour_count++];
    struct qp_remote remote = {.qpn = qpn, .address = lid};
    address_init(&added->address, ipoib->qp, &remote, ipoib->qp->config.qkey, sl);
    added->ip = ip;
    return true;
}

/* ---- sending: from the host ------------------------------------------------------------- */

static int compare_ip(const void *ip, const void *neighbour)
{
    uint32_t one = *(const uint32_t *)ip, other = ((const struct neighbour *)neighbour)->ip;
    return (one > other) - (one < other);
}

static const struct neighbour *find(const struct ipoib *ipoib, uint32_t ip)
{
    return bsearch(&ip, ipoib->neighbours, ipoib->neighbour_count, sizeof *ipoib->neighbours,
                   compare_ip);
}

/* The neighbour that an IPv4 packet is for; NULL when the packet cannot be sent. */
static const struct neighbour *next_hop(const struct ipoib *ipoib, const uint8_t *packet,
                                        uint32_t length)
{
    bool is_ipv4 = length >= IPV4_HEADER_MIN && packet[0] >> 4 == 4;
    if (!is_ipv4 || length > ipoib->mtu)
        return NULL;
    return find(ipoib, read_be32(packet + IPV4_DESTINATION));
}

uint8_t *ipoib_room(struct ipoib *ipoib, uint32_t *bytes)
{
    *bytes = ipoib->mtu + 1;
    if (ipoib->sends[ipoib->next_send].record.status == STATUS_PENDING)
        return NULL;
    return send_slot(ipoib) + ENCAPSULATION_BYTES;
}

void ipoib_send(struct ipoib *ipoib, uint32_t length, picoseconds now)
{
    struct nic_counters *counters = &ipoib->nic->counters;
    uint8_t *payload = send_slot(ipoib);
    const struct neighbour *to = next_hop(ipoib, payload + ENCAPSULATION_BYTES, length);
    if (!to) {
        counters->ipoib_tx_dropped++;
        return;
    }
    write_be32(payload, (uint32_t)ETHERTYPE_IPV4 << 16);
    struct sending *sending = &ipoib->sends[ipoib->next_send];
    sending->message = (struct message){.record = &sending->record,
                                        .to = &to->address,
                                        .verb = VERB_SEND,
                                        .lkey = ipoib->lkey,
                                        .local_va = slot_at(ipoib, ipoib->next_send),
                                        .length = ENCAPSULATION_BYTES + length};
    ipoib->next_send = (ipoib->next_send + 1) % SEND_SLOTS;
    counters->ipoib_tx_packets++;
    send_queue_post(ipoib->qp, &sending->message, now);
}

/* ---- receiving: to the host --------------------------------------------------------------- */

static bool is_packet_of_ip(const struct receive *receive, const uint8_t *slot)
{
    return receive->status == STATUS_SUCCESS &&
           receive->received_bytes >= GRH_BYTES + ENCAPSULATION_BYTES + IPV4_HEADER_MIN &&
           read_be16(slot + GRH_BYTES) == ETHERTYPE_IPV4;
}

const uint8_t *ipoib_received(struct ipoib *ipoib, uint32_t *length, picoseconds now)
{
    for (;;) {
        const struct receive *receive = &ipoib->receives[ipoib->next_receive];
        const uint8_t *slot = receive_slot(ipoib);
        if (receive->status == STATUS_PENDING)
            return NULL;
        if (is_packet_of_ip(receive, slot)) {
            *length = receive->received_bytes - GRH_BYTES - ENCAPSULATION_BYTES;
            return slot + GRH_BYTES + ENCAPSULATION_BYTES;
        }
        ipoib_taken(ipoib, false, now);
    }
}

void ipoib_taken(struct ipoib *ipoib, bool delivered, picoseconds now)
{
    struct nic_counters *counters = &ipoib->nic->counters;
    if (delivered)
        counters->ipoib_rx_packets++;
    else
        counters->ipoib_rx_dropped++;
    offer(ipoib, ipoib->next_receive, now);
    ipoib->next_receive = (ipoib->next_receive + 1) % RECEIVE_SLOTS;
}
