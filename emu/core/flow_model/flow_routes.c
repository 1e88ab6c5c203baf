/* The choices of ECMP for many flows at once, by the code that chooses for packets. */
#include <string.h>

#include "flow_model/flow_model_api.h"
#include "headers/roce.h"
#include "switch/ecmp.h"

enum {
    IPV4_BYTES = 20,
    UDP_BYTES = 8,
    BTH_BYTES = 12,
    VERSION_AND_LENGTH = 0x45,
    PROTOCOL = 9,
    UDP = 17,
    SOURCE = 12,
    DESTINATION = 16,
    DEST_QP = IPV4_BYTES + UDP_BYTES + 5,
    FIRST_OCTET = 10, /* hosts are in 10.0.0.0/16 */
};

struct headers {
    uint8_t bytes[IPV4_BYTES + UDP_BYTES + BTH_BYTES];
};

static void put_16(uint8_t *bytes, uint16_t value)
{
    bytes[0] = (uint8_t)(value >> 8);
    bytes[1] = (uint8_t)value;
}

static struct headers headers_of(uint16_t source, uint16_t destination, uint16_t udp_source)
{
    struct headers headers = {{VERSION_AND_LENGTH}};
    headers.bytes[PROTOCOL] = UDP;
    headers.bytes[SOURCE] = headers.bytes[DESTINATION] = FIRST_OCTET;
    put_16(headers.bytes + SOURCE + 2, source);
    put_16(headers.bytes + DESTINATION + 2, destination);
    put_16(headers.bytes + IPV4_BYTES, udp_source);
    put_16(headers.bytes + IPV4_BYTES + 2, ROCE_UDP_PORT);
    return headers;
}

void flow_model_ecmp(uint64_t seed, const uint16_t *sources, const uint16_t *destinations,
                     const uint16_t *udp_sources, const uint32_t *qpns, uint32_t count,
                     const uint16_t *ports, uint16_t port_count, uint16_t *chosen)
{
    for (uint32_t i = 0; i < count; i++) {
        struct headers own = headers_of(sources[i], destinations[i], udp_sources[i]);
        uint32_t basis = ecmp_basis(seed, own.bytes, sizeof own.bytes);
        if (qpns) {
            own.bytes[DEST_QP] = (uint8_t)(qpns[i] >> 16);
            put_16(own.bytes + DEST_QP + 1, (uint16_t)qpns[i]);
            basis = ecmp_basis_of_qp(basis, own.bytes, sizeof own.bytes);
        }
        chosen[i] = ecmp_choose(basis, ports, port_count);
    }
}

void flow_model_source_ports(const uint32_t *qpns, const uint32_t *remote_qpns, uint32_t count,
                             uint16_t *ports)
{
    for (uint32_t i = 0; i < count; i++)
        ports[i] = roce_source_port(qpns[i], remote_qpns[i]);
}
