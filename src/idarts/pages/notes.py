"""What a careful reader would point out: each note says what it means and what to do."""

from collections.abc import Iterator, Mapping

import numpy as np

from idarts.arch import Architecture
from idarts.arch.style import family
from idarts.engine.entries import as_float
from idarts.engine.folder import Run

_UNDECIDED = 0.95  # entropy above which the largest α is hardly more than chance


def notes(run: Run, architecture: Architecture | str | None) -> list[str]:
    """All that is worth a warning about a search and its cell.

    >>> from pathlib import Path
    >>> notes(Run(Path("run"), {}, [{"number": 1, "entropy": 0.3, "norm": 1.0}], result={}), None)
    []
    """
    return [*about_progress(run, "search"), *_about_rounds(run), *_about_cell(run, architecture)]


def about_progress(run: Run, kind: str) -> Iterator[str]:
    """What is missing of a run that has not finished.

    >>> from pathlib import Path
    >>> list(about_progress(Run(Path("run"), {}, [{"number": 1}]), "search"))
    ['The search is in progress or was stopped: it has no result yet. This page shows the rounds so far.']
    """
    if run.result is None:
        yield f"The {kind} is in progress or was stopped: it has no result yet. This page shows the rounds so far."
    if run.cut:
        yield "The last line of metrics.jsonl is incomplete, as after a kill; its round is not shown."
    yield from (f"{problem}." for problem in run.problems)


def _about_rounds(run: Run) -> Iterator[str]:
    losses = run.series("valid_loss")
    skipped = int(np.count_nonzero(run.nulls("norm") & np.isnan(losses)))
    if skipped and run.alphas():
        yield (
            f"{_rounds(skipped)} of {len(losses):,} had numbers that were not finite; α did not move there. "
            "If there are many: lower weights.rate, or set hypergradient.damping."
        )
    diverged = int(np.count_nonzero(run.series("contraction") > 1))
    if diverged:
        yield (
            f"The Neumann series diverged in {_rounds(diverged)} (contraction above 1): "
            "use hypergradient.step auto, or a smaller number."
        )


def _about_cell(run: Run, architecture: Architecture | str | None) -> Iterator[str]:
    result, entropy = run.result or {}, as_float(run.last("entropy"))
    verdict, tried = result.get("verdict"), bool(result.get("trials"))
    if isinstance(verdict, Mapping):
        if not verdict.get("decided"):
            reason, advice, more = str(verdict.get("sentence")).partition("; search longer")
            instead = "; the trials decided instead" if advice else ""  # an earlier version gave advice to all
            random = f"{advice}{more}. The cell may be little better than a random one"
            yield f"{reason}{instead if tried else random}."
    elif run.result is not None and entropy > _UNDECIDED and not tried:  # a run of an earlier version
        yield (
            f"α is still almost uniform (entropy {entropy:.3f} of 1): the cell may be little better than a random one. "
            "Search longer, or with a larger alpha.rate."
        )
    if not isinstance(architecture, Architecture):
        return
    ops = [edge.op for cell in architecture.cells.values() for edge in cell.edges if edge.op]
    idle = sum(family(op) in ("skip", "none") for op in ops)
    if idle > len(ops) / 2:
        yield (
            f"{idle} of the cell’s {len(ops)} operations are skip connections or none: "
            "searches are known to collapse this way. Compare with an earlier round before you train it."
        )


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count:,} rounds"
