"""The flow model: a workload on a fabric, without packets.

Messages are streams of bytes that share the links of their routes max-min fairly. Topology, routes
and workload are those of the packet model; queues, pauses, marks and losses do not exist here.

    routes      the links of each flow, by the hashes and tables of the packet model
    network     these links with their rates, and the routes in the form that the core needs
    shapes      what a message occupies on links, and the latency of its path
    simulation  runs the workload in the core (emu/core/flow_model)
    limits      what the model cannot do, does not know, and where it is wrong
    record      makes a recording of a run
"""
