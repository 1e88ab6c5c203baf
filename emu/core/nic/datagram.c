/* The rules for datagrams:
 *
 *  - A message is one packet, no longer than the MTU. It carries the number of its sender's queue
 *    pair and the Q_Key of the receiver's. A packet with another Q_Key is dropped.
 *  - It takes a receive. Without a receive, or with one that is too short, the datagram is lost,
 *    and the sender gets no error. A receive whose memory is no longer registered completes with
 *    LOC_PROT_ERR, and its queue pair fails, as on connections (responder.c).
 *  - The first 40 bytes of a receive are for the GRH. RoCEv2 puts the IPv4 header into the last 20
 *    of these; a packet without a GRH leaves them as they are.
 *
 * Left out: multicast, and congestion notification of datagrams. */
#include "nic/datagram.h"

#include "headers/lrh.h"
#include "nic/delivery.h"
#include "nic/nic.h"
#include "nic/notification_point.h"
#include "nic/qp_error.h"
#include "nic/receive_queue.h"

enum { IPV4_BYTES = 20 };

void address_init(struct address *address, const struct qp *qp, const struct qp_remote *remote,
                  uint32_t qkey, uint8_t sl)
{
    struct qp_config config = qp->config;
    config.sl = sl;
    *address = (struct address){.qpn = remote->qpn, .qkey = qkey};
    qp->nic->framing->prepare(&address->path, &qp->nic->config, &config, qp->qpn, remote);
}

/* `memory`: that of the receive, as it was found. */
static void place(const struct qp *qp, const struct receive *receive, uint8_t *memory,
                  const struct packet *packet)
{
    if (packet->ip)
        receive_scatter(qp, receive, memory, GRH_BYTES - IPV4_BYTES, packet->ip, IPV4_BYTES);
    if (packet->grh)
        receive_scatter(qp, receive, memory, 0, packet->grh, GRH_BYTES);
    if (packet->payload_bytes && packet->payload)
        receive_scatter(qp, receive, memory, GRH_BYTES, packet->payload, packet->payload_bytes);
}

static void describe(const struct qp *qp, struct receive *receive, const struct packet *packet)
{
    receive->has_immediate = packet_has_immediate(packet);
    receive->has_invalidated = false;
    receive->by_write = false;
    receive->solicited = packet->bth.solicited;
    receive->immediate = packet->immediate;
    receive->src_qp = packet->deth.src_qp;
    receive->has_grh = packet->ip || packet->grh;
    if (!packet->lrh)
        return;
    receive->slid = (uint16_t)packet->source;
    receive->sl = lrh_sl(packet->lrh);
    receive->dlid_path_bits = (uint8_t)(lrh_dlid(packet->lrh) - qp->nic->config.address);
}

static void deliver(struct qp *qp, struct receive *receive, const struct packet *packet,
                    picoseconds now)
{
    uint8_t *memory;
    uint32_t length = GRH_BYTES + packet->payload_bytes;
    enum status status = STATUS_LOC_PROT_ERR;
    if (receive_find_memory(qp, receive, &memory))
        status = length <= receive->length ? STATUS_SUCCESS : STATUS_LOC_LEN_ERR;
    if (status == STATUS_SUCCESS)
        place(qp, receive, memory, packet);
    if (status == STATUS_SUCCESS && qp->peer && qp->peer->qpn == packet->deth.src_qp) {
        qp->responder.datagrams++;
        delivery_record_late(qp, packet->bth.psn, packet->payload_bytes, now);
    }
    receive->received_bytes = status == STATUS_SUCCESS ? length : 0;
    describe(qp, receive, packet);
    receive_complete(qp, receive, status, now);
    if (status == STATUS_LOC_PROT_ERR)
        qp_fail_answering(qp, now);
}

void datagram_receive(struct qp *qp, const struct packet *packet, picoseconds now)
{
    struct nic_counters *counters = &qp->nic->counters;
    if (packet->ce)
        counters->np_ecn_marked_roce_packets++;
    if (packet->deth.qkey != qp->config.qkey) {
        counters->rx_qkey_violations++;
        return;
    }
    struct receive *receive =
        packet->payload_bytes <= qp->config.mtu ? receive_queue_take(qp) : NULL;
    if (receive)
        deliver(qp, receive, packet, now);
    else
        counters->out_of_buffer++;
}
