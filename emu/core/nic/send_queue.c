#include "nic/send_queue.h"

#include "nic/host_path.h"
#include "nic/message.h"
#include "nic/nic.h"
#include "nic/pacing.h"
#include "nic/psn.h"
#include "nic/qp_state.h"
#include "nic/requester.h"

static void complete(struct qp *qp, struct message *message, enum status status, picoseconds now)
{
    if (status == STATUS_WR_FLUSH_ERR)
        qp->nic->counters.req_cqe_flush_error++;
    else if (status != STATUS_SUCCESS && status != STATUS_CANCELLED)
        qp->nic->counters.req_cqe_error++;
    message->record->status = status;
    message->record->completed_ps = now;
    if (message->handler)
        message->handler->completed(message, now);
}

/* ---- posting: may it be sent? ------------------------------------------------ */

static bool transport_has(const struct qp *qp, const struct message *message)
{
    static const uint32_t verbs[] = {
        [TRANSPORT_RC] = (1 << VERBS) - 1,
        [TRANSPORT_UC] =
            1 << VERB_SEND | 1 << VERB_SEND_IMM | 1 << VERB_WRITE | 1 << VERB_WRITE_IMM,
        [TRANSPORT_UD] = 1 << VERB_SEND | 1 << VERB_SEND_IMM,
    };
    bool is_datagram = qp->config.transport == TRANSPORT_UD;
    return message->verb < VERBS && (verbs[qp->config.transport] & 1u << message->verb) &&
           is_datagram == (message->to != NULL) &&
           (!message_is_fetch(message) || (qp->config.max_rd_atomic > 0 && !message->inlined));
}

static bool length_is_valid(const struct qp *qp, const struct message *message)
{
    if (message->verb == VERB_CMP_SWAP || message->verb == VERB_FETCH_ADD)
        return message->length == ATOMIC_BYTES;
    if (qp->config.transport == TRANSPORT_UD)
        return message->length <= qp->config.mtu;
    return message->length <= MESSAGE_MAX;
}

enum status send_queue_admit(const struct qp *qp, const struct message *message)
{
    uint8_t *bytes;
    if (qp_can(qp, POSTS_FLUSH))
        return STATUS_WR_FLUSH_ERR;
    if (!qp_can(qp, CAN_POST) || !transport_has(qp, message))
        return STATUS_LOC_QP_OP_ERR;
    if (!length_is_valid(qp, message))
        return STATUS_LOC_LEN_ERR;
    return message_find_memory(qp, message, &bytes) ? STATUS_SUCCESS : STATUS_LOC_PROT_ERR;
}

static uint32_t packets_of(uint32_t length, uint32_t mtu)
{
    return length ? (length - 1) / mtu + 1 : 1;
}

static void append(struct qp *qp, struct message *message)
{
    struct requester *requester = &qp->requester;
    message->next = NULL;
    if (requester->newest)
        requester->newest->next = message;
    else
        requester->oldest = message;
    requester->newest = message;
    if (!requester->current)
        requester->current = message;
    if (!requester->fetch && message_is_fetch(message))
        requester->fetch = message;
}

static picoseconds before_its_first_byte(const struct qp *qp, const struct message *message)
{
    const struct host_path *path = &qp->nic->config.path;
    if (!message_reads_memory(message))
        return path->doorbell_ps;
    return host_path_before(path, message->length, message_is_fetch(message));
}

static void begin_record(const struct message *message, picoseconds now)
{
    *message->record = (struct message_record){.started_ps = now,
                                               .first_sent_ps = NEVER,
                                               .delivered_ps = NEVER,
                                               .completed_ps = NEVER,
                                               .status = STATUS_PENDING};
}

static void enqueue(struct qp *qp, struct message *message, picoseconds now)
{
    struct requester *requester = &qp->requester;
    message->ready_at = now + before_its_first_byte(qp, message);
    message->packets = packets_of(message->length, qp->config.mtu);
    message->first_psn = requester->posted_end;
    message->ssn = ++requester->ssn;
    requester->posted_end += message->packets;
    append(qp, message);
    qp_wake(qp, now);
    port_kick(&qp->nic->port, now);
}

void send_queue_post(struct qp *qp, struct message *message, picoseconds now)
{
    enum status status = send_queue_admit(qp, message);
    begin_record(message, now);
    if (status == STATUS_SUCCESS)
        enqueue(qp, message, now);
    else
        complete(qp, message, status, now);
}

/* It waits for its turn as a message that waits for nothing else would. */
void send_queue_post_refused(struct qp *qp, struct message *message, enum status refusal,
                             picoseconds now)
{
    begin_record(message, now);
    message->refusal = (uint8_t)refusal;
    message->verb = VERB_WRITE;
    message->length = 0;
    message->inlined = NULL;
    message->sges = NULL;
    enqueue(qp, message, now);
}

/* ---- completing ---------------------------------------------------------------- */

static struct message *take_oldest(struct qp *qp)
{
    struct requester *requester = &qp->requester;
    struct message *message = requester->oldest;
    requester->oldest = message->next;
    if (!requester->oldest)
        requester->newest = NULL;
    return message;
}

/* Whether no message that was begun is waiting to be completed. */
static bool is_drained(const struct requester *requester)
{
    return !requester->oldest ||
           (requester->oldest == requester->current && !requester_has_begun(requester));
}

void send_queue_note_drained(struct qp *qp)
{
    if (!qp->requester.notes_drained || !is_drained(&qp->requester))
        return;
    qp->requester.notes_drained = false;
    note_event(qp->watch, NIC_SQ_DRAINED);
}

void send_queue_complete(struct qp *qp, picoseconds now)
{
    struct requester *requester = &qp->requester;
    while (requester->oldest && message_end(requester->oldest) <= requester->unacked)
        complete(qp, take_oldest(qp), STATUS_SUCCESS, now);
    send_queue_note_drained(qp);
}

void send_queue_flush(struct qp *qp, enum status status, picoseconds now)
{
    struct requester *requester = &qp->requester;
    timer_cancel(&requester->ack_timeout);
    timer_cancel(&requester->completion);
    requester->current = requester->fetch = NULL;
    requester->broken = false;
    while (requester->oldest) {
        complete(qp, take_oldest(qp), status, now);
        if (status != STATUS_CANCELLED)
            status = STATUS_WR_FLUSH_ERR;
    }
}
