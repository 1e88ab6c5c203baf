"""The texts of `emu explain` and docs/reference: keys, presets, counters, checks, faults.

The texts are written elsewhere. Keys come from the JSON schema (`emu.spec.schema`,
`emu.spec.notes`), presets from `emu.spec.presets`, counters from `emu.measure.counter_notes`,
diagnoses from `emu.report.diagnosis`, fields of summary.json from `emu.report.summary`.
"""
