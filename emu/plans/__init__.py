"""Acceptance plans: known test cases of switches, run against a fabric, with criterion and verdict.

    pytest --emu-plan sonic-lossless --emu-spec mine.emu.yml

A plan is a list of cases. A case makes specs from the user's fabric with traffic and faults of its
own, runs them on the virtual clock, and compares what was measured with its criterion.

    case.py           a case, its result, and how it is skipped
    plan.py           a plan, and the table of plans
    requirements.py   what the fabric must do: its own settings, or those that the user requires
    bench.py          the ports under test, and specs with the traffic of a case
    traffic.py        flows at a fixed rate
    pauses.py         pause frames of testers
    trial.py          one run, stepped, with pause frames put in and counters read
    cases/            a module for each plan, which registers itself
    report.py         the table of results, plan.json and plan.md
    pytest_items.py   the cases as pytest's test items
"""
