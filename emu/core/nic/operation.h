/* An operation of a workload (nic_api.h) is a message, or work if it has no queue pair. Here is
 * what follows from its fields, and whether they are valid.
 *
 *     of a message        local_va, lkey       bytes at its NIC
 *                         remote_va, rkey      bytes at the other end, a SEND's receive too
 *                         sum_va, sum_key      bytes there that it is added to, once delivered
 *
 * All of these must be registered memory of their NIC. That is checked before a workload begins,
 * and so are the numbers of flows, devices and other operations. */
#ifndef EMU_NIC_OPERATION_H
#define EMU_NIC_OPERATION_H

#include "nic/nic_api.h"

bool operation_is_work(const struct operation *operation);

/* Whether it is completed when it is acknowledged, and not when it has left. */
bool operation_is_reliable(const struct operation *operation);

bool operation_is_datagram(const struct operation *operation);

/* Whether the other end must have posted a receive. */
bool operation_takes_receive(const struct operation *operation);

/* Of that receive: a datagram's has room for a GRH before it. */
uint32_t operation_receive_bytes(const struct operation *operation);

/* The receiver's bytes that a message is added to, and its own there; NULL when they are elided. */
bool operation_find_summands(const struct operation *operation, uint8_t **sum, uint8_t **summand);

/* Whether a workload of all these can be carried out. */
bool operations_are_valid(const struct workload_config *config);

/* Whether this process runs the sender or the receiver of an operation. */
bool operation_is_here(const struct workload_config *config, uint32_t number);

#endif
