"""NSAS: the archive's loss has a gradient, its share 0 is RandomNAS, and its diversity never falls."""

from itertools import combinations

import pytest
import torch
from tiny import QUICK, begin

from idarts import InputError
from idarts.layers.mixture import one_hot
from idarts.searching.objectives.archive import Archive, distance, novelty

SHAPE = torch.zeros(1)


def drawn(columns):
    return {"cell": one_hot(columns, 4, SHAPE)}


def test_the_gradient_is_the_mean_of_separate_ones_and_the_archives_part_is_not_zero():
    w = torch.randn(5, 4, requires_grad=True)
    torch.manual_seed(0)
    objective = Archive(None, members=3, share=0.5)

    def loss(mixtures):
        return ((mixtures["cell"].weights * w).sum() - 1) ** 2

    present = drawn([0, 1, 2, 3, 0])
    draws = iter([present, *(drawn(torch.randint(4, (5,)).tolist()) for _ in range(40))])
    (grad,) = torch.autograd.grad(objective(lambda: next(draws), loss), w)
    separate = [torch.autograd.grad(loss(drawn(path["cell"])), w)[0] for path in objective.members]
    (own,) = torch.autograd.grad(loss(present), w)
    torch.testing.assert_close(grad, 0.5 * own + 0.5 * torch.stack(separate).mean(0))
    assert (grad - 0.5 * own).abs().max() > 1e-2


def test_without_a_share_it_is_random_nas_bit_for_bit():
    searches = [
        begin("nsas", selection=QUICK, weights={"objective_options": {"share": 0.0}}),
        begin("random-nas", selection=QUICK),
    ]
    ends = []
    for search in searches:
        torch.manual_seed(5)
        list(search.rounds())
        ends.append(search.net.state_dict())
    assert all(torch.equal(ends[0][key], ends[1][key]) for key in ends[0])
    assert searches[0].gradient_evaluations == searches[1].gradient_evaluations


def diversity(members):
    pairs = [distance(one, other) for one, other in combinations(members, 2)]
    return sum(pairs) / len(pairs)


def test_a_replacement_never_lowers_the_archives_diversity():
    torch.manual_seed(0)
    objective, last, changed = Archive(None, members=6, candidates=10), 0.0, 0

    def draw():
        return drawn(torch.randint(4, (6,)).tolist())

    for _ in range(80):
        before = [str(member) for member in objective.members]
        objective(draw, lambda _: torch.zeros(()))
        assert len(objective.members) == 6
        assert len(objective.recent) <= 10
        assert diversity(objective.members) >= last - 1e-12
        last = diversity(objective.members)
        changed += before != [str(member) for member in objective.members]
    assert changed >= 3
    random = [{"cell": torch.randint(4, (6,)).tolist()} for _ in range(300)]
    assert last > diversity(random[:40]) + 0.1


def test_the_member_that_is_most_like_the_present_path_makes_room():
    objective = Archive(None, members=2, share=0.5, candidates=2)
    objective.members = [{"cell": [0, 0, 0]}, {"cell": [1, 1, 0]}]
    objective(lambda: drawn([0, 0, 1]), lambda _: torch.zeros(()))
    assert objective.members == [{"cell": [0, 0, 1]}, {"cell": [1, 1, 0]}]  # 3 of 3 differ, not 2 of 3
    assert novelty({"cell": [0, 0, 1]}, objective.members[1:]) == 1.0


def test_training_forgets_the_archive_less():
    """One weight for each option, shared by paths: training others moves what a member uses."""
    torch.manual_seed(0)
    start = torch.zeros(6, 4)
    targets = torch.randn(4, 4, 4, 4, 4, 4)

    def loss_of(w):
        def loss(mixtures):
            columns = mixtures["cell"].weights.argmax(1).tolist()
            return ((mixtures["cell"].weights * w).sum() - targets[tuple(columns)]) ** 2

        return loss

    rises = []
    for share in (0.0, 0.5):
        torch.manual_seed(1)
        objective, w = Archive(None, members=4, share=0.5), start.clone().requires_grad_()
        for step in range(200):
            objective.share = share if step >= 100 else 0.5  # fill and fit the archive first
            loss = objective(lambda: drawn(torch.randint(4, (6,)).tolist()), loss_of(w))
            if step == 100:
                members = [drawn(member["cell"]) for member in objective.members]
                before = sum(loss_of(w.detach())(member) for member in members)
            (grad,) = torch.autograd.grad(loss, w)
            w = (w.detach() - 0.02 * grad).requires_grad_()
        rises.append((sum(loss_of(w.detach())(member) for member in members) - before).item())
    assert rises[1] < rises[0]


def test_bad_input():
    for options in ({"members": 0}, {"share": 1.0}, {"candidates": 0}):
        with pytest.raises(InputError, match="a share from 0 to below 1"):
            Archive(None, **options)
