"""A state machine that decides which path records the lab requests from OpenSM after a sweep.

               swept                 no answer
    SETTLED ──────────▶ ASKING ◀───────────────▶ WAITING
       ▲                  │     some answered       │
       └── last answered, given up, no levels ──────┘

Path records are requested in batches, because a link may change meanwhile; all are requested again
then. A batch without an answer is repeated when the lab polls next; after the third time, or when
no OpenSM is left, the paths without an answer have no level. Levels of older tables are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from emu.subnet.manager import Pair
from emu.subnet.subnet import PathSLs

_PATHS_AT_A_TIME = 16
_TIMES_ASKED = 3


class State(Enum):
    SETTLED = auto()
    """No more answers are expected."""
    ASKING = auto()
    """The next batch is due at once."""
    WAITING = auto()
    """The next batch is due at the next poll, because the last had no answer."""


class Event(Enum):
    SWEPT = auto()
    """OpenSM has new tables, and its engine assigns service levels to paths."""
    SWEPT_WITHOUT_LEVELS = auto()
    SOME_ANSWERED = auto()
    LAST_ANSWERED = auto()
    NO_ANSWER = auto()
    GIVEN_UP = auto()


# Rule: a sweep is possible in every state, an answer only while one is due. Absent pairs cannot
# happen.
TRANSITIONS = {
    (State.SETTLED, Event.SWEPT): State.ASKING,
    (State.SETTLED, Event.SWEPT_WITHOUT_LEVELS): State.SETTLED,
    (State.ASKING, Event.SWEPT): State.ASKING,
    (State.ASKING, Event.SWEPT_WITHOUT_LEVELS): State.SETTLED,
    (State.ASKING, Event.SOME_ANSWERED): State.ASKING,
    (State.ASKING, Event.LAST_ANSWERED): State.SETTLED,
    (State.ASKING, Event.NO_ANSWER): State.WAITING,
    (State.ASKING, Event.GIVEN_UP): State.SETTLED,
    (State.WAITING, Event.SWEPT): State.ASKING,
    (State.WAITING, Event.SWEPT_WITHOUT_LEVELS): State.SETTLED,
    (State.WAITING, Event.SOME_ANSWERED): State.ASKING,
    (State.WAITING, Event.LAST_ANSWERED): State.SETTLED,
    (State.WAITING, Event.NO_ANSWER): State.WAITING,
    (State.WAITING, Event.GIVEN_UP): State.SETTLED,
}


class LevelQuery:
    """The requests for path records, sweep after sweep."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        """`pairs`: source and destination of all paths."""
        self.state = State.SETTLED
        self.levels: PathSLs = {}
        """The levels received since the last sweep."""
        self._pairs = list(pairs)
        self._left: list[Pair] = []
        self._times_unanswered = 0

    @property
    def is_settled(self) -> bool:
        return self.state is State.SETTLED

    @property
    def left(self) -> int:
        """The number of paths without an answer."""
        return len(self._left)

    def swept(self, *, has_levels: bool) -> None:
        """Starts anew after a sweep. `has_levels`: whether its engine assigns levels to paths."""
        self.levels, self._times_unanswered = {}, 0
        self._left = list(self._pairs) if has_levels else []
        self._on(Event.SWEPT if self._left else Event.SWEPT_WITHOUT_LEVELS)

    def next_batch(self) -> list[Pair]:
        """The paths to request now; none when settled."""
        return [] if self.is_settled else self._left[:_PATHS_AT_A_TIME]

    def answered(self, levels: PathSLs) -> None:
        """Records the answer to `next_batch`."""
        self._times_unanswered = 0
        for src, own in levels.items():
            self.levels.setdefault(src, {}).update(own)
        self._left = self._left[_PATHS_AT_A_TIME:]
        self._on(Event.SOME_ANSWERED if self._left else Event.LAST_ANSWERED)

    def unanswered(self, *, may_ask_again: bool) -> None:
        """Records that `next_batch` had no answer. `may_ask_again`: an OpenSM is running."""
        self._times_unanswered += 1
        again = may_ask_again and self._times_unanswered < _TIMES_ASKED
        self._on(Event.NO_ANSWER if again else Event.GIVEN_UP)

    def _on(self, event: Event) -> None:
        self.state = TRANSITIONS[self.state, event]
