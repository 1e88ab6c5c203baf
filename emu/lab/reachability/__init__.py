"""Measures who can reach whom: the management network, the fabric, and from one to the other.

    places ── services ──▶ probes, all at once ──▶ cells: expected, and reached or not
    namespaces ──▶ inventory: no interface joins both networks

A probe is a real packet, sent in the namespace of its source; a real socket at its target waits for
it. So the answer is the kernel's, with all of its routes, firewalls and mistakes.
"""
