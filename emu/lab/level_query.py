"""Which path records to ask OpenSM for after a sweep: a state machine that knows no OpenSM.

               swept                 no answer
    SETTLED ──────────▶ ASKING ◀───────────────▶ WAITING
       ▲                  │     some answered       │
       └── last answered, given up, no levels ──────┘

Path records are asked for in batches, because a link may change meanwhile: then everything is asked
again. A batch that has no answer is repeated with the next look; after the third time, or when no
OpenSM is left, the paths without an answer have no level. Levels of older tables are never kept.
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
    """All answers are there that will come."""
    ASKING = auto()
    """The next batch is due at once."""
    WAITING = auto()
    """The next batch is due at the next look, because the last had no answer."""


class Event(Enum):
    SWEPT = auto()
    """There are new tables, by an engine that gives levels to paths."""
    SWEPT_WITHOUT_LEVELS = auto()
    SOME_ANSWERED = auto()
    LAST_ANSWERED = auto()
    NO_ANSWER = auto()
    GIVEN_UP = auto()


# Rule: a sweep counts in every state, an answer only while one is due. Absent pairs cannot happen.
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
    """The queries of one sweep after the other."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        """`pairs`: all paths, by their hosts."""
        self.state = State.SETTLED
        self.levels: PathSLs = {}
        """Those that were answered since the last sweep."""
        self._pairs = list(pairs)
        self._left: list[Pair] = []
        self._times_unanswered = 0

    @property
    def is_settled(self) -> bool:
        return self.state is State.SETTLED

    @property
    def left(self) -> int:
        """How many paths had no answer yet, or never."""
        return len(self._left)

    def swept(self, *, has_levels: bool) -> None:
        """There are new tables. `has_levels`: their engine gives levels to paths."""
        self.levels, self._times_unanswered = {}, 0
        self._left = list(self._pairs) if has_levels else []
        self._on(Event.SWEPT if self._left else Event.SWEPT_WITHOUT_LEVELS)

    def next_batch(self) -> list[Pair]:
        """The paths to ask for now; none when settled."""
        return [] if self.is_settled else self._left[:_PATHS_AT_A_TIME]

    def answered(self, levels: PathSLs) -> None:
        """The answer to `next_batch`."""
        self._times_unanswered = 0
        for src, own in levels.items():
            self.levels.setdefault(src, {}).update(own)
        self._left = self._left[_PATHS_AT_A_TIME:]
        self._on(Event.SOME_ANSWERED if self._left else Event.LAST_ANSWERED)

    def unanswered(self, *, may_ask_again: bool) -> None:
        """There is no answer to `next_batch`. `may_ask_again`: an OpenSM is running."""
        self._times_unanswered += 1
        again = may_ask_again and self._times_unanswered < _TIMES_ASKED
        self._on(Event.NO_ANSWER if again else Event.GIVEN_UP)

    def _on(self, event: Event) -> None:
        self.state = TRANSITIONS[self.state, event]
