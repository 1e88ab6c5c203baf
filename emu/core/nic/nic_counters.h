/* What a NIC counts. The rows of nics.def say what each counter is. */
#ifndef EMU_NIC_NIC_COUNTERS_H
#define EMU_NIC_NIC_COUNTERS_H

#include <stdint.h>

struct nic;

struct nic_counters {
#define NIC(name, ...) uint64_t name;
#include "counters/nics.def"
};

const struct nic_counters *nic_counters(const struct nic *nic);

#endif
