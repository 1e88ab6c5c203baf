"""The benchmark: `make bench`, or `python -m emu.bench`. One file per figure.

Every figure is measured side by side with its baseline in the same run, on the
machine at hand, several times in turn; medians are told. Nothing else imports
this package.
"""
