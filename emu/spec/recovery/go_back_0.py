"""`recovery: go-back-0`, the scheme of early RoCE NICs; recovery_go_back_0.c has the rules."""

from emu.spec.recovery.scheme import Recovery, register

register(Recovery("go-back-0", resends="the whole message (as early RoCE NICs did)"))
