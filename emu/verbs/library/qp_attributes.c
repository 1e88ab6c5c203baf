/* The attributes that ibv_modify_qp needs and takes, by transport and step of states.
 *
 *     RESET ─▶ INIT ─▶ RTR ─▶ RTS ◀──▶ SQD        SQE ─▶ RTS        (all) ─▶ RESET, ERR
 *
 * The table is that of IBTA 11.2.5.2 and of ibv_modify_qp(3); the kernel refuses a call by it
 * before a driver sees the call. What the program expects of the present state (IBV_QP_CUR_STATE)
 * is the beginning of the step; the NIC refuses the call if the expectation is wrong.
 *
 * Left out are alternate paths, which the NIC does not have. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "library.h"

/* The kernel's and libibverbs' functions have no attributes beyond this one. */
enum { LAST = IBV_QP_DEST_QPN, KNOWN = (LAST << 1) - 1 };

/* Parts of the table. */
enum {
    PARTITION = IBV_QP_PKEY_INDEX,
    FIRST = IBV_QP_PKEY_INDEX | IBV_QP_PORT,
    PATH = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
    ANSWERS = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
    RETRIES = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
    ACCESS = IBV_QP_ACCESS_FLAGS,
    TIMER = IBV_QP_MIN_RNR_TIMER,
    NOW = IBV_QP_CUR_STATE,
    DRAINED = IBV_QP_EN_SQD_ASYNC_NOTIFY,
};

/* Attributes by transport. */
struct by_transport {
    int rc, uc, ud;
};

static const struct step {
    enum ibv_qp_state from, to;
    struct by_transport needs, takes;
} steps[] = {
    {.from = IBV_QPS_RESET,
     .to = IBV_QPS_INIT,
     .needs = {.rc = FIRST | ACCESS, .uc = FIRST | ACCESS, .ud = FIRST | IBV_QP_QKEY}},
    {.from = IBV_QPS_INIT,
     .to = IBV_QPS_INIT,
     .takes = {.rc = FIRST | ACCESS, .uc = FIRST | ACCESS, .ud = FIRST | IBV_QP_QKEY}},
    {.from = IBV_QPS_INIT,
     .to = IBV_QPS_RTR,
     .needs = {.rc = PATH | ANSWERS, .uc = PATH},
     .takes = {.rc = PARTITION | ACCESS, .uc = PARTITION | ACCESS, .ud = PARTITION | IBV_QP_QKEY}},
    {.from = IBV_QPS_RTR,
     .to = IBV_QPS_RTS,
     .needs = {.rc = IBV_QP_SQ_PSN | RETRIES, .uc = IBV_QP_SQ_PSN, .ud = IBV_QP_SQ_PSN},
     .takes = {.rc = NOW | ACCESS | TIMER, .uc = NOW | ACCESS, .ud = NOW | IBV_QP_QKEY}},
    {.from = IBV_QPS_RTS,
     .to = IBV_QPS_RTS,
     .takes = {.rc = NOW | ACCESS | TIMER, .uc = NOW | ACCESS, .ud = NOW | IBV_QP_QKEY}},
    {.from = IBV_QPS_RTS,
     .to = IBV_QPS_SQD,
     .takes = {.rc = DRAINED, .uc = DRAINED, .ud = DRAINED}},
    {.from = IBV_QPS_SQD,
     .to = IBV_QPS_RTS,
     .takes = {.rc = NOW | ACCESS | TIMER, .uc = NOW | ACCESS, .ud = NOW | IBV_QP_QKEY}},
    {.from = IBV_QPS_SQD,
     .to = IBV_QPS_SQD,
     .takes = {.rc = FIRST | IBV_QP_AV | RETRIES | ANSWERS | ACCESS,
               .uc = PARTITION | IBV_QP_AV | ACCESS,
               .ud = PARTITION | IBV_QP_QKEY}},
    {.from = IBV_QPS_SQE,
     .to = IBV_QPS_RTS,
     .takes = {.uc = NOW | ACCESS, .ud = NOW | IBV_QP_QKEY}},
};

static const struct step *find_step(enum ibv_qp_state from, enum ibv_qp_state to)
{
    static const struct step end = {0}; /* to RESET and ERR, without attributes */
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
        return &end;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (steps[i].from == from && steps[i].to == to)
            return &steps[i];
    return NULL;
}

static int of_transport(const struct by_transport *masks, enum ibv_qp_type type)
{
    return type == IBV_QPT_RC ? masks->rc : type == IBV_QPT_UC ? masks->uc : masks->ud;
}

/* ---- reasons ----------------------------------------------------------------------------------
 */

static const char *name_of_state(enum ibv_qp_state state)
{
    static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    return state <= IBV_QPS_ERR ? names[state] : "no state";
}

static const char *name_of_attribute(int bit)
{
    static const char *const names[] = {
        "STATE",
        "CUR_STATE",
        "EN_SQD_ASYNC_NOTIFY",
        "ACCESS_FLAGS",
        "PKEY_INDEX",
        "PORT",
        "QKEY",
        "AV",
        "PATH_MTU",
        "TIMEOUT",
        "RETRY_CNT",
        "RNR_RETRY",
        "RQ_PSN",
        "MAX_QP_RD_ATOMIC",
        "ALT_PATH",
        "MIN_RNR_TIMER",
        "SQ_PSN",
        "MAX_DEST_RD_ATOMIC",
        "PATH_MIG_STATE",
        "CAP",
        "DEST_QPN",
    };
    return names[bit];
}

static void list_attributes(char *text, size_t room, int mask)
{
    *text = 0;
    for (int bit = 0; bit < 21; bit++) {
        size_t used = strlen(text);
        if (mask & 1 << bit)
            snprintf(text + used, room - used, " IBV_QP_%s", name_of_attribute(bit));
    }
}

static void say_which(const char *what, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
    char names[21 * 28];
    if (!mask)
        return;
    list_attributes(names, sizeof names, mask);
    debug("ibv_modify_qp from %s to %s %s%s", name_of_state(from), name_of_state(to), what, names);
}

/* ---- checks -----------------------------------------------------------------------------------
 */

static int check_step(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
    const struct step *step = find_step(from, to);
    if (!step) {
        debug("ibv_modify_qp: there is no way from %s to %s; the order is RESET, INIT, RTR, RTS",
              name_of_state(from), name_of_state(to));
        return EINVAL;
    }
    int needs = of_transport(&step->needs, type), takes = of_transport(&step->takes, type);
    int missing = needs & ~mask, wrong = mask & ~(needs | takes | IBV_QP_STATE);
    say_which("needs", from, to, missing);
    say_which("does not take", from, to, wrong);
    return missing || wrong ? EINVAL : 0;
}

int check_qp_attributes(const struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    if (mask & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE))
        return unsupported("an alternate path");
    if (mask & ~KNOWN)
        return unsupported("an attribute beyond IBV_QP_DEST_QPN, as IBV_QP_RATE_LIMIT,");
    enum ibv_qp_state from = mask & IBV_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
    enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
    int error = from > IBV_QPS_ERR || to > IBV_QPS_ERR ? EINVAL : 0;
    if (error)
        debug("ibv_modify_qp: a state is %s", name_of_state(IBV_QPS_UNKNOWN));
    else
        error = check_step(qp->qp_type, from, to, mask);
    bool has_port = !(mask & IBV_QP_PORT) || is_port(attr->port_num);
    return has_port ? error : EINVAL;
}
