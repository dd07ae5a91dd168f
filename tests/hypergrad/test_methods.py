"""The protocol of methods: states between calls, names and options, and methods that a user adds."""

import io
import warnings
from dataclasses import dataclass

import pytest
import torch
from problems import flat, quadratic, smooth

from idarts import InputError
from idarts.hypergrad import (
    SOLVERS,
    Averaging,
    Exact,
    FirstOrder,
    Implicit,
    Neumann,
    ReverseMode,
    Solution,
    hypergradient,
    make_method,
)

OPTIONS = {
    "amigo": {"iterations": 2},
    "bome": {"step": 0.05},
    "conjugate-gradient": {"iterations": 3},
    "exact": {},
    "f2sa": {"step": 0.05},
    "first-order": {},
    "identity": {},
    "neumann": {"terms": 2},
    "nystrom": {"rank": 3},
    "one-step": {"step": 0.1},
    "recursive": {"eta": 0.5},
    "reverse": {"steps": 2, "step": 0.05},
    "running": {},
    "truncated-reverse": {"steps": 3, "terms": 2, "step": 0.05},
}
STATEFUL = {"amigo", "bome", "f2sa", "neumann", "recursive", "running"}


@dataclass(frozen=True)
class Running(Implicit):
    """One gradient step a call on a solution that is kept: v ← v − γ(Hv − g)."""

    step: float

    def init(self, problem):
        return {"v": problem.layout.zeros(), "calls": [0]}

    def solve(self, system, state):
        v = system.load(state["v"])
        residual = system.apply(v) - system.g
        v = v - self.step * residual
        return Solution(v, {"v": v, "calls": [state["calls"][0] + 1]}, {"before": residual.norm()})


def run(problem, method, **options):
    return hypergradient(problem.inner, problem.outer, (problem.w,), (problem.a,), method, **options)


def through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def assert_same(x, y):
    for name in ("grads", "direct", "implicit"):
        for one, other in zip(getattr(x, name), getattr(y, name), strict=True):
            assert torch.equal(one, other)
    assert x.diagnostics == y.diagnostics


