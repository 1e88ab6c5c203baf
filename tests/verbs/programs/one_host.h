/* Two connected queue pairs of one NIC, for test programs that need no other host. */
#ifndef ONE_HOST_H
#define ONE_HOST_H

#include "two_ends.h"

enum { WINDOW_BYTES = 16 * 4096 };

static struct end near_end, far_end;
static char window[WINDOW_BYTES] __attribute__((aligned(4096))); /* the peer's memory */

static void to_rts(struct end *one, struct end *other)
{
    end_to_init(one);
    end_to_init(other);
    end_to_rts(one);
    end_to_rts(other);
}

/* Their queue pairs must exist. */
static void connect_ends(struct end *one, struct end *other)
{
    one->far = other->own;
    other->far = one->own;
    to_rts(one, other);
}

static void connect_both(void)
{
    near_end = end_open(NULL);
    far_end = near_end;
    struct ibv_cq *cq = ibv_create_cq(near_end.context, 64, NULL, NULL, 0);
    MUST(cq);
    end_add_qp(&near_end, cq, NULL, 16);
    end_add_qp(&far_end, cq, NULL, 16);
    connect_ends(&near_end, &far_end);
    end_register(&far_end, window, sizeof window);
}

struct test_case {
    const char *name;
    void (*run)(void);
};

/* Runs the case that the first argument names, with both queue pairs connected. Returns the exit
 * code: 2 if there is no such case. */
static int run_case(const struct test_case *cases, size_t count, int argc, char **argv)
{
    MUST(argc > 1);
    connect_both();
    for (size_t i = 0; i < count; i++)
        if (strcmp(cases[i].name, argv[1]) == 0) {
            cases[i].run();
            return 0;
        }
    return 2;
}

#endif
