/* Feeds a script of events to one reaction point, for comparison with a second implementation.
 *
 *     cc_trace ALGORITHM LINE_RATE PARAMETER=VALUE ...
 *
 * The script has one event a line, in order of time:
 *
 *     time_ps cnp
 *     time_ps sent WIRE_BYTES
 *     time_ps ack PACKETS IN_FLIGHT MARKED RTT_PS
 *     time_ps lost
 *
 * After each event it prints one line: the algorithm's variables, the window and the gap. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nic/cc.h"

enum { WORDS = 3, PARAMETERS_MAX = 32 };

/* Splits each PARAMETER=VALUE at the equals sign, in place. */
static void read_values(struct parameter *parameters, double *values, int count, char **words)
{
    for (int i = 0; i < count; i++) {
        const char *name = strtok(words[i], "=");
        values[i] = strtod(strtok(NULL, "="), NULL);
        parameters[i] = (struct parameter){.name = name, .count = 1, .reals = &values[i]};
    }
}

static void print_state(const struct cc *cc)
{
    const struct parameter_field *field = cc->algorithm->variables;
    for (; field && field->name; field++)
        printf("%.17g ", *(const double *)((const char *)cc->priv + field->offset));
    printf("%" PRIu32 " %" PRId64 "\n", cc->window, cc->gap);
}

static void read_ack(struct cc *cc, picoseconds now)
{
    struct cc_ack ack;
    int marked;
    if (scanf("%" SCNu32 " %" SCNu32 " %d %" SCNd64, &ack.packets, &ack.in_flight, &marked,
              &ack.rtt) != 4)
        exit(2);
    ack.marked = marked;
    cc_acknowledged(cc, &ack, now);
}

static void read_sent(struct cc *cc, picoseconds now)
{
    uint32_t wire_bytes;
    if (scanf("%" SCNu32, &wire_bytes) != 1)
        exit(2);
    cc_sent(cc, wire_bytes, now);
}

static void happen(struct cc *cc, const char *event, picoseconds now)
{
    if (strcmp(event, "cnp") == 0)
        cc_on_becn(cc, now);
    else if (strcmp(event, "sent") == 0)
        read_sent(cc, now);
    else if (strcmp(event, "ack") == 0)
        read_ack(cc, now);
    else
        cc_lost(cc, now);
}

int main(int argc, char **argv)
{
    struct parameter parameters[PARAMETERS_MAX];
    double values[PARAMETERS_MAX];
    struct clock clock;
    struct arena arena = {0};
    struct cc cc = {0};
    if (argc < WORDS || argc > WORDS + PARAMETERS_MAX)
        return 2;
    read_values(parameters, values, argc - WORDS, argv + WORDS);
    struct cc_config config = {.algorithm = argv[1],
                               .parameters = parameters,
                               .parameter_count = (uint32_t)(argc - WORDS)};
    clock_init(&clock);
    if (!cc_init(&cc, &arena, &clock, &config))
        return 2;
    cc_connected(&cc, strtoull(argv[2], NULL, 10));

    int64_t now;
    char event[8];
    while (scanf("%" SCNd64 " %7s", &now, event) == 2) {
        clock_run_until(&clock, now);
        happen(&cc, event, now);
        print_state(&cc);
    }
    cc_stop(&cc);
    arena_free(&arena);
    return 0;
}
