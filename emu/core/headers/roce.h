/* RoCEv2's UDP ports (IBTA annex A17).
 *
 * Plain declarations only, which Python reads too. */
#ifndef EMU_HEADERS_ROCE_H
#define EMU_HEADERS_ROCE_H

#include <stdint.h>

enum { ROCE_UDP_PORT = 4791 };

/* The UDP source port of a connected queue pair's packets. ECMP distinguishes flows between the
 * same hosts by it. It is the same in both directions, and lies within 0xC000-0xFFFF. */
uint16_t roce_source_port(uint32_t qpn, uint32_t remote_qpn);

#endif
