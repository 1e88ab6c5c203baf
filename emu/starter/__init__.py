"""A commented spec to begin with, for a fabric asked for in a few words (`emu init`).

Wishes ──▶ keys of a spec ──▶ text, each key with its meaning
wishes.py  shapes.py, data.py  text.py
"""
