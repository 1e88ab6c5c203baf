/* Duplication: the chosen packets arrive twice. On a link with credits a copy takes credit as if
 * its sender had sent it; without credit there is no copy. */
#include <string.h>

#include "fault/line_fault.h"
#include "fault/packet_choice.h"
#include "switch/switch.h"

struct duplication {
    struct line_fault line;
    struct packet_choice choice;
};

/* The receiver's credit for the class of a frame; NULL: the class needs none. */
static struct credit_receiver *receiver_of(const struct fault *fault, const struct frame *frame)
{
    return port_needs_credit(fault->far, frame->tc) ? &fault->far->credit->of_class[frame->tc].rx
                                                    : NULL;
}

/* Takes one packet off the receiver's count of blocks: its sender has sent it only once. */
static void remove_received_bytes(struct credit_receiver *receiver, uint32_t bytes)
{
    credit_synchronised(receiver,
                        (uint16_t)((receiver->abr - credit_blocks(bytes)) % CREDIT_MODULUS));
}

static struct frame *copy_of(struct fault *fault, const struct frame *frame)
{
    struct frame *copy =
        frame_new_stored(fault->port->pool, frame->kind, frame->length, frame->stored);
    if (copy) {
        memcpy(copy->bytes, frame->bytes, frame->stored);
        copy->tail_at = frame->tail_at;
        copy->tc = frame->tc;
        copy->corrupt = frame->corrupt;
    }
    return copy;
}

/* The first packet to copy asks the receiver to keep room for one packet from the sender. Copies
 * arrive as soon as the sender has used up the credit that it had before. */
static bool take_spare_room(struct credit_receiver *receiver, uint32_t bytes)
{
    uint32_t blocks = credit_blocks(bytes);
    if (receiver->spare_blocks < blocks && 2 * blocks <= receiver->buffer_blocks)
        receiver->spare_blocks = blocks;
    if (!credit_has_spare_room(receiver, bytes))
        return false;
    remove_received_bytes(receiver, bytes);
    return true;
}

static bool take_credit(struct port *port, uint8_t tc, uint32_t bytes)
{
    if (!credit_may_send(&port->credit->of_class[tc].tx, bytes))
        return false;
    credit_sent(&port->credit->of_class[tc].tx, bytes);
    return true;
}

/* On the cable of a host, whose ends may be in two processes, the copy takes room for which the
 * receiver has granted no credit; unless the receiver's room is not known here. */
static bool copy_has_credit(struct fault *fault, const struct frame *frame)
{
    struct port *port = fault->port;
    if (port_of_switch(port) && (port_of_switch(fault->far) || fault->far->outside))
        return !port_needs_credit(port, frame->tc) || take_credit(port, frame->tc, frame->length);
    struct credit_receiver *receiver = receiver_of(fault, frame);
    return !receiver || take_spare_room(receiver, frame->length);
}

static void packet(struct fault *fault, struct frame *frame, picoseconds now)
{
    struct duplication *own = container_of(fault, struct duplication, line.fault);
    bool chosen = choice_takes_packet(&own->choice, fault, frame);
    struct frame *copy = chosen ? copy_of(fault, frame) : NULL;
    if (copy && !copy_has_credit(fault, frame)) {
        frame_free(fault->port->pool, copy);
        copy = NULL;
    }
    line_fault_pass(fault, frame, now);
    if (!copy)
        return;
    fault->counts.hits++;
    line_fault_pass(fault, copy, now);
}

/* Copies that take the receiver's room are made in the last box, so that no other box delays them:
 * a credit update that overtook a copy would give that room away. */
static void inject(struct fault *fault, picoseconds now)
{
    (void)now;
    line_fault_inject_last(fault);
}

static void clear(struct fault *fault, picoseconds now)
{
    for (int vl = 0; fault->far->credit && vl < CLASSES; vl++)
        fault->far->credit->of_class[vl].rx.spare_blocks = 0;
    line_fault_clear(fault, now);
}

static const struct parameter_field parameters[] = {CHOICE_FIELDS(duplication), {0}};

static const struct fault_ops duplication = {
    .name = "duplication",
    .bytes = sizeof(struct duplication),
    .parameters = parameters,
    .inject = inject,
    .clear = clear,
    .packet = packet,
};

REGISTER(fault_kinds, duplication)
