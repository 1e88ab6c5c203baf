"""Collectives: what all ranks of a job compute together, as graphs of operations.

One algorithm a file, each a function from ranks and a part of their buffers to steps of a
`Schedule`; `collective` puts one together, chunk by chunk.
"""
