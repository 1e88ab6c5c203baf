"""What makes Wireshark show our fabrics well: a profile, and running labs' cables as interfaces.

profile/        colours, columns and filter buttons; `wireshark -C emu`
extcap.py       the program that Wireshark asks which cables there are, and to capture one
install.py      puts both where this user's Wireshark looks
"""
