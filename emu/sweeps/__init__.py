"""Sweeps: one spec at many points, with several seeds each, on the cores of this machine or on a
Dask cluster.

    values.py        20KB,50KB and 20KB..400KB/5: the values of a key
    points.py        grids, lists and Latin hypercubes of them
    units.py         columns of numbers for values with units
    plan.py          the runs of a sweep, each with the key of its result
    work.py          one run, on a worker
    cluster.py       the scheduler and the workers; local_worker.py is a worker's process
    pool.py          tasks that are with the workers
    execute.py       hands out all runs of a sweep and collects their results
    evaluate.py      does runs one by one, for searches (`emu.tuning`)
    store.py         the folder of results
    progress.py      the line on stderr
    statistics.py    means over seeds with their intervals
    page.py          the page, with the pictures of charts.py
    sweep.py         all of it, as `emu sweep` and `emu.sweep` call it

A sweep needs what `emu[sweep]` installs (`needs.py`). The rest of emu needs nothing of this.
"""
