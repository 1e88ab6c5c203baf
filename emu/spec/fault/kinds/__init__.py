"""The kinds of faults, one module each."""
