/* The notification point: tells senders of packets that met congestion.
 *
 * Either by the BECN bit of the BTH in the next ACK, NAK or response, as InfiniBand does
 * on reliable connections (IBTA vol 1, A10). Each ACK then tells of the packets since the one
 * before. RoCEv2 has no other bit in an ACK, so that it serves there too.
 *
 * Or by CNPs, which need no ACK, and are the only way where there is none: on unreliable
 * transports, and for READ responses.
 *
 *     quiet ── CE / CNP ──▶ holding ── interval over ──▶ quiet
 *       ▲                    │    ▲
 *       │        CE / noted  ▼    │ interval over / CNP
 *       └────────────────── noted ┘
 *
 * So has DCQCN's paper (Zhu et al., SIGCOMM'15, 3.1): the first packet that was
 * marked makes a CNP at once; of those in the interval after it, one CNP is made
 * when it is over. A NIC that does not keep such marks forgets them instead, and
 * the next CNP waits for a mark after the interval.
 *
 * An interval may be a queue pair's own, or shared by all that talk to the same
 * address, or by all of the NIC: then it is that of the first of them. */
#ifndef EMU_NIC_NOTIFICATION_POINT_H
#define EMU_NIC_NOTIFICATION_POINT_H

#include "nic/qp.h"

/* Set-up only. */
void notification_point_init(struct qp *qp);
/* Set-up only: finds whose interval is this queue pair's, which knows its remote. */
void notification_point_join(struct qp *qp);

/* A packet with CE arrived for this queue pair. */
void notification_point_see(struct qp *qp, const struct packet *packet, picoseconds now);

#endif
