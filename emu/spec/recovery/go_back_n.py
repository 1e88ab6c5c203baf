"""`recovery: go-back-n`, the scheme of reliable connections; recovery_go_back_n.c has the rules."""

from emu.spec.recovery.scheme import Recovery, register

register(Recovery("go-back-n", resends="all packets from the lost one on"))
