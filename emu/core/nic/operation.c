#include "nic/operation.h"

#include "nic/mr.h"
#include "nic/nic.h"

bool operation_takes_receive(const struct operation *operation)
{
    return verb_takes_receive(operation->verb);
}

bool operation_is_work(const struct operation *operation)
{
    return !operation->qp;
}

bool operation_is_reliable(const struct operation *operation)
{
    return operation_is_work(operation) || operation->qp->config.transport == TRANSPORT_RC;
}

bool operation_is_datagram(const struct operation *operation)
{
    return !operation_is_work(operation) && operation->qp->config.transport == TRANSPORT_UD;
}

uint32_t operation_receive_bytes(const struct operation *operation)
{
    return operation->length + (operation_is_datagram(operation) ? GRH_BYTES : 0);
}

/* Whether a queue pair may use this memory. Another process checks its own. */
static bool may_use(const struct qp *qp, uint32_t key, uint64_t va, uint32_t length,
                    uint32_t access)
{
    uint8_t *bytes;
    return !qp->nic || mr_find(&qp->nic->mrs, qp->config.pd, key, va, length, access, &bytes);
}

/* Whether the local memory is registered at the sender's NIC, and the memory of the receive at the
 * receiver's. */
static bool memory_is_valid(const struct operation *operation)
{
    if (operation->length == 0)
        return true;
    uint32_t access = operation->verb >= VERB_READ ? ACCESS_LOCAL_WRITE : 0;
    return may_use(operation->qp, operation->lkey, operation->local_va, operation->length,
                   access) &&
           (!operation_takes_receive(operation) ||
            may_use(operation->qp->peer, operation->rkey, operation->remote_va,
                    operation_receive_bytes(operation), ACCESS_LOCAL_WRITE));
}

bool operation_find_summands(const struct operation *operation, uint8_t **sum, uint8_t **summand)
{
    const struct qp *qp = operation->qp->peer;
    const struct mr_table *table = &qp->nic->mrs;
    return mr_find(table, qp->config.pd, operation->sum_key, operation->sum_va, operation->length,
                   ACCESS_LOCAL_WRITE, sum) &&
           mr_find(table, qp->config.pd, operation->rkey, operation->remote_va, operation->length,
                   0, summand);
}

static bool sum_is_valid(const struct operation *operation)
{
    uint8_t *sum, *summand;
    return operation->sum_key == 0 || !operation->qp->peer->nic ||
           (operation->verb < VERB_READ && operation->length % sizeof(float) == 0 &&
            operation_find_summands(operation, &sum, &summand));
}

static bool message_is_valid(const struct operation *operation)
{
    return operation->qp->peer && operation->verb >= 0 && operation->verb < VERBS &&
           operation->length <= MESSAGE_MAX && memory_is_valid(operation) &&
           sum_is_valid(operation);
}

static bool operation_is_valid(const struct operation *operation,
                               const struct workload_config *config)
{
    return operation->host < config->host_count && operation->far < config->host_count &&
           operation->flow < config->flow_count && operation->device < config->device_count &&
           operation->first_dependent <= config->dependent_count &&
           operation->dependent_count <= config->dependent_count - operation->first_dependent &&
           (operation_is_work(operation) || message_is_valid(operation));
}

bool operation_is_here(const struct workload_config *config, uint32_t number)
{
    return !config->is_here || config->is_here[number];
}

bool operations_are_valid(const struct workload_config *config)
{
    for (uint32_t i = 0; i < config->count; i++)
        if (operation_is_here(config, i) && !operation_is_valid(&config->operations[i], config))
            return false;
    for (uint32_t i = 0; i < config->dependent_count; i++)
        if (config->dependents[i] >= config->count)
            return false;
    return true;
}
