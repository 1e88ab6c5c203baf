"""`recovery: go-back-n`, as reliable connections have it; recovery_go_back_n.c has the rules."""

from emu.spec.recovery.scheme import Recovery, register

register(Recovery("go-back-n", resends="all from the lost packet on"))
