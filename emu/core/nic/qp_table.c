#include "nic/qp_table.h"

#include "nic/qp_lifecycle.h"

/* Numbers have 24 bits. The last is for multicast. */
enum { QPN_MAX = (1 << 24) - 2 };

struct qp *qp_place(const struct nic *nic, uint32_t number)
{
    uint32_t place = number - FIRST_QPN;
    if (place >= nic->qp_count && nic->config.max_qps)
        place %= nic->config.max_qps;
    return place < nic->qp_count ? &nic->qps[place] : NULL;
}

struct qp *qp_numbered(const struct nic *nic, uint32_t number)
{
    if (number == GSI_QPN)
        return nic->gsi;
    struct qp *place = qp_place(nic, number);
    return place && qp_exists(place) && place->qpn == number ? place : NULL;
}

/* NULL when all places are in use. */
static struct qp *next_place(const struct nic *nic)
{
    if (nic->qp_count < nic->config.max_qps)
        return &nic->qps[nic->qp_count];
    return nic->first_free ? &nic->qps[nic->first_free - 1] : NULL;
}

static uint32_t next_number(const struct nic *nic, const struct qp *place)
{
    uint32_t first = FIRST_QPN + (uint32_t)(place - nic->qps);
    if (!place->qpn || place->qpn > QPN_MAX - nic->config.max_qps)
        return first;
    return place->qpn + nic->config.max_qps;
}

static void take(struct nic *nic, const struct qp *place, uint32_t next_free)
{
    if (place == &nic->qps[nic->qp_count])
        nic->qp_count++;
    else
        nic->first_free = next_free;
}

static void set_free(struct nic *nic, struct qp *place, uint32_t number)
{
    uint32_t name = (uint32_t)(place - nic->qps) + 1;
    *place = (struct qp){.qpn = number};
    if (nic->first_free)
        nic->qps[nic->last_free - 1].next_free = name;
    else
        nic->first_free = name;
    nic->last_free = name;
}

struct qp *nic_add_qp(struct nic *nic, const struct qp_config *config)
{
    struct qp *place = next_place(nic);
    if (!place)
        return NULL;
    struct qp before = {.qpn = place->qpn, .next_free = place->next_free};
    if (qp_init(place, nic, next_number(nic, place), config)) {
        take(nic, place, before.next_free);
        return place;
    }
    *place = before;
    return NULL;
}

struct qp *nic_add_gsi(struct nic *nic, const struct qp_config *config)
{
    struct qp_config own = *config;
    own.transport = TRANSPORT_UD;
    own.qkey = GSI_QKEY;
    struct qp *qp = nic->gsi ? NULL : arena_take(nic->arena, 1, sizeof *qp);
    if (!qp || !qp_init(qp, nic, GSI_QPN, &own))
        return NULL;
    nic->gsi = qp;
    return qp;
}

void nic_remove_qp(struct nic *nic, struct qp *qp, picoseconds now)
{
    qp_end(qp, now);
    set_free(nic, qp, qp->qpn);
    port_kick(&nic->port, now);
}
