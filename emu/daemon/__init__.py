"""A lab that stays up in the background and serves all commands of its user.

    emu up ─starts─▶ owner ──────────▶ lab, pid 1 ─── Setup, Start, Tap ──▶ shim
      │                                  ▲  │  ◀──── counters on a board ──
      └─ claims a name ── socket NAME ───┘  └──── one NIC process for each ─▶ NICs
                            ▲                     `emu traffic start`
                            │ Ask, Done
          status, exec, shell, traffic, events, watch, capture, down

The owner is a process without a terminal that does nothing but own the lab, as
`emu run` owns one: when it ends, however, the kernel takes the lab away. The socket
is in a folder that only the user may enter (`registry.py`); the lab's first process
listens on it and answers (`lab_server.py`). What a question needs beyond words goes along
as open files: the namespaces of a host, the memory with the counters, the end of a
socket with captured frames. So nothing that is asked passes between two packets.
"""
