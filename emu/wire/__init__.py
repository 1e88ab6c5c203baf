"""Packet formats and captures, for people and for tests. No packet of a run passes this code.

    crc.py        ICRC, VCRC, LPCRC
    opcodes.py    BTH opcodes and the headers that follow each
    layers/       scapy layers for RoCE, native InfiniBand and pause frames
    capture.py    records and interfaces, the parts of a capture
    reader.py     reads captures; pcapng.py, erf.py and convert.py write them
    inspect.py    counts what a capture holds, and checks its checksums

It shares no code with the C core, so that each can check the other.
"""
