/* RoCEv2 over IPv4 (IBTA annex A17).
 *
 *     destination MAC 6 | source MAC 6 | 8100, PCP, VID, if configured | 0800
 *     45 | DSCP, ECN | length | ID 0 | DF | TTL 64 | UDP | checksum | source | destination
 *     source port | 4791 | length | checksum 0
 *
 * Data is sent as ECN-capable, ECT(0). Acknowledgements and CNPs are not, since no sender could
 * relieve the congestion that they report. The UDP source port gives ECMP the entropy of the queue
 * pair, always within 0xC000-0xFFFF. PCP is the priority of the frame. Neither the ICRC nor any
 * length covers the tag.
 *
 * An arriving frame may have one VLAN tag, IPv4 options, any TTL and any ECN field.
 * Left out: IPv6, fragments, the UDP checksum (the ICRC covers the same bytes). */
#include <assert.h>
#include <string.h>

#include "headers/ipv4.h"
#include "headers/roce.h"
#include "headers/vlan.h"
#include "nic/framing.h"
#include "nic/icrc.h"

enum {
    ETHERNET_BYTES = 14,
    IPV4_BYTES = 20,
    UDP_BYTES = 8,
    HEADER_BYTES = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES,
    TAGGED_HEADER_BYTES = HEADER_BYTES + VLAN_TAG_BYTES,
    ETHERTYPE_IPV4 = 0x0800,
    IPV4_VERSION_AND_LENGTH = 0x45,
    IPV4_DONT_FRAGMENT = 0x4000,
    IPV4_FRAGMENT = 0x3FFF, /* the bits of more fragments and fragment offset */
    TIME_TO_LIVE = 64,
    PROTOCOL_UDP = 17,
    DSCPS = 64,
};

/* Over a whole header the result is 0 if the checksum in the header is valid. */
static uint16_t internet_checksum(const uint8_t *header, uint32_t bytes)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < bytes; i += 2)
        sum += read_be16(header + i);
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum = (sum & 0xFFFF) + (sum >> 16);
    return (uint16_t)~sum;
}

static void set_class(struct path *path, enum traffic traffic, uint8_t dscp, enum ecn ecn,
                      uint8_t priority)
{
    assert(dscp < DSCPS && priority < PCPS);
    path->tos[traffic] = (uint8_t)(dscp << 2 | ecn);
    path->tc[traffic] = priority;
}

/* Returns the start of the IPv4 header. */
static uint8_t *write_ethernet(uint8_t *ethernet, const struct nic_config *own)
{
    memcpy(ethernet, own->gateway_mac, 6);
    memcpy(ethernet + 6, own->port.mac, 6);
    if (own->tagged) {
        write_be16(ethernet + VLAN_TAG_OFFSET, ETHERTYPE_VLAN_TAG);
        write_be16(ethernet + VLAN_PCP_OFFSET, own->vid);
    }
    uint8_t *ip = ethernet + vlan_header_bytes(ethernet);
    write_be16(ip - 2, ETHERTYPE_IPV4);
    return ip;
}

static void roce_prepare(struct path *path, const struct nic_config *own,
                         const struct qp_config *config, uint32_t qpn,
                         const struct qp_remote *remote)
{
    memset(path->header, 0, sizeof path->header);
    uint8_t *ip = write_ethernet(path->header, own);
    ip[0] = IPV4_VERSION_AND_LENGTH;
    write_be16(ip + 6, IPV4_DONT_FRAGMENT);
    ip[8] = TIME_TO_LIVE;
    ip[9] = PROTOCOL_UDP;
    write_be32(ip + 12, own->address);
    write_be32(ip + 16, remote->address);

    uint8_t *udp = ip + IPV4_BYTES;
    write_be16(udp, roce_source_port(qpn, remote->qpn));
    write_be16(udp + 2, ROCE_UDP_PORT);

    const uint8_t *priority_of = own->qos_map.of_dscp;
    set_class(path, TRAFFIC_DATA, config->dscp, config->not_ect ? ECN_NOT_ECT : ECN_ECT0,
              priority_of[config->dscp]);
    set_class(path, TRAFFIC_ACKNOWLEDGE, config->ack_dscp, ECN_NOT_ECT,
              priority_of[config->ack_dscp]);
    set_class(path, TRAFFIC_CNP, config->cnp_dscp, ECN_NOT_ECT,
              config->cnp_prioritised ? config->cnp_priority : priority_of[config->cnp_dscp]);
}

