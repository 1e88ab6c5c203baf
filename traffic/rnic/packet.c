#include "packet.h"

#include <stddef.h>

#include "rnic_api.h"

/* What an opcode of a request means. Absent ones are not supported. */
struct request_rule {
    bool supported, starts, ends;
    uint8_t verb;
};

static const struct request_rule request_rules[OPCODE_RC_END] = {
    [OPCODE_SEND_FIRST] = {.supported = true, .verb = VERB_SEND, .starts = true},
    [OPCODE_SEND_MIDDLE] = {.supported = true, .verb = VERB_SEND},
    [OPCODE_SEND_LAST] = {.supported = true, .verb = VERB_SEND, .ends = true},
    [OPCODE_SEND_ONLY] = {.supported = true, .verb = VERB_SEND, .starts = true, .ends = true},
    [OPCODE_WRITE_FIRST] = {.supported = true, .verb = VERB_WRITE, .starts = true},
    [OPCODE_WRITE_MIDDLE] = {.supported = true, .verb = VERB_WRITE},
    [OPCODE_WRITE_LAST] = {.supported = true, .verb = VERB_WRITE, .ends = true},
    [OPCODE_WRITE_ONLY] = {.supported = true, .verb = VERB_WRITE, .starts = true, .ends = true},
};

static enum packet_type type_of(uint8_t opcode)
{
    if (opcode == OPCODE_CNP)
        return PACKET_CNP;
    if (opcode == OPCODE_ACKNOWLEDGE)
        return PACKET_ACKNOWLEDGE;
    if (opcode >= OPCODE_RC_END ||
        (opcode >= OPCODE_READ_RESPONSE_FIRST && opcode <= OPCODE_READ_RESPONSE_ONLY) ||
        opcode == OPCODE_ATOMIC_ACKNOWLEDGE)
        return PACKET_ALIEN;
    return request_rules[opcode].supported ? PACKET_REQUEST : PACKET_UNSUPPORTED;
}

static uint32_t extension_bytes(const struct packet *packet)
{
    if (packet->type == PACKET_ACKNOWLEDGE)
        return AETH_BYTES;
    if (packet->type == PACKET_REQUEST && packet->verb == VERB_WRITE && packet->starts)
        return RETH_BYTES;
    return 0;
}

bool packet_parse(struct packet *packet, const uint8_t *bytes, uint32_t length, uint32_t stored)
{
    if (stored < BTH_BYTES || length % 4 != 0)
        return false;
    *packet = (struct packet){.bth = bth_read(bytes)};
    packet->type = type_of(packet->bth.opcode);
    if (packet->type == PACKET_REQUEST) {
        const struct request_rule *rule = &request_rules[packet->bth.opcode];
        packet->verb = rule->verb;
        packet->starts = rule->starts;
        packet->ends = rule->ends;
    }
    uint32_t extension = extension_bytes(packet), headers = BTH_BYTES + extension;
    if (stored < headers || length < headers + packet->bth.pad)
        return false;
    if (packet->type == PACKET_ACKNOWLEDGE)
        packet->aeth = aeth_read(bytes + BTH_BYTES);
    else if (extension)
        packet->reth = reth_read(bytes + BTH_BYTES);
    packet->payload = stored == length ? bytes + headers : NULL;
    packet->payload_bytes = length - headers - packet->bth.pad;
    return true;
}
