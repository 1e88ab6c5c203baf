/* ICRC and VCRC, compared with packets of real hardware and with frames given byte for byte. */
#include <string.h>

#include "headers/crc16.h"
#include "nic/icrc.h"
#include "testbench.h"

static uint32_t from_hex(const char *hex, uint8_t *bytes)
{
    uint32_t length = 0;
    for (; *hex; hex++) {
        if (*hex == ' ')
            continue;
        unsigned value;
        EXPECT(sscanf(hex, "%2x", &value) == 1);
        bytes[length++] = (uint8_t)value;
        hex++;
    }
    return length;
}

static void expect_icrc(uint32_t icrc, const char *hex)
{
    uint8_t want[4];
    EXPECT_EQUAL(4, from_hex(hex, want));
    EXPECT_EQUAL(read_le32(want), icrc);
}

TEST(icrc_matches_a_real_roce_ack)
{
    uint8_t ip[256];
    uint32_t length = from_hex("450200300000400040112d60c0a84606c0a84604 004812b7001c0000 "
                               "1140ffff0000004500000000 06000001",
                               ip);
    expect_icrc(icrc_roce_ipv4(ip, length), "259cc216");
}

TEST(icrc_ignores_fields_that_switches_change)
{
    uint8_t ip[256];
    uint32_t length = from_hex("456a0034000040004011264d0a0000010a000002 c12312b700200000 "
                               "0470ffff0000001180000001 68656c6c6f000000",
                               ip);
    expect_icrc(icrc_roce_ipv4(ip, length), "193bad22");
    ip[1] |= 3;   /* CE */
    ip[8] -= 1;   /* TTL */
    ip[10] ^= 55; /* checksum */
    expect_icrc(icrc_roce_ipv4(ip, length), "193bad22");
    ip[4] ^= 1; /* the ICRC covers the identification */
    EXPECT(icrc_roce_ipv4(ip, length) != 0x22ad3b19);
}

static void expect_ib(const char *packet, const char *icrc, const char *vcrc)
{
    uint8_t lrh[256], want[2];
    uint32_t length = from_hex(packet, lrh);
    bool global = (lrh[1] & 3) == 3;
    expect_icrc(global ? icrc_ib_global(lrh, length) : icrc_ib_local(lrh, length), icrc);
    from_hex(icrc, lrh + length);
    uint16_t crc = crc16(lrh, length + ICRC_BYTES);
    from_hex(vcrc, want);
    EXPECT_EQUAL(want[0] | want[1] << 8, crc);
}

TEST(icrc_and_vcrc_match_infiniband_packets)
{
    expect_ib("0002000400070001 1140ffff0087040800d40a55 1f000001", "a8035550", "3081");
    expect_ib("7012375C000E17D2 0A2024870087B1B3000DEC2A 01710A1C015D400238F27A050000000E "
              "BB884D85FD5CFBA4728BC0690ED4 0000",
              "9625B75A", "45FA");
    expect_ib("7013375C001817D2 60000000 0030 1B 40 fe80000000000000000000000000000a "
              "fe80000000000000000000000000000b 0A2024870087B1B3000DEC2A "
              "01710A1C015D400238F27A050000000E BB884D85FD5CFBA4728BC0690ED4 0000",
              "EF1D3580", "37CD");
}

static struct nic_config own_config(void)
{
    struct nic_config config = {.address = 0x0A000002, .port = {.mac = {2, 0, 10, 0, 0, 2}}};
    for (int dscp = 0; dscp < 64; dscp++)
        config.qos_map.of_dscp[dscp] = (uint8_t)(dscp >> 3);
    return config;
}

static struct path path_between(uint32_t qpn, uint32_t remote_qpn)
{
    struct path path;
    struct nic_config own = own_config();
    struct qp_remote remote = {.qpn = remote_qpn, .address = 0x0A000001};
    framing_roce.prepare(&path, &own, &bench_qp_config, qpn, &remote);
    return path;
}

TEST(udp_source_port_follows_the_kernels_rule)
{
    struct path path = path_between(0x11, 0x22);
    EXPECT_EQUAL(0xC242, read_be16(path.header + 34));
    path = path_between(0x123456, 0x654321);
    EXPECT_EQUAL(0xF787, read_be16(path.header + 34));
}