static void roce_seal(const struct path *path, enum traffic traffic, struct frame *frame)
{
    uint32_t ethernet_bytes = vlan_header_bytes(path->header);
    memcpy(frame->bytes, path->header, ethernet_bytes + IPV4_BYTES + UDP_BYTES);
    frame->tc = path->tc[traffic];
    if (ethernet_bytes > ETHERNET_BYTES)
        frame->bytes[VLAN_PCP_OFFSET] |= (uint8_t)(frame->tc << VLAN_PCP_SHIFT);

    uint8_t *ip = frame->bytes + ethernet_bytes;
    uint32_t ip_bytes = frame->length - ethernet_bytes;
    ip[1] = path->tos[traffic];
    write_be16(ip + 2, (uint16_t)ip_bytes);
    write_be16(ip + 10, internet_checksum(ip, IPV4_BYTES));
    write_be16(ip + IPV4_BYTES + 4, (uint16_t)(ip_bytes - IPV4_BYTES));
    if (!frame_is_whole(frame))
        return;
    uint32_t covered = ip_bytes - ICRC_BYTES;
    write_le32(ip + covered, icrc_roce_ipv4(ip, covered));
}

/* Whether `here` stored bytes from an IPv4 header of `ip_bytes` on belong to a RoCEv2 packet for
 * this NIC. */
static bool is_ours(const struct nic_config *own, const uint8_t *ip, uint32_t ip_bytes,
                    uint32_t here)
{
    return ip[9] == PROTOCOL_UDP && (read_be16(ip + 6) & IPV4_FRAGMENT) == 0 &&
           ipv4_destination(ip) == own->address && here >= ip_bytes + UDP_BYTES &&
           read_be16(ip + ip_bytes + 2) == ROCE_UDP_PORT;
}

static enum verdict roce_open(const struct nic_config *own, const struct frame *frame,
                              struct packet *packet)
{
    uint32_t offset = ipv4_offset(frame->bytes, frame->stored);
    if (offset == 0 || memcmp(frame->bytes, own->port.mac, 6) != 0)
        return VERDICT_OTHER;
    const uint8_t *ip = frame->bytes + offset;
    uint32_t ip_bytes = (ip[0] & 0x0F) * 4u;
    uint32_t here = frame->stored - offset;
    if (!is_ours(own, ip, ip_bytes, here))
        return VERDICT_OTHER;

    const uint8_t *udp = ip + ip_bytes;
    uint32_t total = read_be16(ip + 2);
    if (total > frame->length - offset || total < ip_bytes + UDP_BYTES + BTH_BYTES + ICRC_BYTES ||
        read_be16(udp + 4) != total - ip_bytes || internet_checksum(ip, ip_bytes) != 0)
        return VERDICT_MALFORMED;
    uint32_t covered = total - ICRC_BYTES;
    if (frame_is_whole(frame) && read_le32(ip + covered) != icrc_roce_ipv4(ip, covered))
        return VERDICT_ICRC;
    uint32_t before = ip_bytes + UDP_BYTES;
    if (!packet_parse(packet, ip + before, covered - before,
                      (here < covered ? here : covered) - before))
        return VERDICT_MALFORMED;
    packet->ip = ip;
    packet->source = read_be32(ip + 12);
    packet->ce = ipv4_ecn(ip) == ECN_CE;
    return VERDICT_OK;
}

const struct framing_ops framing_roce = {
    .kind = FRAME_ETHERNET,
    .header_bytes = HEADER_BYTES,
    .trailer_bytes = ICRC_BYTES,
    .prepare = roce_prepare,
    .seal = roce_seal,
    .open = roce_open,
};

const struct framing_ops framing_roce_tagged = {
    .kind = FRAME_ETHERNET,
    .header_bytes = TAGGED_HEADER_BYTES,
    .trailer_bytes = ICRC_BYTES,
    .prepare = roce_prepare,
    .seal = roce_seal,
    .open = roce_open,
};
