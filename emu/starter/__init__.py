"""Writes a commented first spec for a fabric that options describe (`emu init`).

options    ──▶ keys of a spec ──▶ text, each key with its meaning
options.py  shapes.py, data.py    text.py
"""