TEST(cnp_is_correct_byte_for_byte)
{
    uint8_t want[128], bytes[128];
    uint32_t length = from_hex("000000000000 02000a000002 0800 "
                               "45c0003c00004000401125ef0a0000020a000001 c00012b700280000 "
                               "8100ffff400000d200000000 00000000000000000000000000000000 ea37a322",
                               want);
    struct path path = path_between(0xD2, 0xD2);
    write_be16(path.header + 34, 0xC000); /* as in the known frame */
    struct nic nic = {.framing = &framing_roce};
    struct arena arena = {0};
    struct frame_pool pool;
    EXPECT(frame_pool_init(&pool, &arena, 1, 1, 512));
    nic.pool = &pool;
    struct qp qp = {
        .nic = &nic, .remote = {.qpn = 0xD2}, .path = path, .config = {.pkey = PKEY_DEFAULT}};
    struct frame *frame = response_queue_notify(&qp);
    memcpy(bytes, frame->bytes, frame->length);
    EXPECT_EQUAL(length, frame->length);
    EXPECT(memcmp(bytes, want, length) == 0);
    EXPECT_EQUAL(6, frame->tc);
    EXPECT_EQUAL(1, nic.counters.np_cnp_sent);
    arena_free(&arena);
}

static enum verdict open_bytes(uint8_t *bytes, uint32_t length, struct packet *packet)
{
    struct nic_config own = own_config();
    struct frame frame = {
        .kind = FRAME_ETHERNET, .bytes = bytes, .length = length, .stored = (uint16_t)length};
    return framing_roce.open(&own, &frame, packet);
}

/* SEND Only "hello" from 10.0.0.1 to 10.0.0.2, after the Ethernet header. */
static const char hello[] = "456a0034000040004011264d0a0000010a000002 c12312b700200000 "
                            "0470ffff0000001180000001 68656c6c6f000000 193bad22";

TEST(frame_can_carry_a_vlan_tag_and_padding)
{
    uint8_t bytes[128] = {0};
    struct packet packet;
    uint32_t length = from_hex("02000a000002 02000a000001 8100 6001 0800", bytes);
    length += from_hex(hello, bytes + length);
    EXPECT_EQUAL(VERDICT_OK, open_bytes(bytes, length, &packet));
    EXPECT_EQUAL(VERDICT_OK, open_bytes(bytes, length + 9, &packet));
    EXPECT(packet.payload_bytes == 5 && memcmp(packet.payload, "hello", 5) == 0);
    EXPECT(packet.type == PACKET_SEND && packet.starts && packet.ends && packet.bth.ack_req);
    EXPECT_EQUAL(0x0A000001, packet.source);
    EXPECT(!packet.ce);
}

TEST(ce_is_read_from_the_ip_header)
{
    uint8_t bytes[128];
    struct packet packet;
    uint32_t length = from_hex("02000a000002 02000a000001 0800", bytes);
    length += from_hex(hello, bytes + length);
    bytes[15] |= 3;
    bytes[25] -= 1; /* which also updates the checksum */
    EXPECT_EQUAL(VERDICT_OK, open_bytes(bytes, length, &packet));
    EXPECT(packet.ce);
}

TEST(wrong_ip_checksum_is_rejected)
{
    uint8_t bytes[128];
    struct packet packet;
    uint32_t length = from_hex("02000a000002 02000a000001 0800", bytes);
    length += from_hex(hello, bytes + length);
    bytes[25] ^= 1;
    EXPECT_EQUAL(VERDICT_MALFORMED, open_bytes(bytes, length, &packet));
}

TEST(truncated_frame_is_rejected_at_every_length)
{
    uint8_t bytes[128];
    struct packet packet;
    uint32_t length = from_hex("02000a000002 02000a000001 0800", bytes);
    length += from_hex(hello, bytes + length);
    for (uint32_t cut = 0; cut < length; cut++) {
        uint8_t *exact =
            malloc(cut ? cut : 1); /* so that a sanitizer detects reads beyond the end */
        memcpy(exact, bytes, cut);
        EXPECT(open_bytes(exact, cut, &packet) != VERDICT_OK);
        free(exact);
    }
}

MAIN(RUN(icrc_matches_a_real_roce_ack), RUN(icrc_ignores_fields_that_switches_change),
     RUN(icrc_and_vcrc_match_infiniband_packets), RUN(udp_source_port_follows_the_kernels_rule),
     RUN(cnp_is_correct_byte_for_byte), RUN(frame_can_carry_a_vlan_tag_and_padding),
     RUN(ce_is_read_from_the_ip_header), RUN(wrong_ip_checksum_is_rejected),
     RUN(truncated_frame_is_rejected_at_every_length))
