"""Turns a recording into what people and scripts read.

Recording + Spec + Topology ─▶ RunFacts ─┬▶ summary.json, series.npz   store, summary
                                         ├▶ verdict, exit code         verdict
                                         ├▶ terminal                   text
                                         └▶ page                       html, charts, picture
"""
