#include "link/credit.h"

#include <assert.h>

#include "headers/crc16.h"

uint32_t credit_left(const struct credit_sender *sender)
{
    uint32_t left = (uint32_t)(sender->fccl - sender->fctbs) & (CREDIT_MODULUS - 1);
    return sender->limited && left <= CREDIT_WINDOW ? left : 0;
}

bool credit_may_send(const struct credit_sender *sender, uint32_t bytes)
{
    if (!sender->limited)
        return false;
    uint32_t required = sender->fctbs + credit_blocks(bytes);
    return ((sender->fccl - required) & (CREDIT_MODULUS - 1)) <= CREDIT_WINDOW;
}

void credit_sent(struct credit_sender *sender, uint32_t bytes)
{
    sender->fctbs = (uint16_t)((sender->fctbs + credit_blocks(bytes)) & (CREDIT_MODULUS - 1));
}

void credit_granted(struct credit_sender *sender, uint16_t fccl)
{
    sender->fccl = fccl;
    sender->limited = true;
}

bool credit_received(struct credit_receiver *receiver, uint32_t bytes)
{
    uint32_t blocks = credit_blocks(bytes);
    receiver->abr = (uint16_t)((receiver->abr + blocks) & (CREDIT_MODULUS - 1));
    if (receiver->used_blocks + blocks > receiver->buffer_blocks)
        return false;
    receiver->used_blocks += blocks;
    return true;
}

void credit_released(struct credit_receiver *receiver, uint32_t bytes)
{
    assert(receiver->used_blocks >= credit_blocks(bytes));
    receiver->used_blocks -= credit_blocks(bytes);
}

void credit_synchronised(struct credit_receiver *receiver, uint16_t fctbs)
{
    receiver->abr = fctbs;
}

static uint32_t blocks_from(uint32_t from, uint32_t to)
{
    return (to - from) & (CREDIT_MODULUS - 1);
}

uint16_t credit_limit(struct credit_receiver *receiver)
{
    uint32_t taken = receiver->used_blocks + receiver->spare_blocks;
    uint32_t free_blocks = taken < receiver->buffer_blocks ? receiver->buffer_blocks - taken : 0;
    if (free_blocks > CREDIT_WINDOW)
        free_blocks = CREDIT_WINDOW;
    uint16_t limit = (uint16_t)((receiver->abr + free_blocks) & (CREDIT_MODULUS - 1));
    if (blocks_from(receiver->promised, limit) <= CREDIT_WINDOW)
        receiver->promised = limit;
    return limit;
}

bool credit_has_spare_room(const struct credit_receiver *receiver, uint32_t bytes)
{
    uint32_t given = blocks_from(receiver->abr, receiver->promised);
    return receiver->used_blocks + given + credit_blocks(bytes) <= receiver->buffer_blocks;
}

void flow_control_build(const struct flow_control *packet, uint8_t bytes[FLOW_CONTROL_BYTES])
{
    bytes[0] = (uint8_t)(packet->op << 4 | packet->fctbs >> 8);
    bytes[1] = (uint8_t)packet->fctbs;
    bytes[2] = (uint8_t)(packet->vl << 4 | packet->fccl >> 8);
    bytes[3] = (uint8_t)packet->fccl;
    uint16_t lpcrc = crc16(bytes, 4);
    bytes[4] = (uint8_t)lpcrc;
    bytes[5] = (uint8_t)(lpcrc >> 8);
}

bool flow_control_parse(struct flow_control *packet, const uint8_t *bytes, uint32_t length)
{
    if (length != FLOW_CONTROL_BYTES)
        return false;
    uint16_t lpcrc = crc16(bytes, 4);
    if (bytes[4] != (uint8_t)lpcrc || bytes[5] != (uint8_t)(lpcrc >> 8))
        return false;
    packet->op = bytes[0] >> 4;
    packet->fctbs = (uint16_t)((bytes[0] & 0x0F) << 8 | bytes[1]);
    packet->vl = bytes[2] >> 4;
    packet->fccl = (uint16_t)((bytes[2] & 0x0F) << 8 | bytes[3]);
    return packet->op == FLOW_CONTROL_NORMAL || packet->op == FLOW_CONTROL_INIT;
}
