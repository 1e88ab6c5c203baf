"""Workloads that others have written down: GOAL's text, Chakra's execution traces."""
