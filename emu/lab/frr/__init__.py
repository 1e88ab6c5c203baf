"""FRR in a lab: a namespace for each switch, with zebra, bgpd and, if asked for, bfdd."""
