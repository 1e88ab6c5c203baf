"""Mixture of experts: ranks send tokens to experts (dispatch), and get them back (combine).

    rank 0 ─ 9 tokens ─▶ experts of rank 1 ─┐
    rank 2 ─ 2 tokens ─▶    compute on 11   ├─▶ 9 back to rank 0, 2 back to rank 2
                                            ┘

Experts are assigned to the ranks in turn. Some experts are more popular than others: the i-th is
chosen with a probability in proportion to 1/i^skew, and the seed decides which expert is the i-th.
A token chooses k different experts, like those with the k largest scores of a gate. The probability
of a set of k experts is in proportion to the product of their popularities. So messages have
different sizes, and all ranks wait for the rank with the most tokens. A rank computes when all its
tokens have arrived. Tokens for its own experts are not sent. A token is sent once for each of its
experts, even if two of them are on the same rank.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traffic.collectives.schedule import NOBODY, Schedule, Waits
from traffic.graph import Column


def draw_tokens(
    ranks: int, experts: int, tokens: int, top_k: int, skew: float, random: np.random.Generator
) -> NDArray[np.int64]:
    """(ranks, ranks): the number of tokens that each rank sends to the experts of each rank. Each
    of a rank's `tokens` goes to `top_k` different experts, at most to all `experts`."""
    popularity = 1 / np.arange(1, experts + 1) ** skew
    random.shuffle(popularity)
    chosen = _draw_experts(ranks, tokens, _chances(np.log(popularity), top_k), random)
    owner = np.arange(experts) % ranks
    return np.stack([chosen[:, owner == rank].sum(axis=1) for rank in range(ranks)], axis=1)


def _chances(weights: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """(experts, most): the probability that a token takes this expert, if it needs 1, 2, ... more
    experts after deciding about all earlier ones. Weights are logarithms.

    S(e, r) is the sum of the products of weights over all sets of r experts from e on. The
    probability is w(e)·S(e+1, r-1) / S(e, r). If fewer than r experts are left, no token needs r
    more, and it is 0.
    """
    sums = np.full(most + 1, -np.inf)
    sums[0] = 0.0
    chances = np.zeros((len(weights), most))
    for expert in reversed(range(len(weights))):
        taken = weights[expert] + sums[:-1]
        sums[1:] = np.logaddexp(sums[1:], taken)
        possible = np.isfinite(sums[1:])
        chances[expert, possible] = np.exp(taken[possible] - sums[1:][possible])
    return chances


def _draw_experts(
    ranks: int, tokens: int, chances: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.int64]:
    """(ranks, experts): the number of tokens of each rank that choose each expert."""
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
    """Dispatch, work of `token_ns` for each token, combine; returns what the ranks wait for."""
    dispatched = _exchange(schedule, tokens, token_bytes, ())
    work_ns = np.rint(tokens.sum(axis=0) * token_ns).astype(np.int64)
    done = schedule.work(np.arange(len(tokens)), work_ns, dispatched)
    return _exchange(schedule, tokens.T, token_bytes, [done])


def _exchange(
    schedule: Schedule, tokens: NDArray[np.int64], token_bytes: int, after: Waits
) -> list[Column]:
    """Sends each rank's row to the others, the next rank first; returns what each waits for."""
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
