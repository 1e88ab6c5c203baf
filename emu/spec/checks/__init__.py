"""Checks of a run's results. Each kind of check is a file."""
