"""What `emu explain` tells and docs/reference holds: keys, presets, counters, checks, faults.

It tells nothing of its own. Keys come from the JSON schema (`emu.spec.schema`, `emu.spec.notes`),
presets from `emu.spec.presets`, counters from `emu.measure.counter_notes`, diagnoses from
`emu.report.diagnosis`, fields of summary.json from `emu.report.summary`.
"""
