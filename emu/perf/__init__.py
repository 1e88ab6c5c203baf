"""The measurements of perftest on an emulated fabric: bandwidth and latency of one pair of hosts.

asked       options, fabric   ─▶ the two hosts and the sizes, or an error
benchmark   operation, figure ─▶ the spec's fabric with that traffic alone
figures     requests          ─▶ peak, average, percentiles
table       figures           ─▶ lines in perftest's format
"""
