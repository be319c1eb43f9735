"""Plain plots, small enough for a repository; skipped where matplotlib is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["bars", "plot"]


def plot(
    path: Path,
    lines: Mapping[str, Sequence[tuple[float, float]]],
    *,
    title: str,
    x: str,
    y: str,
    log: bool = False,
) -> None:
    """Lines through points."""
    if (axes := _axes(title)) is None:
        return
    for name, points in lines.items():
        axes.plot(*zip(*points, strict=True), marker="o", markersize=3, label=name)
    if log:
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.set(xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    _save(axes, path)


def bars(
    path: Path,
    groups: Mapping[str, Mapping[str, float]],
    *,
    title: str,
    unit: str,
    log: bool = False,
) -> None:
    """Bars beside each other for each group, one a name, with their values."""
    if (axes := _axes(title)) is None:
        return
    names = list(dict.fromkeys(name for named in groups.values() for name in named))
    for place, name in enumerate(names):
        found = [(at, named[name]) for at, named in enumerate(groups.values()) if name in named]
        drawn = axes.bar(
            [at + (place + 0.5) / (len(names) + 1) for at, _ in found],
            [value for _, value in found],
            1 / (len(names) + 1),
            label=name,
        )
        axes.bar_label(drawn, fmt=_short, fontsize="small")
    axes.set_xticks([at + 0.5 - 0.5 / (len(names) + 1) for at in range(len(groups))], groups)
    if log:
        axes.set_yscale("log")
    axes.margins(y=0.1)
    axes.set(ylabel=unit)
    axes.grid(alpha=0.3, axis="y")
    _save(axes, path)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _axes(title: str) -> Any:
    try:
        import matplotlib
    except ImportError:
        print("no plot: matplotlib is not installed")
        return None
    matplotlib.use("svg")
    # So that a run with the same figures writes the same bytes.
    matplotlib.rcParams.update({"svg.hashsalt": "prism-memory", "svg.fonttype": "none"})
    from matplotlib import pyplot

    _, axes = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")
    axes.set(title=title)
    return axes


def _save(axes: Any, path: Path) -> None:
    from matplotlib import pyplot

    axes.legend(fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    axes.figure.savefig(path, metadata={"Date": None})
    pyplot.close(axes.figure)
