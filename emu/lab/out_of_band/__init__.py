"""The out-of-band management network of a lab that stays up (`management:` in the spec).

    leaf1's agent [mgmt0]═══[leaf1]╗
    h1's agent    [mgmt0]═══[h1]═══╬══ bridge, in a namespace of its own
    mgmt          [mgmt0]═══[mgmt]═╝

    h1 [h1-eth0]═══ the fabric

A node's agent, which on hardware is its BMC or its management processor, has a namespace of its
own. Two interfaces in one namespace would not be separate: Linux answers for an address on any
interface (the weak host model, RFC 1122, 3.3.4.2), so a neighbour in the fabric could reach it. No
interface joins both networks; an agent reads its node's counters from shared memory. Time here is
real.
"""
