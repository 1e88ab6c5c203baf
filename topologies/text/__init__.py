"""Fabrics as other programs write them, and as they read them.

    text ─▶ Net ─▶ a spec's `topology:` section          import
    a spec's graph ─▶ text                               export

A format is one module with `read` and `write`.
"""
