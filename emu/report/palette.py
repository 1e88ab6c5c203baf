"""The colours of a report, for light and dark pages.

The palette is Okabe and Ito's, which people with any kind of colour blindness can tell
apart, slightly brighter on dark pages. Colour is never the only sign: a label, a place or
a number says the same.

Pictures refer to colours as CSS variables, so that a page follows its reader's theme.
"""

from __future__ import annotations

from dataclasses import dataclass

from emu.fabric_kind import FlowControl


@dataclass(frozen=True)
class Colour:
    """One colour; `name` is its CSS variable without the dashes."""

    name: str
    light: str
    dark: str

    @property
    def css(self) -> str:
        return f"var(--{self.name})"


INK = Colour("ink", "#1c2430", "#e6eaf0")
CARD = Colour("card", "#ffffff", "#1b212b")
"""Behind pictures and tables."""
FAINT = Colour("faint", "#667085", "#98a2b3")
GRID = Colour("grid", "#dde2ea", "#333c4a")
GOOD = Colour("good", "#00795a", "#34c79a")
BAD = Colour("bad", "#b3261e", "#ff8a80")
PAUSE = Colour("pause", "#d55e01", "#ff8b3d")
CREDIT = Colour("credit", "#9c4f86", "#e39ccb")

SERIES = (
    Colour("series1", "#0072b2", "#4da6e0"),
    Colour("series2", "#e69f00", "#f0b429"),
    Colour("series3", "#009e73", "#2ec49a"),
    Colour("series4", "#cc79a7", "#e39ac1"),
    Colour("series5", "#d55e00", "#ff8b3e"),
    Colour("series6", "#56b4e9", "#8ccdf5"),
    Colour("series7", "#8a6d3b", "#c9a86a"),
    Colour("series8", "#5b6472", "#a9b3c1"),
)
"""Colours of series. With more series than colours, the colours repeat."""

LOAD = (
    Colour("load0", "#c9d1dc", "#3d4756"),
    Colour("load1", "#a6cbe3", "#2d5f80"),
    Colour("load2", "#6aaad2", "#3a83b3"),
    Colour("load3", "#2f83bb", "#4ba3d9"),
    Colour("load4", "#0a5a94", "#86c8f2"),
    Colour("load5", "#06304f", "#d3edff"),
)
"""Colours for how busy a cable is: idle, or up to 20, 40, 60, 80 or 100 per cent."""

COLOURS = (INK, CARD, FAINT, GRID, GOOD, BAD, PAUSE, CREDIT, *SERIES, *LOAD)


@dataclass(frozen=True)
class Legend:
    """The meaning of a colour. Legends stand beside their picture and cover nothing."""

    name: str
    colour: Colour


HELD_BACK = {
    FlowControl.PAUSES: Legend("paused", PAUSE),
    FlowControl.CREDITS: Legend("waiting for credit", CREDIT),
}
"""The legend of a port that flow control holds back."""


def series_colour(place: int) -> Colour:
    return SERIES[place % len(SERIES)]


def load_colour(utilisation: float) -> Colour:
    """The colour for a utilisation from 0 to 1. Below half a per cent, a cable is idle."""
    if utilisation < 0.005:
        return LOAD[0]
    return LOAD[min(5, 1 + int(utilisation * 5))]
