/* The responses that are due to the other end: ACKs, NAKs, data of READs and results of atomics.
 * They leave in the order of PSNs. */
#ifndef EMU_NIC_RESPONSE_QUEUE_H
#define EMU_NIC_RESPONSE_QUEUE_H

#include "nic/qp.h"

enum { CNP_BODY_BYTES = BTH_BYTES + CNP_PAYLOAD_BYTES };

/* Set-up only. False when memory is short. */
bool response_queue_init(struct qp *qp);
/* Gives the memory back. */
void response_queue_free(struct qp *qp);

/* How many READs and atomics the other end may have outstanding from now on. False, and nothing
 * changed, when that is more than there was at set-up. */
bool response_queue_limit(struct qp *qp, uint32_t outstanding);

/* Forgets all responses, including those kept for repetition. */
void response_queue_reset(struct qp *qp);

/* Drops the READs and atomics that are not answered yet. */
void response_queue_forget(struct qp *qp);

/* An ACK, or the NAK of that syndrome for the expected packet, is due. */
void response_queue_owe(struct qp *qp, uint8_t syndrome);
/* A NAK for the packet `psn` is due. */
void response_queue_owe_nak(struct qp *qp, uint32_t psn, uint8_t syndrome);
bool response_queue_has_nak(const struct qp *qp);

/* Room to answer one more READ or atomic; NULL when the other end has as many outstanding
 * as were agreed on. The answer is due once response_queue_begin is called. */
struct resource *response_queue_add(struct qp *qp);

/* Sends `packets` of a resource's responses, from the one at `from` on. */
void response_queue_begin(struct qp *qp, struct resource *resource, uint32_t from,
                          uint32_t packets);

/* The resource that has a response with this PSN; NULL when it is too old. */
struct resource *response_queue_find(struct qp *qp, uint32_t psn, bool is_atomic);

/* Whether something is to be sent among data, or among acknowledgements. */
bool response_queue_has_data(const struct qp *qp);
bool response_queue_has_acknowledgement(const struct qp *qp);

/* The earliest time for the next data packet; NEVER when there is none. */
picoseconds response_queue_ready_at(const struct qp *qp);

/* BTH .. pad of the next such packet, in bytes. There must be one. */
uint32_t response_queue_data_bytes(const struct qp *qp);
uint32_t response_queue_acknowledgement_bytes(const struct qp *qp);

/* Build it. NULL, and nothing changed, when the pool is empty. Data whose region is gone is not
 * sent but refused. */
struct frame *response_queue_send_data(struct qp *qp, picoseconds now);
struct frame *response_queue_acknowledge(struct qp *qp);
struct frame *response_queue_notify(struct qp *qp);

#endif
