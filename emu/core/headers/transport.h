/* The transport headers that RoCEv2 and InfiniBand share.
 *
 *     0       8       16      24     31
 *    | opcode |SM Pd v|     P_Key     |     BTH: in every packet
 *    |FB  rsv |        dest_qp        |
 *    |A   rsv |          psn          |
 *
 *    | q_key 32 | rsv 8 | src_qp 24 |             DETH: datagrams
 *    | va 64 | r_key 32 | dma_len 32 |            RETH: READ, first packet of a WRITE
 *    | va 64 | r_key 32 | swap or add 64 | compare 64 |    AtomicETH
 *    | syndrome 8 | msn 24 |                      AETH: acknowledgements, READ responses
 *    | original 64 |                              AtomicAckETH
 *    | immediate 32 |                             ImmDt
 *    | r_key 32 |                                 IETH: the key to invalidate
 *
 * All in network order. Readers expect the length to be checked already. */
#ifndef EMU_HEADERS_TRANSPORT_H
#define EMU_HEADERS_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

enum { BTH_BYTES = 12, ICRC_BYTES = 4 };
enum {
    DETH_BYTES = 8,
    RETH_BYTES = 16,
    ATOMIC_ETH_BYTES = 28,
    AETH_BYTES = 4,
    ATOMIC_ACK_ETH_BYTES = 8,
    IMM_DT_BYTES = 4,
    IETH_BYTES = 4,
};
enum { CNP_PAYLOAD_BYTES = 16, ATOMIC_BYTES = 8 };
enum { MTU_MIN = 256, MTU_MAX = 4096 };
enum { PKEY_DEFAULT = 0xFFFF, PKEY_MASK = 0x7FFF, PKEY_FULL_MEMBER = 0x8000 };

#define MESSAGE_MAX UINT32_C(0x80000000) /* bytes */

/* An opcode is a transport class, in the top three bits, and an operation. */
enum { OPCODE_OPERATION = 0x1F, OPERATIONS = 0x20 };

enum opcode_class { CLASS_RC = 0x00, CLASS_UC = 0x20, CLASS_UD = 0x60 };

/* The operations, as opcodes of reliable connections. */
enum opcode {
    OPCODE_SEND_FIRST = 0x00,
    OPCODE_SEND_MIDDLE = 0x01,
    OPCODE_SEND_LAST = 0x02,
    OPCODE_SEND_LAST_IMM = 0x03,
    OPCODE_SEND_ONLY = 0x04,
    OPCODE_SEND_ONLY_IMM = 0x05,
    OPCODE_WRITE_FIRST = 0x06,
    OPCODE_WRITE_MIDDLE = 0x07,
    OPCODE_WRITE_LAST = 0x08,
    OPCODE_WRITE_LAST_IMM = 0x09,
    OPCODE_WRITE_ONLY = 0x0A,
    OPCODE_WRITE_ONLY_IMM = 0x0B,
    OPCODE_READ_REQUEST = 0x0C,
    OPCODE_READ_RESPONSE_FIRST = 0x0D,
    OPCODE_READ_RESPONSE_MIDDLE = 0x0E,
    OPCODE_READ_RESPONSE_LAST = 0x0F,
    OPCODE_READ_RESPONSE_ONLY = 0x10,
    OPCODE_ACKNOWLEDGE = 0x11,
    OPCODE_ATOMIC_ACKNOWLEDGE = 0x12,
    OPCODE_CMP_SWAP = 0x13,
    OPCODE_FETCH_ADD = 0x14,
    OPCODE_SEND_LAST_INV = 0x16,
    OPCODE_SEND_ONLY_INV = 0x17,
    OPCODE_CNP = 0x81,
};

/* AETH syndromes. An RNR NAK carries its timer code in the low five bits. */
enum syndrome {
    AETH_ACK = 0x1F, /* end-to-end credits not in use; other codes: see credits.h */
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
    bool fecn, becn;
    uint32_t dest_qp;
    bool ack_req;
    bool solicited; /* SE */
    uint32_t psn;
};

struct reth {
    uint64_t va;
    uint32_t rkey;
    uint32_t dma_length;
};

struct atomic_eth {
    uint64_t va;
    uint32_t rkey;
    uint64_t swap_add, compare;
};

struct aeth {
    uint8_t syndrome;
    uint32_t msn;
};

struct deth {
    uint32_t qkey;
    uint32_t src_qp;
};

static inline struct bth bth_read(const uint8_t *bytes)
{
    return (struct bth){.opcode = bytes[0],
                        .solicited = bytes[1] & 0x80,
                        .mig_req = bytes[1] & 0x40,
                        .pad = bytes[1] >> 4 & 3,
                        .tver = bytes[1] & 0x0F,
                        .pkey = read_be16(bytes + 2),
                        .fecn = bytes[4] & 0x80,
                        .becn = bytes[4] & 0x40,
                        .dest_qp = read_be24(bytes + 5),
                        .ack_req = bytes[8] & 0x80,
                        .psn = read_be24(bytes + 9)};
}

static inline void bth_write(uint8_t *bytes, const struct bth *bth)
{
    bytes[0] = bth->opcode;
    bytes[1] = (uint8_t)((bth->solicited ? 0x80 : 0) | (bth->mig_req ? 0x40 : 0) | bth->pad << 4 |
                         bth->tver);
    write_be16(bytes + 2, bth->pkey);
    bytes[4] = (uint8_t)((bth->fecn ? 0x80 : 0) | (bth->becn ? 0x40 : 0));
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

static inline struct atomic_eth atomic_eth_read(const uint8_t *bytes)
{
    return (struct atomic_eth){.va = read_be64(bytes),
                               .rkey = read_be32(bytes + 8),
                               .swap_add = read_be64(bytes + 12),
                               .compare = read_be64(bytes + 20)};
}

static inline void atomic_eth_write(uint8_t *bytes, const struct atomic_eth *atomic)
{
    write_be64(bytes, atomic->va);
    write_be32(bytes + 8, atomic->rkey);
    write_be64(bytes + 12, atomic->swap_add);
    write_be64(bytes + 20, atomic->compare);
}

static inline struct deth deth_read(const uint8_t *bytes)
{
    return (struct deth){.qkey = read_be32(bytes), .src_qp = read_be24(bytes + 5)};
}

static inline void deth_write(uint8_t *bytes, const struct deth *deth)
{
    write_be32(bytes, deth->qkey);
    write_be32(bytes + 4, deth->src_qp);
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
