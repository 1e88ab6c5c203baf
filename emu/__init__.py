"""An emulator of RoCEv2 and InfiniBand fabrics for AI clusters, packet by packet."""

__version__ = "0.1.0"
