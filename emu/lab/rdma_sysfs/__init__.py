"""The emulated NIC of a host in /sys, for programs that look there for RDMA devices.

    daemon                                     a program of `emu exec h1`
     /run/sys/h1/class/infiniband/emu_0/... ─▶ /sys/class/infiniband/emu_0/...
     updates the files that change             sees it by bind mounts of its own

The files and their texts are those of the kernel (Documentation/ABI/stable/sysfs-class-infiniband;
drivers/infiniband/core/sysfs.c). Left out: what only a PCI device has, as the NIC has no slot;
/sys/class/infiniband_mad/umad0, as management packets go to ibsim.
"""
