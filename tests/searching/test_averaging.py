"""The mean of α: the closed form, what the selection sees, and that nothing else does."""

import itertools

import pytest
import torch
from tiny import begin, same

from idarts.searching.averaging import AlphaMean


def searched(**changes):
    """A search with its α after every round."""
    search = begin("darts-first-order", 8, **changes)
    torch.manual_seed(7)
    return search, [search.a[0].detach().clone() for _ in search.rounds()]


def test_it_is_the_mean_of_the_last_rounds():
    search, seen = searched(alpha={"average": 0.5, "rate": 0.1})
    assert search.mean.count == 4  # of 8
    torch.testing.assert_close(search.mean.values[0], torch.stack(seen[4:]).mean(0))


def test_the_selection_reads_the_mean_and_alpha_stays_as_it_is():
    search, seen = searched(alpha={"average": 0.5, "rate": 0.1})
    search.mean.values[0] = torch.zeros_like(seen[0])
    search.mean.values[0][:, 3] = 1.0  # the fourth operation on every edge
    before = search.a[0].detach().clone()
    chosen = search.net.path(search.select())["cell"].weights.argmax(1)
    assert (chosen == 3).all()
    assert torch.equal(search.a[0], before)


def test_without_it_and_with_it_a_search_is_the_same():
    plain, averaged = searched(), searched(alpha={"average": 0.5})
    assert all(map(torch.equal, plain[1], averaged[1]))
    assert plain[0].mean.count == 0
    assert "mean" not in plain[0].state_dict()


@pytest.mark.parametrize("cut", [2, 6])
def test_a_killed_search_has_the_same_mean(cut):
    whole, first, rest = (begin("darts-first-order", 8, alpha={"average": 0.5}) for _ in range(3))
    torch.manual_seed(7)
    list(whole.rounds())
    torch.manual_seed(7)
    list(itertools.islice(first.rounds(), cut))
    rest.load_state_dict(first.state_dict())
    list(rest.rounds())
    assert same(*({**search.state_dict(), "seconds": 0} for search in (whole, rest)))
    assert whole.select() == rest.select()


def test_an_error_in_the_block_restores_alpha():
    alpha, mean = torch.ones(2), AlphaMean()
    mean.add([torch.zeros(2)])
    with pytest.raises(RuntimeError), mean.in_place_of([alpha]):
        raise RuntimeError
    assert torch.equal(alpha, torch.ones(2))
