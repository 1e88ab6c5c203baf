"""Fabrics in the text formats of other programs.

    text ─▶ Net ─▶ a spec's `topology:` section          import
    a spec's graph ─▶ text                               export

A format is one module with `read` and `write`.
"""
