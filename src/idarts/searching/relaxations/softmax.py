"""DARTS' relaxation: every option runs, weighted by its softmax (Liu et al. 2019, Eq. 2)."""

from idarts.searching.registries import RELAXATIONS
from idarts.spaces.relaxation import softmax

RELAXATIONS.add("softmax", softmax)
