"""`recovery: go-back-0`, as early RoCE NICs had it; recovery_go_back_0.c has the rules."""

from emu.spec.recovery.scheme import Recovery, register

register(Recovery("go-back-0", resends="the whole message (as early RoCE NICs did)"))
