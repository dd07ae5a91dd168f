"""The result of a fit in words."""

from idarts.fitting.judge import Verdict
from idarts.fitting.record import FitResult


def result_sentence(result: FitResult, judged: Verdict, images: int, cells: int) -> str:
    """Who won, in one sentence, with intervals; and how random cells did."""
    found, fixed = (_score(result, name) for name in ("found", "fixed"))
    tested = f"on {images:,} test images, paired test p = {judged.p:.2g}"
    if judged.winner == "found":
        text = f"The found network won: {found} against {fixed} for the fixed network of the same size ({tested})."
    elif judged.winner == "fixed":
        text = (
            f"The fixed network won: {fixed} against {found} for the found network of the same size ({tested}); "
            "so the fixed network was exported."
        )
    else:
        text = (
            f"Undecided: the found network has {found}, the fixed network of the same size {fixed}, "
            f"and {images:,} test images are too few to tell them apart (paired test p = {judged.p:.2g}); "
            "the found network was exported."
        )
    if not cells:
        return text
    median = "A random cell" if cells == 1 else f"The median of {cells} random cells"
    return f"{text} {median} has {_score(result, 'random')}."


def _score(result: FitResult, name: str) -> str:
    low, high = result.interval[name]
    return f"{100 * result.accuracy[name]:.1f} % ({100 * low:.1f}–{100 * high:.1f})"
