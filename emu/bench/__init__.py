"""The benchmark: `make bench`, or `python -m emu.bench`. One file per figure.

A figure and its baseline are measured on this machine in the same run, several times
by turns. The medians are reported. Nothing else imports this package.
"""
