"""Path records that the lab queries after a sweep: the state table, without OpenSM."""

from __future__ import annotations

from itertools import product

import pytest

from emu.lab.level_query import TRANSITIONS, Event, LevelQuery, State
from emu.lab.levels_in_use import LevelsInUse
from emu.subnet.routing_check import KeptLevels

PAIRS = [("h1", f"h{n}") for n in range(2, 22)]
"""20 paths are more than a batch."""


def levels_of(batch: list[tuple[str, str]], level: int = 0) -> dict[str, dict[str, int]]:
    return {"h1": {dst: level for _, dst in batch}}


def asking() -> LevelQuery:
    query = LevelQuery(PAIRS)
    query.swept(has_levels=True)
    return query


def test_nothing_is_queried_before_a_sweep() -> None:
    assert LevelQuery(PAIRS).next_batch() == []


def test_a_sweep_queries_all_paths_in_batches() -> None:
    query = asking()
    query.answered(levels_of(query.next_batch()))
    assert query.state is State.ASKING
    query.answered(levels_of(query.next_batch()))
    assert query.is_settled
    assert query.levels == levels_of(PAIRS)


def test_a_sweep_between_batches_restarts_the_query() -> None:
    query = asking()
    query.answered(levels_of(query.next_batch(), level=1))
    query.swept(has_levels=True)
    assert (query.levels, query.left) == ({}, len(PAIRS))


def test_a_batch_without_an_answer_is_repeated() -> None:
    query = asking()
    batch = query.next_batch()
    query.unanswered(may_ask_again=True)
    assert (query.state, query.next_batch()) == (State.WAITING, batch)
    query.answered(levels_of(batch))
    assert (query.state, query.left) == (State.ASKING, len(PAIRS) - len(batch))


def test_the_third_failed_attempt_is_the_last() -> None:
    """Paths that were answered before keep their answers."""
    query = asking()
    query.answered(levels_of(first := query.next_batch()))
    for _ in range(3):
        query.unanswered(may_ask_again=True)
    assert query.is_settled
    assert (query.levels, query.left) == (levels_of(first), len(PAIRS) - len(first))


def test_an_answer_resets_the_attempts() -> None:
    query = asking()
    for _ in range(2):
        query.unanswered(may_ask_again=True)
    query.answered(levels_of(query.next_batch()))
    query.unanswered(may_ask_again=True)
    assert query.state is State.WAITING


def test_without_an_opensm_nothing_is_repeated() -> None:
    query = asking()
    query.unanswered(may_ask_again=False)
    assert query.is_settled


def test_an_engine_without_levels_settles_at_once() -> None:
    query = asking()
    query.swept(has_levels=False)
    assert (query.next_batch(), query.levels, query.left) == ([], {}, 0)


@pytest.mark.parametrize(("state", "event"), list(product(State, Event)))
def test_the_table_has_every_possible_transition(state: State, event: Event) -> None:
    """Answers are possible only while a batch is due."""
    is_sweep = event in (Event.SWEPT, Event.SWEPT_WITHOUT_LEVELS)
    assert ((state, event) in TRANSITIONS) == (is_sweep or state is not State.SETTLED)


def test_only_notes_of_credit_loops_outlive_the_next_note() -> None:
    notes = ["another"]
    in_use = LevelsInUse(levels_of(PAIRS), notes)
    one, loop, last = KeptLevels(1, 20, ""), KeptLevels(2, 20, "a"), KeptLevels(3, 20, "")
    for kept in (one, loop, last):
        in_use.update_note(lambda _, kept=kept: kept)  # type: ignore[misc]
    assert notes == ["another", loop.note, last.note]
    in_use.replace_all()
    assert notes == ["another", loop.note]


def test_levels_without_a_nic_are_ignored() -> None:
    in_use = LevelsInUse(levels_of(PAIRS), [])
    in_use.replace_all()
    in_use.add(levels_of(PAIRS, level=1))
    asked_about: list[object] = []
    in_use.update_note(asked_about.append)
    assert asked_about == [[levels_of(PAIRS, level=1)]]
