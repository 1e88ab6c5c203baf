"""Sensitivity: what each tuned setting, each common mistake and each failure costs on a fabric.

A side is a fabric: the spec, a variant of it, or the spec on another fabric. Its changes are made
one at a time: every tuned setting halved and doubled, a mistake of an operator at one place, a part
that fails. Each change runs with the same seeds as the fabric without it, and its cost is the
difference, seed by seed. All together they are the effort that tuning takes, measured.

    change.py     a change, and one that cannot be
    pinned.py     the spec with its derived thresholds written out, so that one change is one
    settings.py   the tuned settings in effect, and their values halved and doubled
    mistakes.py   wrong maps, small headroom, ignored CNPs and other mistakes
    failures.py   a link that is down, or fails during the run
    places.py     where the traffic is: the switch, cable and hosts with the most bytes
    changes.py    all changes of a side; those that the spec's rules refuse, with the reason
    request.py    what a user asks for; all mistakes at once
    runs.py       does the runs, on the workers of sweeps
    figures.py    the figures that show a cost: p99, iteration time, pauses, losses
    costs.py      the cost of each change, with its interval
    tables.py     sentences and tables, for the terminal and the page
    charts.py     the picture
    page.py       the page
    measure.py    all of it, as `emu sensitivity` and `emu.sensitivity` call it

Runs are those of `emu.sweeps`: kept by key in the folder, on its workers or on a Dask cluster.
"""
