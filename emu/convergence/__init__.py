"""Convergence: how long traffic is lost when links and switches fail and come back, under each
control plane, on RoCE and InfiniBand side by side.

    request.py      what a user asks for; all mistakes at once
    planes.py       the control planes: static routes, BGP with several timers, OpenSM
    events.py       a link or a switch fails or comes back, and at which places
    answers.py      what each plane does then: recorded from FRR, timed on OpenSM, or a setting
    probes.py       constant loads, whose losses are times (RFC 7747)
    runs.py         a run for each plane, event and repetition, on the workers of sweeps
    stages.py       detected, decided, in force, restored; and what was lost
    mistakes.py     what a session shut down, a wrong ASN and others cost
    tables.py       sentences and tables, for the terminal and the page
    charts.py       a picture for each event
    page.py         the page
    document.py     the types of convergence.json; to_document.py makes it
    measure.py      all of it, as `emu convergence` calls it
"""
