"""Mixture of experts: ranks send tokens to experts (dispatch), and get them back (combine).

    rank 0 ─ 9 tokens ─▶ experts of rank 1 ─┐
    rank 2 ─ 2 tokens ─▶    compute on 11   ├─▶ 9 back to rank 0, 2 back to rank 2
                                            ┘

Experts are spread over the ranks in turn. Some are more popular than others: the i-th of them
is chosen with a probability in proportion to 1/i^skew, and who is the i-th is drawn by the seed.
A token chooses k experts independently of each other, given that all k are different, as a
gate's k largest scores are: so a set of k is chosen in proportion to the product of their
popularities. So messages are uneven, and one rank is waited for by all. A rank
computes when all its tokens have come; what it has for itself is not sent. A token goes to
each of its experts by itself, also where two of them are of one rank.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traffic.collectives.schedule import NOBODY, Schedule, Waits
from traffic.graph import Column


def draw_tokens(
    ranks: int, experts: int, tokens: int, top_k: int, skew: float, random: np.random.Generator
) -> NDArray[np.int64]:
    """(ranks, ranks): how many of the tokens of each rank go to whose experts; each of a rank's
    `tokens` goes to `top_k` different ones, which is `experts` at most."""
    popularity = 1 / np.arange(1, experts + 1) ** skew
    random.shuffle(popularity)
    chosen = _draw_experts(ranks, tokens, _chances(np.log(popularity), top_k), random)
    owner = np.arange(experts) % ranks
    return np.stack([chosen[:, owner == rank].sum(axis=1) for rank in range(ranks)], axis=1)


def _chances(weights: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """(experts, most): how likely a token that needs so many more (1, 2, ...) takes this expert,
    when it has decided about those before it. Weights are logarithms.

    With S(e, r), the sum of the products of weights over all sets of r experts from e on, it is
    w(e)·S(e+1, r-1) / S(e, r). Where so many are not left, nobody is, and it is 0.
    """
    sums = np.full(most + 1, -np.inf)
    sums[0] = 0.0
    chances = np.zeros((len(weights), most))
    for expert in reversed(range(len(weights))):
        taken = weights[expert] + sums[:-1]
        sums[1:] = np.logaddexp(sums[1:], taken)
        there = np.isfinite(sums[1:])
        chances[expert, there] = np.exp(taken[there] - sums[1:][there])
    return chances


def _draw_experts(
    ranks: int, tokens: int, chances: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.int64]:
    """(ranks, experts): tokens of each rank that have chosen each expert."""
    experts, most = chances.shape
    need = np.zeros((ranks, most + 1), np.int64)
    need[:, most] = tokens
    chosen = np.empty((ranks, experts), np.int64)
    for expert in range(experts):
        taking = random.binomial(need[:, 1:], chances[expert])
        need[:, 1:] -= taking
        need[:, :-1] += taking
        chosen[:, expert] = taking.sum(axis=1)
    return chosen


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
