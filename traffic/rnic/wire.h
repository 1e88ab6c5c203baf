/* The transport headers that RoCEv2 and InfiniBand share (IBTA vol 1, chapter 9).
 *
 *     0       8       16      24     31
 *    | opcode |SM Pd v|     P_Key     |     BTH: in every packet
 *    |FB  rsv |        dest_qp        |
 *    |A   rsv |          psn          |
 *
 *    |               va               |     RETH: first packet of a WRITE
 *    |               va               |
 *    |             r_key              |
 *    |            dma_len             |
 *
 *    |syndrome|          msn          |     AETH: acknowledgements
 *
 * All in network order. Readers expect the length to be checked already. */
#ifndef RNIC_WIRE_H
#define RNIC_WIRE_H

#include <stdbool.h>
#include <stdint.h>

enum { BTH_BYTES = 12, RETH_BYTES = 16, AETH_BYTES = 4, ICRC_BYTES = 4, VCRC_BYTES = 2 };
enum { CNP_PAYLOAD_BYTES = 16 };
enum { MTU_MIN = 256, MTU_MAX = 4096 };
enum { PKEY_DEFAULT = 0xFFFF, PKEY_MASK = 0x7FFF };

#define MESSAGE_MAX UINT32_C(0x80000000) /* bytes */

/* Opcodes of reliable connections: the verb's first one, then the position. */
enum opcode {
    OPCODE_SEND_FIRST = 0x00,
    OPCODE_SEND_MIDDLE = 0x01,
    OPCODE_SEND_LAST = 0x02,
    OPCODE_SEND_ONLY = 0x04,
    OPCODE_WRITE_FIRST = 0x06,
    OPCODE_WRITE_MIDDLE = 0x07,
    OPCODE_WRITE_LAST = 0x08,
    OPCODE_WRITE_ONLY = 0x0A,
    OPCODE_READ_RESPONSE_FIRST = 0x0D,
    OPCODE_READ_RESPONSE_ONLY = 0x10,
    OPCODE_ACKNOWLEDGE = 0x11,
    OPCODE_ATOMIC_ACKNOWLEDGE = 0x12,
    OPCODE_RC_END = 0x20, /* the other transport classes begin here */
    OPCODE_CNP = 0x81,
};

/* AETH syndromes. An RNR NAK carries its timer code in the low five bits. */
enum syndrome {
    AETH_ACK = 0x1F, /* end-to-end credits not in use */
    AETH_RNR_NAK = 0x20,
    AETH_NAK_PSN_SEQUENCE_ERROR = 0x60,
    AETH_NAK_INVALID_REQUEST = 0x61,
    AETH_NAK_REMOTE_ACCESS_ERROR = 0x62,
    AETH_NAK_REMOTE_OPERATIONAL_ERROR = 0x63,
    AETH_TYPE = 0xE0, /* mask: ACK 0x00, RNR NAK 0x20, NAK 0x60 */
    AETH_CODE = 0x1F, /* mask: credits, timer or error code */
};

static inline uint16_t read_be16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static inline uint32_t read_be24(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 8 | bytes[2];
}

static inline uint32_t read_be32(const uint8_t *bytes)
{
    return (uint32_t)read_be16(bytes) << 16 | read_be16(bytes + 2);
}

static inline uint64_t read_be64(const uint8_t *bytes)
{
    return (uint64_t)read_be32(bytes) << 32 | read_be32(bytes + 4);
}

static inline uint32_t read_le32(const uint8_t *bytes)
{
    return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}

static inline void write_be16(uint8_t *bytes, uint16_t value)
{
    bytes[0] = (uint8_t)(value >> 8);
    bytes[1] = (uint8_t)value;
}

static inline void write_be24(uint8_t *bytes, uint32_t value)
{
    bytes[0] = (uint8_t)(value >> 16);
    write_be16(bytes + 1, (uint16_t)value);
}

static inline void write_be32(uint8_t *bytes, uint32_t value)
{
    write_be16(bytes, (uint16_t)(value >> 16));
    write_be16(bytes + 2, (uint16_t)value);
}

static inline void write_be64(uint8_t *bytes, uint64_t value)
{
    write_be32(bytes, (uint32_t)(value >> 32));
    write_be32(bytes + 4, (uint32_t)value);
}

static inline void write_le32(uint8_t *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
}

struct bth {
    uint8_t opcode;
    bool mig_req; /* M: set by everybody but CNPs */
    uint8_t pad;  /* bytes after the payload */
    uint8_t tver;
    uint16_t pkey;
    bool becn;
    uint32_t dest_qp;
    bool ack_req;
    uint32_t psn;
};

struct reth {
    uint64_t va;
    uint32_t rkey;
    uint32_t dma_length;
};

struct aeth {
    uint8_t syndrome;
    uint32_t msn;
};

static inline struct bth bth_read(const uint8_t *bytes)
{
    return (struct bth){.opcode = bytes[0],
                        .mig_req = bytes[1] & 0x40,
                        .pad = bytes[1] >> 4 & 3,
                        .tver = bytes[1] & 0x0F,
                        .pkey = read_be16(bytes + 2),
                        .becn = bytes[4] & 0x40,
                        .dest_qp = read_be24(bytes + 5),
                        .ack_req = bytes[8] & 0x80,
                        .psn = read_be24(bytes + 9)};
}

static inline void bth_write(uint8_t *bytes, const struct bth *bth)
{
    bytes[0] = bth->opcode;
    bytes[1] = (uint8_t)((bth->mig_req ? 0x40 : 0) | bth->pad << 4 | bth->tver);
    write_be16(bytes + 2, bth->pkey);
    bytes[4] = bth->becn ? 0x40 : 0;
    write_be24(bytes + 5, bth->dest_qp);
    bytes[8] = bth->ack_req ? 0x80 : 0;
    write_be24(bytes + 9, bth->psn);
}

static inline struct reth reth_read(const uint8_t *bytes)
{
    return (struct reth){
        .va = read_be64(bytes), .rkey = read_be32(bytes + 8), .dma_length = read_be32(bytes + 12)};
}

static inline void reth_write(uint8_t *bytes, const struct reth *reth)
{
    write_be64(bytes, reth->va);
    write_be32(bytes + 8, reth->rkey);
    write_be32(bytes + 12, reth->dma_length);
}

static inline struct aeth aeth_read(const uint8_t *bytes)
{
    return (struct aeth){.syndrome = bytes[0], .msn = read_be24(bytes + 1)};
}

static inline void aeth_write(uint8_t *bytes, const struct aeth *aeth)
{
    bytes[0] = aeth->syndrome;
    write_be24(bytes + 1, aeth->msn);
}

#endif
