"""The hosts and switches of a lab report events to the collector, by syslog over UDP (RFC 5426).

One process sends for all of them, from a socket in each agent's namespace.
"""
