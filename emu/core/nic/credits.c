#include "nic/credits.h"

#include "nic/psn.h"

static const uint32_t receives_of_code[] = {
    0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

enum { CODES = sizeof receives_of_code / sizeof *receives_of_code };

uint8_t credits_code(uint32_t receives)
{
    uint8_t code = CODES - 1;
    while (receives_of_code[code] > receives)
        code--;
    return code;
}

/* An old ACK does not lower the limit. An MSN has 24 bits; it stands for the newest message with
 * these low bits. */
void credits_received(struct requester *requester, const struct aeth *aeth)
{
    uint8_t code = aeth->syndrome & AETH_CODE;
    requester->limited = code != AETH_ACK;
    if (!requester->limited)
        return;
    uint32_t executed = requester->ssn - ((requester->ssn - aeth->msn) & PSN_MASK);
    uint32_t limit = executed + receives_of_code[code];
    if ((int32_t)(limit - requester->ssn_limit) > 0)
        requester->ssn_limit = limit;
}
