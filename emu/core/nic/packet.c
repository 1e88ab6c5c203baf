#include "nic/packet.h"

#include <string.h>

struct operation_rule {
    uint8_t type;       /* enum packet_type */
    uint8_t transports; /* one bit for each enum transport that has the opcode */
    bool starts, ends;
    uint8_t headers; /* bits of enum header */
};

enum {
    RC = 1 << TRANSPORT_RC,
    UC = 1 << TRANSPORT_UC,
    UD = 1 << TRANSPORT_UD,
    FIRST = 1,
    LAST = 2,
    ONLY = FIRST | LAST,
};

#define RULE(packet_type, classes, position, extensions)                                           \
    {                                                                                              \
        .type = (packet_type), .transports = (classes), .starts = ((position)&FIRST) != 0,         \
        .ends = ((position)&LAST) != 0, .headers = (extensions),                                   \
    }

static const struct operation_rule rules[OPERATIONS] = {
    [OPCODE_SEND_FIRST] = RULE(PACKET_SEND, RC | UC, FIRST, 0),
    [OPCODE_SEND_MIDDLE] = RULE(PACKET_SEND, RC | UC, 0, 0),
    [OPCODE_SEND_LAST] = RULE(PACKET_SEND, RC | UC, LAST, 0),
    [OPCODE_SEND_LAST_IMM] = RULE(PACKET_SEND, RC | UC, LAST, HEADER_IMM),
    [OPCODE_SEND_ONLY] = RULE(PACKET_SEND, RC | UC | UD, ONLY, 0),
    [OPCODE_SEND_ONLY_IMM] = RULE(PACKET_SEND, RC | UC | UD, ONLY, HEADER_IMM),
    [OPCODE_SEND_LAST_INV] = RULE(PACKET_SEND, RC, LAST, HEADER_IETH),
    [OPCODE_SEND_ONLY_INV] = RULE(PACKET_SEND, RC, ONLY, HEADER_IETH),
    [OPCODE_WRITE_FIRST] = RULE(PACKET_WRITE, RC | UC, FIRST, HEADER_RETH),
    [OPCODE_WRITE_MIDDLE] = RULE(PACKET_WRITE, RC | UC, 0, 0),
    [OPCODE_WRITE_LAST] = RULE(PACKET_WRITE, RC | UC, LAST, 0),
    [OPCODE_WRITE_LAST_IMM] = RULE(PACKET_WRITE, RC | UC, LAST, HEADER_IMM),
    [OPCODE_WRITE_ONLY] = RULE(PACKET_WRITE, RC | UC, ONLY, HEADER_RETH),
    [OPCODE_WRITE_ONLY_IMM] = RULE(PACKET_WRITE, RC | UC, ONLY, HEADER_RETH | HEADER_IMM),
    [OPCODE_READ_REQUEST] = RULE(PACKET_READ, RC, ONLY, HEADER_RETH),
    [OPCODE_CMP_SWAP] = RULE(PACKET_ATOMIC, RC, ONLY, HEADER_ATOMIC),
    [OPCODE_FETCH_ADD] = RULE(PACKET_ATOMIC, RC, ONLY, HEADER_ATOMIC),
    [OPCODE_READ_RESPONSE_FIRST] = RULE(PACKET_READ_RESPONSE, RC, FIRST, HEADER_AETH),
    [OPCODE_READ_RESPONSE_MIDDLE] = RULE(PACKET_READ_RESPONSE, RC, 0, 0),
    [OPCODE_READ_RESPONSE_LAST] = RULE(PACKET_READ_RESPONSE, RC, LAST, HEADER_AETH),
    [OPCODE_READ_RESPONSE_ONLY] = RULE(PACKET_READ_RESPONSE, RC, ONLY, HEADER_AETH),
    [OPCODE_ACKNOWLEDGE] = RULE(PACKET_ACKNOWLEDGE, RC, ONLY, HEADER_AETH),
    [OPCODE_ATOMIC_ACKNOWLEDGE] =
        RULE(PACKET_ACKNOWLEDGE, RC, ONLY, HEADER_AETH | HEADER_ATOMIC_ACK),
};

/* Reliable connections refuse unknown opcodes. In other classes unknown opcodes are ignored. */
static const struct operation_rule unsupported = {.type = PACKET_UNSUPPORTED};
static const struct operation_rule alien = {.type = PACKET_ALIEN};
static const struct operation_rule notification = {.type = PACKET_CNP};

static const struct operation_rule *rule_of(uint8_t opcode, uint8_t *transport)
{
    const struct operation_rule *rule = &rules[opcode & OPCODE_OPERATION];
    *transport = TRANSPORT_RC;
    if (opcode == OPCODE_CNP)
        return &notification;
    if (opcode < OPERATIONS)
        return rule->transports & RC ? rule : &unsupported;
    uint8_t class = opcode & (uint8_t)~OPCODE_OPERATION;
    *transport = class == CLASS_UD ? TRANSPORT_UD : TRANSPORT_UC;
    bool known = (class == CLASS_UC || class == CLASS_UD) && (rule->transports & 1 << *transport);
    return known ? rule : &alien;
}

