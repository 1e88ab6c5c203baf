"""Tuning: settings of a fabric that reach a user's goals, searched by Optuna and then judged.

    goals.py         what is to be small or large, and what must hold: names of figures
    ranges.py        sensible values of a key, from rates, round trip and buffer
    parameters.py    varied keys, as Optuna draws them
    request.py       what a user asks for; all mistakes at once
    starts.py        the first trials: the spec's own values and those of presets
    study.py         Optuna's study in the folder, which can go on
    search.py        trials at once, the seeds of a trial one after another, and what ends it early
    trials.py        what came out of a trial; the winner, and the Pareto front
    rivals.py        the defaults and the presets, as specs
    held_out.py      runs that the search has not seen: other seeds and other loads
    judge.py         whether the winner is better there
    vendor.py        the winner for SONiC and NVIDIA
    page.py          the page, with the tables of tables.py and the pictures of charts.py
    document.py      the same as data
    tune.py          all of it, as `emu tune` and `emu.tune` call it

Runs are those of `emu.sweeps`: kept by key in the folder, on its workers or on a Dask cluster.
"""
