"""Mixture of experts: ranks send tokens to experts (dispatch), and get them back (combine).

    rank 0 ─ 9 tokens ─▶ experts of rank 1 ─┐
    rank 2 ─ 2 tokens ─▶    compute on 11   ├─▶ 9 back to rank 0, 2 back to rank 2
                                            ┘

Experts are spread over the ranks in turn. Some are more popular than others: the i-th of them
is chosen with a probability in proportion to 1/i^skew, who is the i-th is drawn by the seed,
and so is every token's choice, each of its k experts independently of the others: two of them
may be the same. So messages are uneven, and one rank is waited for by all. A rank
computes when all its tokens have come; what it has for itself is not sent.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traffic.collectives.schedule import NOBODY, Schedule, Waits
from traffic.graph import Column


def draw_tokens(
    ranks: int, experts: int, choices: int, skew: float, random: np.random.Generator
) -> NDArray[np.int64]:
    """(ranks, ranks): how many of the `choices` that each rank's tokens make are whose experts."""
    popularity = 1 / np.arange(1, experts + 1) ** skew
    random.shuffle(popularity)
    chosen = random.multinomial(choices, popularity / popularity.sum(), size=ranks)
    owner = np.arange(experts) % ranks
    return np.stack([chosen[:, owner == rank].sum(axis=1) for rank in range(ranks)], axis=1)


def layer(
    schedule: Schedule, tokens: NDArray[np.int64], token_bytes: int, token_ns: float
) -> Waits:
    """Dispatch, work of `token_ns` for each token, combine; what the ranks wait for then."""
    there = _exchange(schedule, tokens, token_bytes, ())
    work_ns = np.rint(tokens.sum(axis=0) * token_ns).astype(np.int64)
    done = schedule.work(np.arange(len(tokens)), work_ns, there)
    return _exchange(schedule, tokens.T, token_bytes, [done])


def _exchange(
    schedule: Schedule, tokens: NDArray[np.int64], token_bytes: int, after: Waits
) -> list[Column]:
    """Every rank's row to the others, beginning with the next one; what each waits for then."""
    place = np.arange(len(tokens))
    got = [*after]
    for distance in range(1, len(tokens)):
        to = (place + distance) % len(tokens)
        some = place[tokens[place, to] > 0]
        arrives = np.full(len(tokens), NOBODY)
        arrives[to[some]] = schedule.send(
            some,
            to[some],
            tokens[some, to[some]] * token_bytes,
            after=[wait[some] for wait in after],
        )
        got.append(arrives)
    return got
