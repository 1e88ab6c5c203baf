"""SONiC's configuration: CONFIG_DB tables of switches <-> a spec.

    FOLDER ──folder──▶ config_db (rows, checked by tables) ──▶ cabling    switches, hosts, cables
                                                           └─▶ port_settings, switch_settings
                                                                    │
    spec ◀── mapping (layers of settings, report) ◀─────────────────┘
    spec ──▶ writing ──▶ the tables of each switch

`returned` exports what was imported and compares, so that the report calls no row taken that an
export would not give back.

Sources: SONiC, sonic-yang-models and its Configuration.md; qos_config.j2 and buffers_config.j2 of
sonic-buildimage.
"""
