"""EN²AS: the step towards novelty in closed form, an archive that stays diverse, and the selection by evolution."""

from random import Random

import pytest
import torch
from proposing import start

from idarts.searching.judge import Judge
from idarts.searching.selections.evolution import Evolution, change, cross
from idarts.searching.strategies.novelty import ascend, distance, novelty


def test_for_a_linear_novelty_the_step_is_its_gradient():
    """±√d e_i have mean 0 and covariance 1, as the noise has: over them the estimate is exact."""
    g, x, rate, deviation = torch.tensor([0.5, -2.0, 3.0]), torch.tensor([1.0, 4.0, -1.0]), 0.1, 0.3
    noise = 3**0.5 * torch.cat([torch.eye(3), -torch.eye(3)])
    values = (x + deviation * noise) @ g
    torch.testing.assert_close(ascend(x, noise, values, rate, deviation), x + rate * g)


def test_novelty_is_the_mean_distance_to_the_nearest():
    archive = torch.tensor([[1.0, 0, 0, 1, 0, 0], [1, 0, 0, 0, 1, 0], [0, 1, 0, 0, 0, 1]])
    path = torch.tensor([[1.0, 0, 0, 1, 0, 0]])
    assert distance(path, archive).tolist() == [[0.0, 0.5, 1.0]]
    assert novelty(path, archive, neighbours=2).item() == 0.25
    assert novelty(path, archive, neighbours=99).item() == 0.5


def diversity(archive):
    size = len(archive)
    return distance(archive, archive).sum().item() / (size * (size - 1))


@pytest.mark.parametrize("name", ["nas-bench-201", "darts"])
def test_every_proposal_is_a_cell_and_the_archive_stays_as_diverse_as_chance(name):
    search = start("en2as", name=name, evaluator=None, rounds=1, population={"size": 12})
    strategy = search.strategy
    for _ in range(12):
        strategy.mixtures()
    before = {group: paths.clone() for group, paths in strategy.paths.items()}
    for _ in range(60):
        mixtures = strategy.mixtures()
        hot = {group: mixture.weights for group, mixture in mixtures.items()}
        assert all(int(weights.sum()) == (6 if name == "nas-bench-201" else 8) for weights in hot.values())
        assert all(not weights[:, search.net.none].any() for weights in hot.values())
    for group, paths in strategy.paths.items():
        assert paths.shape == before[group].shape
        assert not torch.equal(paths, before[group])
        assert diversity(paths) > diversity(before[group]) - 0.03


def test_alpha_rests_while_the_weights_train():
    search = start("en2as", evaluator=None, rounds=6, population={"size": 3}, selection={"samples": 4, "batches": 1})
    alpha = search.net.alpha["cell"].detach().clone()
    weight = search.net.classifier.weight.detach().clone()
    list(search.rounds())
    assert torch.equal(search.net.alpha["cell"], alpha)
    assert not torch.equal(search.net.classifier.weight, weight)
    assert search.gradient_evaluations == pytest.approx(6 * (1 + 1 / 3))
    search.net.path(search.select())


def test_evolution_keeps_the_best_and_judges_no_cell_twice(monkeypatch):
    search = start("en2as", evaluator=None, rounds=1, selection={"samples": 6, "batches": 1})
    list(search.rounds())
    judged = []

    def score(self, mixtures):
        judged.append(mixtures["cell"].weights.argmax(1).tolist())
        return float(judged[-1].count(3))  # 3×3 convolutions

    monkeypatch.setattr(Judge, "__call__", score)
    first, last = (Evolution(generations)(search) for generations in (0, 12))
    assert len(judged[6:]) == len({str(path) for path in judged[6:]})
    assert last.gradient_evaluations == pytest.approx(len(judged[6:]) / 3)
    ends = [[edge.op for edge in one.architecture.cell.edges].count("nor_conv_3x3") for one in (first, last)]
    assert ends[1] == max(path.count(3) for path in judged[6:]) > ends[0]


def test_children_of_crossing_alone_have_genes_of_the_first_generation(monkeypatch):
    search = start("en2as", evaluator=None, rounds=1, selection={"samples": 6, "batches": 1})
    list(search.rounds())
    judged = []
    monkeypatch.setattr(Judge, "__call__", lambda _, m: judged.append(m["cell"].weights.argmax(1).tolist()) or 0.0)
    Evolution(generations=4, crossed=1.0, changed=0.0)(search)
    first, children = judged[:6], judged[6:]
    assert children
    assert all(gene in {genes[place] for genes in first} for child in children for place, gene in enumerate(child))
    judged.clear()
    Evolution(generations=4, crossed=0.0, changed=0.0)(search)
    assert len(judged) <= 6  # copies, which are not judged again


def test_crossing_takes_a_stretch_and_changing_some_genes_and_both_leave_the_parents_alone():
    one, other = ({"a": torch.full((4, 2), value), "b": torch.full((3, 2), value)} for value in (0.0, 1.0))
    random, lengths = Random(0), set()
    for _ in range(50):
        genes = torch.cat(list(cross(one, other, random).values()))[:, 0].tolist()
        taken = [place for place, gene in enumerate(genes) if gene]
        assert taken == list(range(taken[0], taken[-1] + 1))
        lengths.add(len(taken))
    assert lengths == set(range(1, 8))
    changed = [torch.cat(list(change(one, other, 0.2, random).values()))[:, 0].sum().item() for _ in range(300)]
    assert sum(changed) / 300 == pytest.approx(7 * 0.2, abs=0.2)
    assert not torch.cat(list(one.values())).any()
    assert torch.cat(list(other.values())).all()
