"""One stage: the same supernet and all options from the first round to the last."""

from typing import TYPE_CHECKING

from idarts.searching.registries import SCHEDULES
from idarts.searching.stage import Stage

if TYPE_CHECKING:
    from idarts.searching.settings import Config


@SCHEDULES.register("single")
def single(_settings: "Config") -> list[Stage]:
    """The whole budget in one stage.

    >>> from idarts.searching.settings import Config
    >>> [stage.share for stage in single(Config())]
    [1.0]
    """
    return [Stage()]