class TestState:
    @pytest.mark.filterwarnings("ignore::idarts.errors.DivergenceWarning")
    @pytest.mark.parametrize("method", [Neumann(2, refresh=2), Neumann(2, 0.4, refresh=2), Running(0.1)], ids=repr)
    def test_survives_a_checkpoint_bit_for_bit(self, method):
        inner, outer, w, a = smooth()
        kept, loaded = None, None
        for _ in range(5):
            one, other = (hypergradient(inner, outer, w, a, method, state=state) for state in (kept, loaded))
            assert_same(one, other)
            kept, loaded = one.state, through_a_file(other.state)

    def test_is_not_changed_by_a_call(self):
        problem = quadratic(10, 3, 20.0)
        for method in (Neumann(2, refresh=1), Running(0.01)):
            state = run(problem, method).state
            assert_same(run(problem, method, state=state), run(problem, method, state=state))

    # (curvature scale, products, age, eigenvalue, ‖hypergradient‖) of consecutive calls, recorded with idarts 0.1.0
    AUTOMATIC = (
        (1.0, 22, 0, 19.96025822247317, 2.481985548694237),
        (1.0, 2, 1, 19.96025822247317, 2.481985548694237),
        (1.5, 2, 2, 19.96025822247317, 2.496034013349766),
        (1.5, 4, 0, 29.9615848376517, 2.4502897891725977),
        (0.5, 2, 1, 29.9615848376517, 2.428455899363571),
        (0.5, 2, 2, 29.9615848376517, 2.428455899363571),
        (0.5, 4, 0, 9.991768212406944, 2.7104592938634235),
        (4.0, 6, 0, 75.30679880490325, 2.4457170208781855),  # the terms grow: measured again at once
    )
    FIXED = (
        (0.5, 3, None, None, 2.7468143580033257),
        (2.0, 23, 0, 39.92051644494634, 2.8069595157658584),  # diverges: measured for the warning
        (2.0, 3, 1, 39.92051644494634, 2.8069595157658584),
        (2.0, 5, 0, 39.948779783535606, 2.8069595157658584),
        (0.5, 3, 0, 39.948779783535606, 2.7468143580033257),  # converges: the state stays as it is
        (2.0, 3, 1, 39.948779783535606, 2.8069595157658584),
        (3.0, 5, 0, 59.95060927444169, 5.182876273153805),
        (3.0, 3, 1, 59.95060927444169, 5.182876273153805),
    )

    @pytest.mark.filterwarnings("ignore::idarts.errors.DivergenceWarning")
    @pytest.mark.parametrize(
        ("method", "calls"), [(Neumann(2, refresh=3), AUTOMATIC), (Neumann(3, 0.08, refresh=2), FIXED)]
    )
    def test_of_the_eigenvalue_is_that_of_the_first_version(self, method, calls):
        problem = quadratic(10, 3, 20.0)
        curvature, state = problem.A, None
        for scale, products, age, eigenvalue, norm in calls:
            problem.A = scale * curvature
            estimate = run(problem, method, state=state)
            state = estimate.state
            assert estimate.diagnostics.hvps == products
            assert (None if state is None else state["age"]) == age
            numbers = [estimate.diagnostics.eigenvalue, estimate.grads[0].norm().item()]
            assert [value or 0.0 for value in numbers] == pytest.approx([eigenvalue or 0.0, norm], rel=1e-9)

    def test_of_processes_with_their_own_curvature_is_averaged(self):
        halved = run(quadratic(), Neumann(1), averaging=Averaging(lambda tensor: tensor / 2, vectors=False))
        alone = run(quadratic(), Neumann(1))
        for name in ("vector", "eigenvalue"):
            assert torch.equal(halved.state[name], alone.state[name] / 2)

    def test_under_its_old_name_warns_and_works(self):
        problem = quadratic(10, 3, 20.0)
        first = run(problem, Neumann(2))
        with pytest.warns(DeprecationWarning, match=r"estimate\.state to the next call as state="):
            spectrum = first.spectrum
        with pytest.warns(DeprecationWarning, match=r"spectrum= is deprecated; pass state=estimate\.state"):
            second = run(problem, Neumann(2), spectrum=spectrum)
        assert_same(second, run(problem, Neumann(2), state=first.state))
        assert second.state["age"] == 1
        with pytest.warns(DeprecationWarning, match="state"):
            assert run(problem, Neumann(2, 0.01)).spectrum is None

    @pytest.mark.parametrize("name", sorted(OPTIONS.keys() - STATEFUL))
    def test_most_methods_keep_none(self, name):
        assert run(quadratic(), make_method(name, OPTIONS[name])).state is None


class TestOwnMethod:
    def test_keeps_its_solution_from_call_to_call(self):
        problem, state, v = quadratic(condition=4.0), None, torch.zeros(6, dtype=torch.float64)
        for call in range(1, 151):
            estimate = run(problem, Running(0.25), state=state)
            v, before = v - 0.25 * (problem.A @ v - problem.g), (problem.A @ v - problem.g).norm()
            state = estimate.state
            torch.testing.assert_close(estimate.solution, v)
            assert estimate.diagnostics.measures == {"before": pytest.approx(before.item(), abs=1e-12)}
            assert state["calls"] == [call]
        torch.testing.assert_close(estimate.grads[0], problem.exact)

    def test_works_by_name_as_a_class_and_as_an_object(self):
        expected = run(quadratic(), Running(0.1))
        by_class = make_method(SOLVERS.own(Running), {"step": 0.1})
        name = SOLVERS.own(Running(0.3), "my-running")
        by_object = make_method(name, {"step": 0.1})
        assert make_method(name) is SOLVERS[name]
        for method in (by_class, by_object):
            assert method == Running(0.1)
            assert_same(run(quadratic(), method), expected)
        with pytest.raises(InputError, match=r"my-running has no option 'stepp'; did you mean step\?"):
            make_method(name, {"stepp": 0.1})

    def test_of_another_problem_is_refused(self):
        state = run(quadratic(5), Running(0.1)).state
        with pytest.raises(InputError, match="a problem with 5 weights, but this one has 6"):
            run(quadratic(6), Running(0.1), state=state)

    def test_starts_once_and_leaves_the_random_state_alone(self):
        starts = []

        class Random(Running):
            def init(self, problem):
                starts.append(1)
                return {"v": torch.randn(problem.layout.size, dtype=torch.float64), "calls": [0]}

        before = torch.get_rng_state()
        estimate = run(quadratic(), Random(0.1))
        run(quadratic(), Random(0.1), state=estimate.state)
        assert starts == [1]
        assert torch.equal(before, torch.get_rng_state())

    def test_may_be_any_method(self):
        class Twice(FirstOrder):
            """No record, no linear system."""

            def estimate(self, problem, state):
                result = super().estimate(problem, state)
                return type(result)(result.outer_loss, tuple(2 * t for t in result.direct), result.implicit)

        name = SOLVERS.own(Twice(), "twice")
        torch.testing.assert_close(run(quadratic(), make_method(name)).grads[0], 2 * quadratic().direct)


