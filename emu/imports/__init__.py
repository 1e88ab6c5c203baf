"""Fabrics that other programs describe, as specs.

    files ─▶ reader of their format ─▶ mapping of a spec ─▶ text of a spec
                        └─▶ report: each row taken, approximated or ignored

`emu.sonic` and `containerlab` are such readers.
"""
