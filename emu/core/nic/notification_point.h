/* The notification point: a receiver notifies senders of packets that met congestion.
 *
 * One way is the BECN bit of the BTH in the next ACK, NAK or response, as on InfiniBand's reliable
 * connections (IBTA vol 1, A10). Each ACK then stands for the packets since the ACK before.
 * RoCEv2 has no other bit for this in an ACK, so the model uses BECN there too.
 *
 * The other way is a CNP, which needs no ACK. It is the only way for unreliable transports and
 * for READ responses, which are not acknowledged.
 *
 *     quiet ── CE / CNP ──▶ holding ── interval over ──▶ quiet
 *                            │    ▲
 *              CE / pending  ▼    │ interval over / CNP
 *                           pending
 *
 * These are the rules of DCQCN's paper (Zhu et al., SIGCOMM'15, 3.1): the first marked packet
 * causes a CNP at once. Marked packets in the interval after it cause one CNP at its end. A NIC
 * that does not keep marks forgets those in the interval: the next CNP waits for a mark after it.
 *
 * Each queue pair has its own interval, or all queue pairs with the same remote address share
 * one, or all of the NIC do. A shared interval belongs to one queue pair of the group, at first the
 * first; when that one leaves the group, another inherits it. */
#ifndef EMU_NIC_NOTIFICATION_POINT_H
#define EMU_NIC_NOTIFICATION_POINT_H

#include "nic/qp.h"

/* Set-up only. */
void notification_point_init(struct qp *qp);
/* Finds the interval that this queue pair shares from now on. Its remote must be set. */
void notification_point_join(struct qp *qp);
/* It shares no interval any more, and owes no CNP. */
void notification_point_leave(struct qp *qp);

/* A packet with CE arrived for this queue pair. */
void notification_point_see(struct qp *qp, const struct packet *packet, picoseconds now);

#endif
