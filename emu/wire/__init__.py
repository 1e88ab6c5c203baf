"""Packets and captures, for people and for tests; nothing of it is in the packets' path.

    crc.py        ICRC, VCRC, LPCRC
    opcodes.py    BTH opcodes and the headers that follow each
    layers/       scapy layers for RoCE, native InfiniBand and pause frames
    capture.py    what a capture is made of
    reader.py     reads captures; pcapng.py, erf.py and convert.py write them
    inspect.py    what a capture holds, and which checksums in it are wrong

It shares no code with the C core, so that each can judge the other.
"""
