"""SONiC's configuration: CONFIG_DB tables of switches <-> a spec.

    FOLDER ─folder─▶ config_db      rows, checked by `tables`
                        ├─▶ cabling, naming      switches, hosts, cables
                        └─▶ switch_settings      qos_maps, pfc_profiles, pools, lossy_queues,
                               │                 egress, watchdog
    spec ◀─ mapping, layers ◀──┘
    spec ─▶ writing ─▶ tables of each switch     writing_ports, writing_qos, writing_buffers

`returned` exports what was imported and compares, so that the report calls no row taken that an
export would not give back. `leftovers` says why the other rows are ignored.

Sources: SONiC, sonic-yang-models and its Configuration.md; qos_config.j2 and buffers_config.j2 of
sonic-buildimage.
"""
