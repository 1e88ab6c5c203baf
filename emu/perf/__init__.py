"""What perftest's programs measure, on an emulated fabric: bandwidth and latency of one pair.

asked       options, fabric   ─▶ the two hosts and the sizes, or why not
benchmark   operation, figure ─▶ the spec's fabric with that traffic alone
figures     requests          ─▶ peak, average, percentiles
table       figures           ─▶ lines as perftest prints them
"""
