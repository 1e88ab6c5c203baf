"""`recovery: selective-repeat`, after IRN; recovery_selective_repeat.c has the rules."""

from emu.spec.recovery.scheme import Recovery, register

register(
    Recovery(
        "selective-repeat",
        resends="the lost packet alone (as IRN does)",
        keeps_early_packets=True,
        limits_window=True,
    )
)
