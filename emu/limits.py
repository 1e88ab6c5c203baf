"""The largest fabrics. Apart from the specs, since the command line needs them at once."""

MAX_HOSTS = 32_768
"""The most hosts of a fabric. The core knows a host by the low 16 bits of its address, or by its
LID, of which switches need some of the 49,151. Memory often ends before."""
MAX_SWITCH_PORTS = 512
"""The most ports of a switch."""

MOST_THREADS = 256
"""Threads of the virtual clock."""
