/* Which packets of a line a fault hits: each with a probability, or every n-th, or those whose
 * PSN is on a list. A listed PSN is hit once, so that its retransmission passes. */
#ifndef EMU_FAULT_PACKET_CHOICE_H
#define EMU_FAULT_PACKET_CHOICE_H

#include "fault/fault.h"

enum { CHOICE_PSNS = 64 };

struct packet_choice {
    uint64_t probability_2_32; /* in units of 2^-32; or */
    uint64_t every;            /* not 0; or */
    bool by_psn;               /* those that follow */
    uint32_t psn_count, psns[CHOICE_PSNS];
};

/* Its parameters, in a kind's struct that has it as member `choice`. */
#define CHOICE_FIELDS(type)                                                                        \
    CHOICE_FIELD(type, probability_2_32), CHOICE_FIELD(type, every), CHOICE_FIELD(type, by_psn),   \
        CHOICE_FIELD(type, psn_count),                                                             \
        PARAMETER_ROW("psns", type, choice.psns[0], choice.psns[0], CHOICE_PSNS)
#define CHOICE_FIELD(type, member) PARAMETER_ROW(#member, type, choice.member, choice.member, 1)

/* Whether the fault chooses this packet; counts it as seen. False for what is not a packet, and
 * while the fault is not active. */
bool choice_takes_packet(struct packet_choice *choice, struct fault *fault,
                         const struct frame *frame);
/* The same of a credit update. */
bool choice_takes_update(struct packet_choice *choice, struct fault *fault,
                         const struct frame *frame);

#endif