class TestMakeMethod:
    def test_every_name_is_a_method_of_its_own_file(self):
        assert list(SOLVERS) == sorted(OPTIONS)
        for name, options in OPTIONS.items():
            method = make_method(name, options)
            assert type(method) is SOLVERS[name]
            assert type(method).__module__ == f"idarts.hypergrad.solvers.{name.replace('-', '_')}"
            assert all(getattr(method, key) == value for key, value in options.items())

    @pytest.mark.parametrize(
        ("name", "options", "words"),
        [
            (
                "conjugate-gradient",
                {"terms": 2},
                "conjugate-gradient has no option 'terms'; "
                "it has iterations, tolerance, damping, products, radius, weight_decay, curvature",
            ),
            ("neumann", {"terms": 2, "dampings": 1}, "neumann has no option 'dampings'; did you mean damping?"),
            ("first-order", {"step": 1}, "first-order has no option 'step'; it has none"),
            ("reverse", {}, "reverse needs a value for steps and step"),
            ("neumann", {"terms": "two"}, "terms='two' is not possible here; it must be a whole number of at least 0"),
            ("neuman", {}, "unknown hypergradient method 'neuman'; did you mean neumann?"),
            (
                "json:dumps",
                {},
                "json:dumps is not a method; give a class or an object derived from idarts.",
            ),
        ],
    )
    def test_refuses_in_one_line(self, name, options, words):
        SOLVERS.load("json:dumps")
        with pytest.raises(InputError) as caught:
            make_method(name, options)
        assert str(caught.value).startswith(words)
        assert "\n" not in str(caught.value)


class TestInnerLosses:
    @pytest.mark.filterwarnings("ignore::idarts.errors.DivergenceWarning")
    @pytest.mark.parametrize("name", sorted(OPTIONS))
    def test_are_as_many_as_a_method_says(self, name):
        inner, outer, w, a = smooth()
        method, seen = make_method(name, OPTIONS[name]), set()

        def loss(number):
            return lambda w, a: (seen.add(number), inner(w, a))[1]

        count = method.inner_losses
        hypergradient([loss(number) for number in range(max(count, 1))], outer, w, a, method)
        assert len(seen) == count
        assert method.needs_inner == (count > 0)

    def test_are_refused_if_too_many_or_too_few(self):
        for given in (2, 4):
            with pytest.raises(InputError, match=f"one for each of its 3 steps, but {given} were given"):
                hypergradient([quadratic().inner] * given, *smooth()[1:], ReverseMode(3, 0.1))


def test_solution_is_that_of_the_linear_system():
    problem = quadratic()
    torch.testing.assert_close(run(problem, Exact()).solution, torch.linalg.solve(problem.A, problem.g))
    inner, outer, w, a = smooth()
    for name, options in OPTIONS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimate = hypergradient(inner, outer, w, a, make_method(name, options))
        if isinstance(make_method(name, options), Implicit):
            grads = torch.autograd.grad(inner(w, a), w, create_graph=True)
            parts = zip(grads, estimate.solution.split([t.numel() for t in w]), strict=True)
            mixed = torch.autograd.grad(sum((g.reshape(-1) @ x for g, x in parts)), a)
            torch.testing.assert_close(flat(estimate.implicit), -flat(mixed))
        elif name != "f2sa":
            assert estimate.solution is None


def test_a_class_is_not_a_method():
    with pytest.raises(InputError, match="give a method such as"):
        run(quadratic(), FirstOrder)
