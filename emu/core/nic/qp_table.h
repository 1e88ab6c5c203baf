/* The queue pairs of a NIC, and their numbers. Each has a place in a table:
 *
 *     number = FIRST_QPN + place + table size * how often the place was used before
 *
 * The queue pair of a free place has no NIC, and the last number there. New queue pairs take places
 * that were never used, and then the one that has been free longest. So a number is used again when
 * all others of its place were, and late packets of an old connection do not meet a new one.
 *
 * The queue pair of General Services, number 1, has no place in the table. */
#ifndef EMU_NIC_QP_TABLE_H
#define EMU_NIC_QP_TABLE_H

#include "nic/nic.h"

/* Whether the place has a queue pair. */
static inline bool qp_exists(const struct qp *place)
{
    return place->nic;
}

/* Its place, or that of another: the memory there is not looked at. NULL: there is none for sure.
 */
struct qp *qp_place(const struct nic *nic, uint32_t number);

/* NULL when there is no queue pair of that number. */
struct qp *qp_numbered(const struct nic *nic, uint32_t number);

#endif