static uint32_t extension_bytes(uint8_t headers, uint8_t transport)
{
    uint32_t bytes = transport == TRANSPORT_UD ? DETH_BYTES : 0;
    if (headers & HEADER_RETH)
        bytes += RETH_BYTES;
    if (headers & HEADER_ATOMIC)
        bytes += ATOMIC_ETH_BYTES;
    if (headers & HEADER_AETH)
        bytes += AETH_BYTES;
    if (headers & HEADER_ATOMIC_ACK)
        bytes += ATOMIC_ACK_ETH_BYTES;
    if (headers & (HEADER_IMM | HEADER_IETH))
        bytes += IMM_DT_BYTES;
    return bytes;
}

uint32_t packet_header_bytes(uint8_t opcode)
{
    uint8_t transport;
    const struct operation_rule *rule = rule_of(opcode, &transport);
    bool bare = rule->headers == 0 && transport != TRANSPORT_UD;
    return bare ? BTH_BYTES : BTH_BYTES + extension_bytes(rule->headers, transport);
}

static void read_extensions(struct packet *packet, const uint8_t *bytes)
{
    if (packet->transport == TRANSPORT_UD) {
        packet->deth = deth_read(bytes);
        bytes += DETH_BYTES;
    }
    if (packet->headers & HEADER_RETH) {
        packet->reth = reth_read(bytes);
        bytes += RETH_BYTES;
    }
    if (packet->headers & HEADER_ATOMIC)
        packet->atomic = atomic_eth_read(bytes);
    if (packet->headers & HEADER_AETH) {
        packet->aeth = aeth_read(bytes);
        bytes += AETH_BYTES;
    }
    if (packet->headers & HEADER_ATOMIC_ACK)
        packet->original = read_be64(bytes);
    if (packet->headers & (HEADER_IMM | HEADER_IETH))
        packet->immediate = read_be32(bytes);
}

static void write_extensions(uint8_t *bytes, const struct packet *packet, uint8_t headers,
                             uint8_t transport)
{
    if (transport == TRANSPORT_UD) {
        deth_write(bytes, &packet->deth);
        bytes += DETH_BYTES;
    }
    if (headers & HEADER_RETH) {
        reth_write(bytes, &packet->reth);
        bytes += RETH_BYTES;
    }
    if (headers & HEADER_ATOMIC)
        atomic_eth_write(bytes, &packet->atomic);
    if (headers & HEADER_AETH) {
        aeth_write(bytes, &packet->aeth);
        bytes += AETH_BYTES;
    }
    if (headers & HEADER_ATOMIC_ACK)
        write_be64(bytes, packet->original);
    if (headers & (HEADER_IMM | HEADER_IETH))
        write_be32(bytes, packet->immediate);
}

uint32_t packet_front_bytes(const struct packet *packet)
{
    if (packet->bth.opcode == OPCODE_CNP)
        return BTH_BYTES + CNP_PAYLOAD_BYTES;
    return packet_header_bytes(packet->bth.opcode) + (packet->has_sack ? SACK_BYTES : 0);
}

static void write_sack(uint8_t *bytes, const struct packet *packet)
{
    write_be32(bytes, packet->sack_first);
    write_be32(bytes + 4, packet->sack_end);
}

void packet_write_front(uint8_t *bytes, const struct packet *packet)
{
    uint8_t transport;
    const struct operation_rule *rule = rule_of(packet->bth.opcode, &transport);
    bth_write(bytes, &packet->bth);
    if (rule->headers || transport == TRANSPORT_UD)
        write_extensions(bytes + BTH_BYTES, packet, rule->headers, transport);
    if (packet->has_sack)
        write_sack(bytes + BTH_BYTES + AETH_BYTES, packet);
    if (rule == &notification)
        memset(bytes + BTH_BYTES, 0, CNP_PAYLOAD_BYTES);
}

/* The payload of a NAK, if there is one, is the run of packets that arrived. */
static bool read_sack(struct packet *packet, const uint8_t *payload, uint32_t stored)
{
    packet->has_sack = packet->payload_bytes == SACK_BYTES && packet->bth.pad == 0 &&
                       packet->aeth.syndrome == AETH_NAK_PSN_SEQUENCE_ERROR;
    if (!packet->has_sack)
        return packet->payload_bytes == 0;
    if (stored < SACK_BYTES)
        return false;
    packet->sack_first = read_be24(payload + 1);
    packet->sack_end = read_be24(payload + 5);
    return true;
}

bool packet_parse(struct packet *packet, const uint8_t *bytes, uint32_t length, uint32_t stored)
{
    if (stored < BTH_BYTES || length % 4 != 0)
        return false;
    *packet = (struct packet){.bth = bth_read(bytes)};
    const struct operation_rule *rule = rule_of(packet->bth.opcode, &packet->transport);
    packet->type = rule->type;
    packet->headers = rule->headers;
    packet->starts = rule->starts;
    packet->ends = rule->ends;
    uint32_t headers = BTH_BYTES;
    if (rule->type != PACKET_ALIEN && (rule->headers || packet->transport == TRANSPORT_UD))
        headers += extension_bytes(rule->headers, packet->transport);
    if (stored < headers || length < headers + packet->bth.pad)
        return false;
    if (headers > BTH_BYTES)
        read_extensions(packet, bytes + BTH_BYTES);
    packet->payload = stored == length ? bytes + headers : NULL;
    packet->payload_bytes = length - headers - packet->bth.pad;
    return packet->type != PACKET_ACKNOWLEDGE ||
           read_sack(packet, bytes + headers, stored - headers);
}
