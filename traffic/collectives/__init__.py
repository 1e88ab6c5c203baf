"""Collectives as graphs of operations.

Each algorithm has a file: a function from ranks and a part of their buffers to the steps of a
`Schedule`. `collective` assembles a collective from them, chunk by chunk.
"""
