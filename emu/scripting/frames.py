"""Tables of a run, as pandas frames.

    flows      a row for each flow
    requests   a row for each message or I/O, with its FCT slowdown where the model knows it
    counters   a row for each port or host, a column for each counter
    series     a row for each sample, a column for each port or flow

A number that does not exist is pandas' NA, as the end of a flow that did not finish; where numbers
have fractions (`fct_slowdown`), it is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from emu.errors import UsageError
from emu.measure.counter_notes import note_of
from emu.measure.recording import Recording, Series
from emu.measure.records import Counters, FlowRecord
from emu.measure.requests import UNFINISHED, UNKNOWN, Requests
from emu.report.verdict import CheckResult
from emu.spec.diagnostic import unknown_name
from traffic.graph import Asks

_NULLABLE = "Int64"


def flows(recording: Recording) -> pd.DataFrame:
    """A row for each flow, in the order of the spec; the index is its name.

    `took_ns` is from the start to the end; `goodput_bps` of an unfinished flow is of the time in
    which it was observed.
    """
    rows = [_flow(flow) for flow in recording.flows]
    frame = pd.DataFrame(rows, columns=_COLUMNS).set_index("name")
    counts = ("end_ns", "took_ns", "retransmitted_packets", "delivered_bytes", "observed_until_ns")
    return frame.astype(dict.fromkeys(counts, _NULLABLE))


_COLUMNS = (
    *("name", "traffic", "src", "dst", "op", "bytes", "start_ns", "end_ns", "took_ns"),
    *("goodput_bps", "retransmitted_packets", "completed", "delivered_bytes", "observed_until_ns"),
)


def _flow(flow: FlowRecord) -> dict[str, object]:
    return {
        "name": flow.name,
        "traffic": flow.traffic,
        "src": flow.src,
        "dst": flow.dst,
        "op": flow.op,
        "bytes": flow.bytes,
        "start_ns": flow.start_ns,
        "end_ns": flow.end_ns,
        "took_ns": None if flow.end_ns is None else flow.end_ns - flow.start_ns,
        "goodput_bps": flow.goodput_bps,
        "retransmitted_packets": flow.retransmitted_packets,
        "completed": flow.completed,
        "delivered_bytes": flow.delivered_bytes,
        "observed_until_ns": flow.observed_until_ns,
    }


def requests(recorded: Requests) -> pd.DataFrame:
    """A row for each message of a flow, for each I/O of storage, or for each prompt of inference.

    `kind` is message, read, write or prompt. A prompt has two rows more: kv-transfer, from the
    first message of its KV cache to its last byte, and kv-wait, from the end of its prefill.
    `alone_ns` is how long it takes on an idle path, and `fct_slowdown` is `took_ns` over that;
    only background load has both.
    """
    finished = recorded.end_ns != UNFINISHED
    known = finished & (recorded.alone_ns != UNKNOWN)
    took = recorded.end_ns - recorded.start_ns
    slowdown = np.full(len(took), np.nan)
    slowdown[known] = took[known] / recorded.alone_ns[known]
    return pd.DataFrame(
        {
            "traffic": pd.Categorical.from_codes(
                recorded.of, categories=pd.Index(recorded.traffic)
            ),
            "kind": pd.Categorical.from_codes(recorded.asks, categories=pd.Index(_KINDS)),
            "bytes": recorded.carries,
            "start_ns": _where(recorded.start_ns, recorded.start_ns != UNFINISHED),
            "end_ns": _where(recorded.end_ns, finished),
            "took_ns": _where(took, finished),
            "alone_ns": _where(recorded.alone_ns, recorded.alone_ns != UNKNOWN),
            "fct_slowdown": slowdown,
        }
    )


_KINDS = [asks.name.lower().replace("_", "-") for asks in Asks]


def _where(numbers: NDArray[np.int64], known: NDArray[np.bool_]) -> pd.arrays.IntegerArray:
    return pd.arrays.IntegerArray(numbers.copy(), ~known)


def ports(recording: Recording) -> pd.DataFrame:
    """A row for each port of a switch (`leaf1:h1`), a column for each counter."""
    return _counters(recording.ports, (recording.fabric_kind.framing.value, "port"))


def hosts(recording: Recording) -> pd.DataFrame:
    """A row for each host, a column for each counter of its NIC and of the NIC's port."""
    return _counters(recording.hosts, ("nic", recording.fabric_kind.framing.value, "port"))


def _counters(counted: Mapping[str, Counters], places: Sequence[str]) -> pd.DataFrame:
    """A port without a counter, as an unused priority, has 0. `attrs["units"]`: name -> unit."""
    given = pd.DataFrame.from_dict(dict(counted), orient="index")
    frame: pd.DataFrame = given.fillna(0).astype(np.int64)
    notes = {name: note_of(name, places) for name in frame.columns}
    frame.attrs["units"] = {name: note.unit for name, note in notes.items() if note}
    return frame


def totals(recording: Recording) -> pd.Series:
    """The counters of the whole fabric."""
    return pd.Series(recording.totals, dtype=np.int64, name="total")


@dataclass(frozen=True)
class _Sampled:
    """A kind of samples: the names of its columns, its unit, and its rows."""

    names: Callable[[Series], Sequence[str]]
    unit: str
    rows: Callable[[Series], NDArray[np.int64]]
    of_packets: bool = False
    """A model without packets does not know it."""


def _ports(series: Series) -> Sequence[str]:
    return series.ports


def _flows(series: Series) -> Sequence[str]:
    return series.flows


_SAMPLED = {
    "queue": _Sampled(_ports, "queue_bytes", lambda series: series.queue_bytes, True),
    "buffer": _Sampled(_ports, "buffer_bytes", lambda series: series.buffer_bytes, True),
    "sent": _Sampled(_ports, "tx_bytes", lambda series: series.tx_bytes),
    "paused": _Sampled(_ports, "paused_ns", lambda series: series.paused_ns, True),
    "credit_wait": _Sampled(_ports, "credit_wait_ns", lambda series: series.credit_wait_ns, True),
    "delivered": _Sampled(_flows, "flow_bytes", lambda series: series.flow_bytes),
}


def series(recording: Recording, kind: str) -> pd.DataFrame:
    """Samples of one kind: the index is `time_ns`, the columns are ports or flows, and
    `columns.name` has the unit.

        queue, buffer       bytes in a port's egress queues; in its ingress buffer
        sent, delivered     bytes so far, of a port with framing; of a flow
        paused              ns so far that the far end kept priorities paused
        credit_wait         ns so far that data waited for credit

    Raises UsageError for another kind, and for one that the run's model does not know.
    """
    if kind not in _SAMPLED:
        raise UsageError(unknown_name("kind of series", str(kind), list(_SAMPLED)))
    what, sampled = _SAMPLED[kind], recording.series
    rows = what.rows(sampled)
    if what.of_packets and not recording.has_packets:
        raise UsageError(f"series {kind!r}: the {recording.model} model does not know it")
    return pd.DataFrame(
        rows,
        index=pd.Index(sampled.time_ns, name="time_ns"),
        columns=pd.Index(what.names(sampled), name=what.unit),
    )


def checks(results: Iterable[CheckResult]) -> pd.DataFrame:
    """A row for each check: `check` in words, `passed` (NA: not judged), and `measured`."""
    rows = [(result.check, result.passed, result.detail) for result in results]
    frame = pd.DataFrame(rows, columns=["check", "passed", "measured"])
    return frame.astype({"passed": "boolean"})
