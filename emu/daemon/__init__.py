"""A background lab: it stays up and answers all commands of its user.

    emu up ─starts─▶ owner ──────────▶ lab, pid 1 ─── Setup, Start, Tap ──▶ shim
      │                                  ▲  │  ◀── counters in memory ─────
      └─ claims a name ── socket NAME ───┘  └──── one NIC process for each ─▶ NICs
                            ▲                     `emu traffic start`
                            │ queries, answers
          status, exec, shell, traffic, events, watch, capture, down

The owner is a process without a terminal that only owns the lab, as `emu run` owns its lab: when it
ends, for any reason, the kernel removes the lab. The socket is in a folder that only the user may
enter (`registry.py`); the lab's first process listens on it and answers (`serve.py`). Answers can
carry open files: the namespaces of a host, the memory with the counters, a socket with captured
frames. So reading counters and frames does not interrupt the emulation.
"""
