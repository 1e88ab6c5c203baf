/* Native InfiniBand: a local route header at the start, and the variant CRC at the end. If the
 * configuration says so, a global route header follows the local one:
 *
 *     0    | 6 (version) 4, traffic class 8, flow label 20 |
 *     4    | PayLen 16 | NxtHdr 8 = 0x1B | HopLmt 8        |
 *     8    | SGID 128: FE80::/64 and the port's GUID       |
 *    24    | DGID 128                                      |
 *
 * PktLen counts 4-byte words from the LRH through the ICRC, PayLen bytes from the BTH through the
 * ICRC. A NIC accepts both forms, whichever it sends.
 *
 * Left out: multicast, other subnets. */
#include <assert.h>
#include <string.h>

#include "headers/lrh.h"
#include "nic/framing.h"
#include "nic/icrc.h"

enum {
    GRH_VERSION = 6 << 4,
    GRH_NEXT_HEADER = 0x1B,
    GRH_HOP_LIMIT = 64,
    GRH_SGID = 8,
    GRH_DGID = 24,
    GID_PREFIX_BYTES = 8,
};

static const uint8_t own_subnet[GID_PREFIX_BYTES] = {0xFE, 0x80};

static void ib_prepare(struct path *path, const struct nic_config *own,
                       const struct qp_config *config, uint32_t qpn, const struct qp_remote *remote)
{
    (void)qpn;
    assert(config->sl < SLS && own->port.sl2vl[config->sl] < CLASSES);
    uint8_t vl = own->port.sl2vl[config->sl];
    memset(path->tc, vl, sizeof path->tc);
    path->header[0] = (uint8_t)(vl << 4);
    path->header[1] = (uint8_t)(config->sl << 4 | LNH_IBA_LOCAL);
    write_be16(path->header + 2, (uint16_t)(remote->address + config->path_bits));
    write_be16(path->header + 6, (uint16_t)own->address);
}

static void write_gid(uint8_t *bytes, uint64_t guid)
{
    memcpy(bytes, own_subnet, GID_PREFIX_BYTES);
    write_be64(bytes + GID_PREFIX_BYTES, guid);
}

static void ib_prepare_global(struct path *path, const struct nic_config *own,
                              const struct qp_config *config, uint32_t qpn,
                              const struct qp_remote *remote)
{
    ib_prepare(path, own, config, qpn, remote);
    path->header[1] |= LNH_IBA_GLOBAL;
    uint8_t *grh = path->header + LRH_BYTES;
    grh[0] = GRH_VERSION;
    grh[6] = GRH_NEXT_HEADER;
    grh[7] = GRH_HOP_LIMIT;
    write_gid(grh + GRH_SGID, own->guid);
    write_gid(grh + GRH_DGID, remote->guid);
}

static bool is_global(const uint8_t *lrh)
{
    return (lrh[1] & LNH_MASK) == LNH_IBA_GLOBAL;
}

static uint32_t icrc_of(const uint8_t *lrh, uint32_t length)
{
    return is_global(lrh) ? icrc_ib_global(lrh, length) : icrc_ib_local(lrh, length);
}

static void ib_seal(const struct path *path, enum traffic traffic, struct frame *frame)
{
    uint8_t *lrh = frame->bytes;
    uint32_t to_icrc = frame->length - VCRC_BYTES;
    uint32_t covered = to_icrc - ICRC_BYTES, route = route_bytes(path->header);
    memcpy(lrh, path->header, route);
    frame->tc = path->tc[traffic];
    write_be16(lrh + 4, (uint16_t)(to_icrc / 4));
    if (is_global(lrh))
        write_be16(lrh + LRH_BYTES + 4, (uint16_t)(to_icrc - route));
    if (!frame_is_whole(frame))
        return;
    write_le32(lrh + covered, icrc_of(lrh, covered));
    vcrc_renew(lrh, frame->length);
}

static bool is_own_lid(const struct nic_config *own, uint16_t lid)
{
    return (uint32_t)(lid - own->address) < 1u << own->lmc;
}

/* Checks the length and the destination in a GRH, which must agree with the LRH. */
static enum verdict check_global(const struct nic_config *own, const uint8_t *grh, uint32_t payload)
{
    if (grh[0] >> 4 != GRH_VERSION >> 4 || grh[6] != GRH_NEXT_HEADER ||
        read_be16(grh + 4) != payload)
        return VERDICT_MALFORMED;
    bool is_ours = memcmp(grh + GRH_DGID, own_subnet, GID_PREFIX_BYTES) == 0 &&
                   read_be64(grh + GRH_DGID + GID_PREFIX_BYTES) == own->guid;
    return is_ours ? VERDICT_OK : VERDICT_OTHER;
}

static enum verdict check_route(const struct nic_config *own, const uint8_t *lrh, uint32_t to_icrc)
{
    if ((lrh[0] & LVER_MASK) != 0 || (read_be16(lrh + 4) & PKTLEN_MASK) * 4u != to_icrc)
        return VERDICT_MALFORMED;
    if (!lrh_has_bth(lrh) || !is_own_lid(own, lrh_dlid(lrh)))
        return VERDICT_OTHER;
    return is_global(lrh) ? check_global(own, lrh + LRH_BYTES, to_icrc - LRH_BYTES - GRH_BYTES)
                          : VERDICT_OK;
}

static enum verdict ib_open(const struct nic_config *own, const struct frame *frame,
                            struct packet *packet)
{
    if (!lrh_packet_is_whole(frame))
        return VERDICT_MALFORMED;
    const uint8_t *lrh = frame->bytes;
    uint32_t route = route_bytes(lrh), to_icrc = frame->length - VCRC_BYTES;
    if (frame_is_whole(frame) && crc16(lrh, to_icrc) != (lrh[to_icrc] | lrh[to_icrc + 1] << 8))
        return VERDICT_VCRC;
    enum verdict verdict = check_route(own, lrh, to_icrc);
    if (verdict != VERDICT_OK)
        return verdict;
    uint32_t covered = to_icrc - ICRC_BYTES;
    if (frame_is_whole(frame) && read_le32(lrh + covered) != icrc_of(lrh, covered))
        return VERDICT_ICRC;
    uint32_t here = frame->stored < covered ? frame->stored : covered;
    if (!packet_parse(packet, lrh + route, covered - route, here - route))
        return VERDICT_MALFORMED;
    packet->source = read_be16(lrh + 6);
    packet->lrh = lrh;
    packet->grh = is_global(lrh) ? lrh + LRH_BYTES : NULL;
    packet->ce = packet->bth.fecn;
    return VERDICT_OK;
}

const struct framing_ops framing_ib = {
    .kind = FRAME_IB,
    .header_bytes = LRH_BYTES,
    .trailer_bytes = ICRC_BYTES + VCRC_BYTES,
    .prepare = ib_prepare,
    .seal = ib_seal,
    .open = ib_open,
};

const struct framing_ops framing_ib_global = {
    .kind = FRAME_IB,
    .header_bytes = LRH_BYTES + GRH_BYTES,
    .trailer_bytes = ICRC_BYTES + VCRC_BYTES,
    .prepare = ib_prepare_global,
    .seal = ib_seal,
    .open = ib_open,
};
