/* Lets the eBPF marker (emu/lab/marker) decide about one frame, at the moment at which the frame
 * joins its queue: the program runs on the head of the frame (BPF_PROG_TEST_RUN), with the network
 * interface of the port, the depth of the queue, and the curves of its maps. */
#ifndef EMU_DRIVER_EXTERNAL_MARKER_H
#define EMU_DRIVER_EXTERNAL_MARKER_H

#include <stdbool.h>
#include <stdint.h>

struct external_marker {
    int program_fd;   /* -1: there is none */
    uint32_t *depths; /* by port index: 8 queue depths, which the program reads */
};

/* Runs the marker on the first `length` bytes of a frame, which it may change. False: the kernel
 * refuses, and errno says why. */
bool external_marker_run(const struct external_marker *marker, uint32_t ifindex, uint8_t *bytes,
                         uint32_t length);

#endif
