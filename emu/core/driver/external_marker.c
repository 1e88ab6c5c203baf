#define _GNU_SOURCE /* syscall */

#include "driver/external_marker.h"

#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

bool external_marker_run(const struct external_marker *marker, uint32_t ifindex, uint8_t *bytes,
                         uint32_t length)
{
    struct __sk_buff context;
    union bpf_attr run;
    memset(&context, 0, sizeof context);
    memset(&run, 0, sizeof run);
    context.ifindex = ifindex;
    run.test.prog_fd = (uint32_t)marker->program_fd;
    run.test.repeat = 1;
    run.test.data_in = run.test.data_out = (uintptr_t)bytes;
    run.test.data_size_in = run.test.data_size_out = length;
    run.test.ctx_in = (uintptr_t)&context;
    run.test.ctx_size_in = sizeof context;
    return syscall(SYS_bpf, BPF_PROG_TEST_RUN, &run, sizeof run.test) == 0;
}
