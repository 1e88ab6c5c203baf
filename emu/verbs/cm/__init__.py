"""The connection manager of NICs that serve programs: what librdmacm's calls do.

    mad.py           management datagrams, 256 bytes
    messages.py      REQ, REP, RTU, REJ, DREQ, DREP, SIDR_REQ, SIDR_REP
    ip_service.py    service IDs and private data of connections by IP address and port
    path.py          what both ends of a connection agree on
    connection.py    one end of a connection: messages in, messages out      ┐
    lookup.py        one end of a lookup of a datagram service               │ pure
    ports.py         which ports of a host are in use, and who listens       │
    deadlines.py     when something is due                                   │
    manager.py       all of a host's connections and lookups                 ┘
    network.py       the hosts of the lab and the ways to them
    gsi.py           queue pairs 1: datagrams from and to the fabric
    ids.py           the communication identifiers and event channels of one program
    server.py        the managers of all hosts

The library's side is `emu/verbs/library/cm_*.c`. Both sides talk by
`emu/core/uverbs/cm_messages.h`.
Programs of a host share one manager, as they share its kernel elsewhere.
"""
