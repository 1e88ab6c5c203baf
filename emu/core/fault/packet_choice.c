#include "fault/packet_choice.h"

#include "headers/ipv4.h"
#include "headers/lrh.h"
#include "headers/roce.h"

enum {
    UDP_BYTES = 8,
    PROTOCOL_UDP = 17,
    BTH_BYTES = 12,
    BTH_PSN = 9, /* 3 bytes */
    NO_PSN = 1 << 24,
};

/* Where the BTH begins; 0: there is none. */
static uint32_t bth_offset(const struct frame *frame)
{
    const uint8_t *bytes = frame->bytes;
    if (frame->kind == FRAME_IB)
        return frame->stored >= LRH_BYTES && lrh_has_bth(bytes) ? route_bytes(bytes) : 0;
    uint32_t ip = ipv4_offset(bytes, frame->stored);
    if (!ip || bytes[ip + 9] != PROTOCOL_UDP)
        return 0;
    uint32_t udp = ip + (bytes[ip] & 0x0F) * 4u;
    bool is_roce =
        udp + UDP_BYTES <= frame->stored && (bytes[udp + 2] << 8 | bytes[udp + 3]) == ROCE_UDP_PORT;
    return is_roce ? udp + UDP_BYTES : 0;
}

static uint32_t psn_of(const struct frame *frame)
{
    uint32_t bth = bth_offset(frame);
    if (!bth || bth + BTH_BYTES > frame->stored)
        return NO_PSN;
    const uint8_t *psn = frame->bytes + bth + BTH_PSN;
    return (uint32_t)psn[0] << 16 | (uint32_t)psn[1] << 8 | psn[2];
}

/* True once for each PSN on the list: takes it off the list. */
static bool is_listed(struct packet_choice *choice, uint32_t psn)
{
    for (uint32_t i = 0; i < choice->psn_count; i++)
        if (choice->psns[i] == psn) {
            choice->psns[i] = choice->psns[--choice->psn_count];
            return true;
        }
    return false;
}

static bool takes(struct packet_choice *choice, struct fault *fault, const struct frame *frame)
{
    fault->counts.packets_seen++;
    if (choice->every)
        return fault->counts.packets_seen % choice->every == 0;
    if (choice->by_psn)
        return is_listed(choice, psn_of(frame));
    return rng_u32(&fault->rng) < choice->probability_2_32;
}

bool choice_takes_packet(struct packet_choice *choice, struct fault *fault,
                         const struct frame *frame)
{
    return fault->active && is_packet(frame) && takes(choice, fault, frame);
}

bool choice_takes_update(struct packet_choice *choice, struct fault *fault,
                         const struct frame *frame)
{
    return fault->active && port_credit_update(fault->port, frame) && takes(choice, fault, frame);
}
