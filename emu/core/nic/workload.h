/* What the fabric must know of workloads beyond nic_api.h. */
#ifndef EMU_NIC_WORKLOAD_H
#define EMU_NIC_WORKLOAD_H

#include "nic/nic_api.h"
#include "sim/part.h"

/* An announced message whose receiver is in another part (part.h). Its place is the workload:
 * `const struct workload *`. */
extern const struct mail_kind mail_with_announcement;

#endif
