"""Writes a commented first spec for a fabric that options describe (`emu init`).

Wishes ──▶ keys of a spec ──▶ text, each key with its meaning
wishes.py  shapes.py, data.py  text.py
"""
