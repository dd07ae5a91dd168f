"""What a careful reader would point out: each note is one sentence that says what it means and what to do."""

from collections.abc import Iterator

import numpy as np

from idarts.arch import Architecture
from idarts.engine.folder import Run, as_float

_UNDECIDED = 0.95  # entropy from which the largest α is hardly more than chance
_IDLE = ("none", "skip_connect")


def notes(run: Run, found: Architecture | str | None) -> list[str]:
    """All that is worth a warning about a run and its cell.

    >>> from pathlib import Path
    >>> notes(Run(Path("run"), {}, [{"number": 1, "entropy": 0.3, "norm": 1.0}], result={}), None)
    []
    """
    return [*_about_the_search(run), *_about_the_cell(run, found)]


def _about_the_search(run: Run) -> Iterator[str]:
    if run.result is None:
        yield "The search is in progress, or was stopped: there is no result yet. This is what there is so far."
    if run.cut:
        yield "The last line of metrics.jsonl was cut in the middle of writing, as by a kill; that round is not shown."
    known = run.series("valid_loss")
    skipped = sum(line.get("norm", 0) is None and np.isnan(loss) for line, loss in zip(run.rounds, known, strict=True))
    if skipped:
        yield (
            f"{_rounds(skipped)} of {len(run.rounds):,} had numbers that were not finite; α did not move there. "
            "If there are many: lower weights.rate, or give hypergradient.damping."
        )
    diverged = int(np.count_nonzero(run.series("contraction") > 1))
    if diverged:
        yield (
            f"The Neumann series diverged in {_rounds(diverged)} (contraction above 1): "
            "use hypergradient.step auto, or a smaller number."
        )


def _about_the_cell(run: Run, found: Architecture | str | None) -> Iterator[str]:
    entropy = as_float(run.last("entropy"))
    if run.result is not None and entropy > _UNDECIDED:  # every search begins there
        yield (
            f"α is still almost uniform (entropy {entropy:.3f} of 1): the cell may be little better than a draw. "
            "Search longer, or with a larger alpha.rate."
        )
    if not isinstance(found, Architecture):
        return
    ops = [edge.op for cell in found.cells.values() for edge in cell.edges if edge.op]
    idle = sum(op in _IDLE for op in ops)
    if idle > len(ops) / 2:
        yield (
            f"{idle} of the cell’s {len(ops)} operations are skip connections or none: "
            "a known way for searches to collapse. Compare with an earlier round before training it."
        )


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count:,} rounds"
