"""Workloads from traces of other tools: GOAL's text, Chakra's execution traces."""
