/* Runs one reaction point through a script, for comparison with another implementation.
 *
 *     cc_trace dcqcn LINE_RATE G RAI RHAI RMIN BYTE_COUNTER F ALPHA_TIMER INCREASE_TIMER
 *     cc_trace dcqcn-nvidia LINE_RATE CLAMP_TGT_RATE CLAMP_TGT_RATE_AFTER_TIME_INC TIME_RESET
 *              BYTE_RESET THRESHOLD MAX_RATE AI_RATE HAI_RATE MIN_RATE GD MIN_DEC_FAC
 *              RATE_TO_SET_ON_FIRST_CNP G RTT MONITOR_PERIOD INITIAL_ALPHA
 *
 * The script has a line an event, `time_ps cnp` or `time_ps sent bytes`, in order
 * of time. For each event a line `current_rate target_rate` is printed, as they
 * are after it; 0 0 when the rate is not limited. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cc.h"

enum { WORDS = 3, PAPER_VALUES = 8, NVIDIA_VALUES = 16 };

static void read_paper(struct dcqcn_config *config, const double *value)
{
    *config = (struct dcqcn_config){.g = value[0],
                                    .rai_bps = (uint64_t)value[1],
                                    .rhai_bps = (uint64_t)value[2],
                                    .min_rate_bps = (uint64_t)value[3],
                                    .byte_counter_bytes = (uint64_t)value[4],
                                    .fast_recovery = (uint32_t)value[5],
                                    .alpha_timer_ps = (int64_t)value[6],
                                    .increase_timer_ps = (int64_t)value[7]};
}

static void read_nvidia(struct roce_cc_ecn_config *config, const double *value)
{
    *config = (struct roce_cc_ecn_config){.clamp_tgt_rate = value[0] != 0,
                                          .clamp_tgt_rate_after_time_inc = value[1] != 0,
                                          .rpg_time_reset_ps = (int64_t)value[2],
                                          .rpg_byte_reset = (uint64_t)value[3],
                                          .rpg_threshold = (uint32_t)value[4],
                                          .rpg_max_rate_bps = (uint64_t)value[5],
                                          .rpg_ai_rate_bps = (uint64_t)value[6],
                                          .rpg_hai_rate_bps = (uint64_t)value[7],
                                          .rpg_min_rate_bps = (uint64_t)value[8],
                                          .rpg_gd = (uint32_t)value[9],
                                          .rpg_min_dec_fac = value[10],
                                          .rate_to_set_on_first_cnp_bps = (uint64_t)value[11],
                                          .dce_tcp_g = value[12],
                                          .dce_tcp_rtt_ps = (int64_t)value[13],
                                          .rate_reduce_monitor_period_ps = (int64_t)value[14],
                                          .initial_alpha_value = value[15]};
}

static bool read_config(struct qp_config *config, int values, char **words)
{
    double value[NVIDIA_VALUES];
    for (int i = 0; i < values && i < NVIDIA_VALUES; i++)
        value[i] = strtod(words[i], NULL);
    if (values == PAPER_VALUES)
        read_paper(&config->dcqcn, value);
    else if (values == NVIDIA_VALUES)
        read_nvidia(&config->roce_cc_ecn, value);
    return values == PAPER_VALUES || values == NVIDIA_VALUES;
}

static void print_rates(const struct cc *cc)
{
    const struct dcqcn *paper = &cc->dcqcn;
    const struct dcqcn_nvidia *nvidia = &cc->dcqcn_nvidia;
    bool is_paper = cc->algorithm == &cc_dcqcn;
    bool limiting = is_paper ? paper->limiting : nvidia->limiting;
    double current = is_paper ? paper->current_rate : nvidia->current_rate;
    double target = is_paper ? paper->target_rate : nvidia->target_rate;
    printf("%.17g %.17g\n", limiting ? current : 0, limiting ? target : 0);
}

int main(int argc, char **argv)
{
    struct qp_config config = {0};
    if (argc < WORDS || !read_config(&config, argc - WORDS, argv + WORDS))
        return 2;
    struct clock clock;
    clock_init(&clock);
    struct cc cc = {.algorithm = cc_named(argv[1]),
                    .clock = &clock,
                    .line_rate_bps = strtoull(argv[2], NULL, 10)};
    if (!cc.algorithm || !cc.algorithm->init(&cc, &config))
        return 2;

    int64_t at;
    char event[8];
    uint32_t bytes;
    while (scanf("%" SCNd64 " %7s", &at, event) == 2) {
        clock_run_until(&clock, at);
        if (strcmp(event, "cnp") == 0)
            cc_notified(&cc, at);
        else if (scanf("%" SCNu32, &bytes) == 1)
            cc_sent(&cc, bytes, at);
        print_rates(&cc);
    }
    cc_stop(&cc);
    return 0;
}
