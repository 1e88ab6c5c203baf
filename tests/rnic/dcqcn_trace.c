/* Runs one reaction point through a script, for comparison with another implementation.
 *
 *     dcqcn_trace LINE_RATE G RAI RHAI RMIN BYTE_COUNTER F ALPHA_TIMER INCREASE_TIMER < script
 *
 * The script has a line an event, `time_ps cnp` or `time_ps sent bytes`, in order
 * of time. For each event a line `current_rate target_rate` is printed, as they
 * are after it; 0 0 when the rate is not limited. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cc.h"

enum { ARGUMENTS = 10 };

int main(int argc, char **argv)
{
    if (argc != ARGUMENTS)
        return 2;
    struct clock clock;
    clock_init(&clock);
    struct qp_config config = {.dcqcn = {.g = strtod(argv[2], NULL),
                                         .rai_bps = strtoull(argv[3], NULL, 10),
                                         .rhai_bps = strtoull(argv[4], NULL, 10),
                                         .min_rate_bps = strtoull(argv[5], NULL, 10),
                                         .byte_counter_bytes = strtoull(argv[6], NULL, 10),
                                         .fast_recovery = (uint32_t)strtoul(argv[7], NULL, 10),
                                         .alpha_timer_ps = strtoll(argv[8], NULL, 10),
                                         .increase_timer_ps = strtoll(argv[9], NULL, 10)}};
    struct cc cc = {
        .algorithm = &cc_dcqcn, .clock = &clock, .line_rate_bps = strtoull(argv[1], NULL, 10)};
    if (!cc_dcqcn.init(&cc, &config))
        return 2;

    int64_t at;
    char event[8];
    uint32_t bytes;
    while (scanf("%" SCNd64 " %7s", &at, event) == 2) {
        clock_run_until(&clock, at);
        if (strcmp(event, "cnp") == 0)
            cc_dcqcn.notified(&cc, at);
        else if (scanf("%" SCNu32, &bytes) == 1)
            cc_dcqcn.sent(&cc, bytes, at);
        bool limiting = cc.dcqcn.limiting;
        printf("%.17g %.17g\n", limiting ? cc.dcqcn.current_rate : 0,
               limiting ? cc.dcqcn.target_rate : 0);
    }
    clock_free(&clock);
    return 0;
}
