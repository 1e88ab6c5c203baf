"""Wireshark support: a profile for emulated fabrics, and the cables of running labs as interfaces.

profile/        colours, columns and filter buttons; `wireshark -C emu`
extcap.py       the program that lists cables for Wireshark, and captures one of them
install.py      installs both for this user's Wireshark
"""
