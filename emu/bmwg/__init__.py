"""A benchmark report after the IETF BMWG drafts for AI fabrics: `emu bench-report SPEC`.

    spec ──▶ trials ──▶ figures ──▶ statistics ──▶ terminal, page, JSON
             run.py     a file for  iterations.py  tables.py, page.py, document.py
                        each family

The sources are three Internet-Drafts, which may change: draft-calabria-bmwg-ai-fabric-terminology,
-training-bench and -inference-bench. They are about Ethernet fabrics and leave InfiniBand out of
their scope; figures for it are adapted, and say so.

    kpi.py            what a KPI, a figure and a reference target are
    trial.py          one iteration: a run, and the runs that it is compared with
    jct.py ...        the families: each file has its formulas, their source, and what is left out
    catalogue.py      the list of the families
    iterations.py     figures over several seeds: mean, interval, coefficient of variation
    dut.py            identification of the device under test, and the workload
    settings.py       the settings in effect
    conditions.py     what the report says about its trials: deviations from the drafts, anomalies

Families are functions from a trial to figures, and know nothing of clocks or labs; only `run.py`
does.
"""
