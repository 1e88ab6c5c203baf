"""The package's own build. `python -m emu._build` compiles the C core in place; see `core`."""
