/* Native InfiniBand within a subnet (IBTA vol 1, 7.7): a local route header,
 * no GRH, and the variant CRC at the very end.
 *
 * PktLen counts 4-byte words from the LRH through the ICRC.
 *
 * Left out: packets with a GRH, multicast. */
#include <assert.h>
#include <string.h>

#include "framing.h"
#include "icrc.h"
#include "lrh.h"

static void ib_prepare(struct path *path, const struct nic_config *own,
                       const struct qp_config *config, uint32_t qpn, const struct qp_remote *remote)
{
    (void)qpn;
    assert(config->sl < SLS && own->vl_of_sl[config->sl] < CLASSES);
    uint8_t vl = own->vl_of_sl[config->sl];
    memset(path->klass, vl, sizeof path->klass);
    path->header[0] = (uint8_t)(vl << 4);
    path->header[1] = (uint8_t)(config->sl << 4 | LNH_IBA_LOCAL);
    write_be16(path->header + 2, (uint16_t)(remote->address + config->path_bits));
    write_be16(path->header + 6, (uint16_t)own->address);
}

static void ib_seal(const struct path *path, enum traffic traffic, struct frame *frame)
{
    uint8_t *lrh = frame->bytes;
    uint32_t to_icrc = frame->length - VCRC_BYTES;
    uint32_t covered = to_icrc - ICRC_BYTES;
    memcpy(lrh, path->header, LRH_BYTES);
    frame->klass = path->klass[traffic];
    write_be16(lrh + 4, (uint16_t)(to_icrc / 4));
    if (!frame_is_whole(frame))
        return;
    write_le32(lrh + covered, icrc_ib_local(lrh, covered));
    vcrc_renew(lrh, frame->length);
}

static bool is_own_lid(const struct nic_config *own, uint16_t lid)
{
    return (uint32_t)(lid - own->address) < 1u << own->lmc;
}

static enum verdict ib_open(const struct nic_config *own, const struct frame *frame,
                            struct packet *packet)
{
    const uint8_t *lrh = frame->bytes;
    if (frame->length < LRH_BYTES + BTH_BYTES + ICRC_BYTES + VCRC_BYTES ||
        frame->stored < LRH_BYTES + BTH_BYTES)
        return VERDICT_MALFORMED;
    uint32_t to_icrc = frame->length - VCRC_BYTES;
    if (frame_is_whole(frame) && crc16(lrh, to_icrc) != (lrh[to_icrc] | lrh[to_icrc + 1] << 8))
        return VERDICT_VCRC;
    if ((lrh[0] & LVER_MASK) != 0 || (read_be16(lrh + 4) & PKTLEN_MASK) * 4u != to_icrc)
        return VERDICT_MALFORMED;
    if ((lrh[1] & LNH_MASK) != LNH_IBA_LOCAL || !is_own_lid(own, lrh_dlid(lrh)))
        return VERDICT_OTHER;
    uint32_t covered = to_icrc - ICRC_BYTES;
    if (frame_is_whole(frame) && read_le32(lrh + covered) != icrc_ib_local(lrh, covered))
        return VERDICT_ICRC;
    uint32_t here = frame->stored < covered ? frame->stored : covered;
    if (!packet_parse(packet, lrh + LRH_BYTES, covered - LRH_BYTES, here - LRH_BYTES))
        return VERDICT_MALFORMED;
    packet->source = read_be16(lrh + 6);
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
