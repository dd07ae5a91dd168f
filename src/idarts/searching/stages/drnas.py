"""DrNAS' progressive search (Chen et al. 2021, arXiv:2006.10355): later, fewer options and more channels.

There are two halves. When the second begins, the options with the smallest α leave (7 → 4 in DARTS' space, 5 → 3 in
NAS-Bench-201's: half stay, rounded up), α is kept, and a larger part of the channels is searched: K = 4 → 2 here, 6 → 4
in the paper's 36 channels. w starts afresh. The published code widens w by copying channels chosen at random; that does
not keep the function, and its cosine continues over both halves, while ours falls once in each.
"""

from typing import TYPE_CHECKING

from idarts.errors import InputError
from idarts.searching.registries import SCHEDULES
from idarts.searching.stage import Stage

if TYPE_CHECKING:
    from idarts.searching.settings import Config


@SCHEDULES.register("drnas")
def drnas(settings: "Config", keep: float = 0.5, share: int = 2) -> list[Stage]:
    """`keep`: the share of options in the second half; `share`: K there, for a relaxation with partial channels.

    >>> from idarts.searching import config
    >>> [dict(stage.relaxation) for stage in drnas(config("drnas"))]
    [{}, {'share': 2}]
    """
    if not 0 < keep <= 1:
        raise InputError(f"stages_options: keep is {keep}, expected a share above 0 and up to 1")
    partial = "share" in settings.relaxation_options
    second = Stage(share=0.5, keep=float(keep), keep_alpha=True, relaxation={"share": share} if partial else {})
    return [Stage(share=0.5), second]
