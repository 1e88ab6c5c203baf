"""The Prometheus exporter of a lab's hosts and switches.

    Prometheus ── HTTP ──▶ agents' namespaces, one socket in each ──▶ emu-exporter, one process
                                                                         │ reads
    shim, NICs ── write ──▶ counters in shared memory ◀──────────────────┘

The process gets the open files of the counters from the lab's first process and reads them by
itself: nobody in the fabric notices.
"""
