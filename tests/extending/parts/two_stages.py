"""A schedule of one's own: half of the budget with all options, then a deeper supernet with the three best."""

from idarts.searching import Stage


def two_stages(settings):
    return [Stage(share=0.5, depth=1), Stage(share=0.5, depth=2, keep=3)]
