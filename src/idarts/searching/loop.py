"""The loop of a search: T steps on the weights w, one step on α, repeat; then select an architecture."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from idarts.arch import Architecture
from idarts.engine.ranks import Clock, average_buffers, copy_from_first, joint_statistics, require_same, world
from idarts.errors import InputError, NotFiniteError, SingularCurvatureError
from idarts.hypergrad.isolation import random_states, set_random_states
from idarts.layers.constants import constant
from idarts.searching import legacy
from idarts.searching.averaging import AlphaMean
from idarts.searching.budget import Budgeted, Pace, Spent, budget_of
from idarts.searching.cost import CostTarget, cost_target
from idarts.searching.evaluator import needs_supernet
from idarts.searching.judge import largest
from idarts.searching.reach import require_built, require_reached, require_same_decisions, require_trainable
from idarts.searching.registries import SCHEDULES, SELECTIONS, build_part
from idarts.searching.round import Round, Step, round_of, spread
from idarts.searching.stage import Mask, Restricted, Stage, ends, next_mask, open_decisions, require_stages
from idarts.searching.strategy import Selected, Strategy, Tried
from idarts.searching.streams import peek, peek_batch
from idarts.searching.task import Task
from idarts.searching.weights import WeightTraining
from idarts.spaces import Supernet
from idarts.spaces.relaxation import Relaxation

PATIENCE = 5  # rounds in a row without finite numbers before the search gives up


class Search(Budgeted):
    """A search in progress. `rounds()` continues from wherever it stands; its state can be saved between rounds."""

    net: Supernet  # of the current stage; a strategy without shared weights has none

    def __init__(self, task: Task, strategy: Callable[..., Strategy]) -> None:
        self.task, self.settings = task, task.settings
        settings = self.settings
        self.stages: list[Stage] = list(build_part(SCHEDULES, settings.stages, settings.stages_options)(settings))
        require_stages(self.stages)
        # An option that takes no part in the relaxation is not trained, so it is not selected either.
        self.selection = replace(settings.selection, none=settings.none and settings.selection.none)
        self.selector = build_part(SELECTIONS, self.selection.rule, self.selection.options)
        if getattr(SELECTIONS[self.selection.rule], "needs_network", False) and task.network is None:
            raise InputError(
                f"selection.rule {self.selection.rule} trains networks, but none can be built from this model; "
                "use another rule"
            )
        self.shares_weights = needs_supernet(strategy, settings)
        if getattr(self.selector, "needs_supernet", False) and not self.shares_weights:
            raise InputError(
                f"selection.rule {self.selection.rule} needs shared weights, which strategy {settings.strategy} does "
                "not have; use --selection.rule argmax"
            )
        self.budget = budget_of(settings, len(task.train), len(self.stages), self.shares_weights)
        self.spent, self.clock = Spent(), Clock()
        self.stage, self.stage_steps = 0, 0  # which one, and weight steps in it
        self.mask: Mask = {}
        self.entered: Mask = {}  # what was alive when the stage began; a rule may let options leave in it
        self.bad_rounds = 0
        self.tried: list[Tried] = []  # candidates that the selection trained
        self.trials: dict[str, float] = {}  # of them, those that have ended, for checkpoints
        self._before_selection: dict[str, Any] | None = None  # what a selection changes, as it was
        self.on_message: Callable[[str], None] = lambda _: None
        self.cost: CostTarget | None = None
        self.weights: WeightTraining | None = None
        self._make_strategy = strategy
        self._pace = Pace()
        self._enter(0)

    def rounds(self) -> Iterator[Round]:
        """The rounds that remain, one at a time (Algorithm 1 of the paper)."""
        while not self.has_spent(1.0) and not self.strategy.finished:
            if self.has_spent(ends(self.stages)[self.stage]):
                self._next_stage()
            self._warm_up()
            if self.has_spent(ends(self.stages)[self.stage]):
                continue
            self.trials.clear()  # of a selection before the budget was extended
            with self.clock, self.joint_statistics():
                train = self._train_weights(self.settings.inner_steps)  # w ← w − γ ∂L1/∂w, T times
                self.spent.number += 1
                step = self._step_architecture()  # α ← α − η ∇L2, by the strategy
            self._average_alpha()
            self._synchronise()
            yield round_of(self, train, step)
        if not self.number:
            raise InputError(
                "the budget ended before the first step on α, so there is no architecture yet; give more minutes or "
                "gradient_evaluations, or a shorter weights.warmup"
            )

    def _train_weights(self, steps: int) -> Tensor:
        """Mean loss and accuracy of some weight steps; NaN where there are no shared weights."""
        if self.weights is None:
            return torch.full((2,), math.nan)
        seen = []
        dropout = self.stages[self.stage].skip_dropout
        for _ in range(steps):
            if dropout:
                self.net.set_skip_dropout(dropout(self.stage_part()))
            seen.append(self.weights.step(self.strategy.mixtures, self.rate()))
            self.spent.weight_steps += 1
            self.stage_steps += 1
            self.spent.gradient_evaluations += self.weights.evaluations
        return torch.stack(seen).mean(dim=0)

    def _step_architecture(self) -> Step:
        """One step of the strategy; too many in a row that are not finite end the search."""
        try:
            step = self.strategy.step()
            self.bad_rounds = 0 if math.isfinite(step.loss) else self.bad_rounds
            return step
        except (NotFiniteError, SingularCurvatureError) as error:
            self.bad_rounds += 1
            singular = isinstance(error, SingularCurvatureError)
        problem = "the curvature of the training loss" if singular else "a loss or the hypergradient"
        warnings.warn(
            f"{problem} was {'singular' if singular else 'not finite'}, so α did not move in that round; "
            f"after {PATIENCE} such rounds in a row the search ends",
            UserWarning,
            stacklevel=2,
        )
        if self.bad_rounds >= PATIENCE and singular:
            raise InputError(
                f"{problem} was singular in round {self.number}, and α did not move in the {PATIENCE - 1} rounds "
                "before; give hypergradient.damping, or use another hypergradient.method"
            )
        if self.bad_rounds >= PATIENCE:
            raise NotFiniteError(
                f"the losses or the hypergradient were not finite in {PATIENCE} rounds in a row, the last one being "
                f"round {self.number}; lower weights.rate, or give hypergradient.damping"
            )
        return Step()

    def _average_alpha(self) -> None:
        """Average α over the last rounds; where a budget was extended, over those of the new one."""
        if self.used() <= 1 - self.settings.alpha.average:
            self.mean = AlphaMean()
        elif self.shares_weights:
            self.mean.add(self.a)

    def _warm_up(self) -> None:
        """Weight steps at the start of a stage, before its first α step: so many, or as long as α rests.

        They may need all minutes on a slow machine, or all gradient evaluations where a step costs many: if half of
        either is spent, the first round begins.
        """
        warmup, rest = self.settings.weights.warmup, self.settings.alpha.rest
        self._train_mode()
        while (part := self.stage_part()) < 1 and (part < rest - 1e-9 or self.stage_steps < warmup) and not self.late():
            if not self.shares_weights:
                return
            count = f" of {warmup}" if self.stage_steps < warmup else ""
            self.on_message(f"warm-up: {self.stage_steps}{count} weight steps")
            with self.clock, self.joint_statistics():
                self._train_weights(1)

    def _enter(self, index: int) -> None:
        """Build what a stage needs: its supernet, optimisers and strategy."""
        self.stage, self.stage_steps, self.mean = index, 0, AlphaMean()
        self.relaxation = self.settings.build_relaxation(self.stages[index].relaxation)
        if self.shares_weights:
            self.net = self.task.build_supernet(self.stages[index])
            if not self.net.weight_parameters():
                raise InputError("there are no weights to train in this model: all are frozen, or it has none")
            require_built(self.net, self.settings, self.relaxation)
            copy_from_first(self.net)
            self.entered = self.mask = self.mask or self.full_mask()
            require_same_decisions(self.net, self.mask)
            if getattr(self._make_strategy, "steps_alpha", False):
                require_trainable(self.net)
            if index == 0:  # pruning may cut nodes off later
                self._train_mode()
                require_reached(self.net, peek_batch(self.task.valid), self.task.loss, self.mask)
            self.weights = WeightTraining(self.net, self.task, self.settings)
        elif len(self.stages) > 1:
            raise InputError(f"strategy {self.settings.strategy} has no supernet, so no stages; use --stages single")
        self.strategy = self._make_strategy(self, **self.settings.strategy_options)
        self.cost = None
        if self.shares_weights:
            self.cost = cost_target(self.net, self.settings, lambda: peek(self.task.train), lambda: self.mask)

    def _next_stage(self) -> None:
        """Prune the options by α, then begin the next stage with a fresh supernet."""
        upcoming, net = self.stages[self.stage + 1], self.net
        before = [alpha.detach().clone() for alpha in self.a]
        self.mask = next_mask(net, self.mask or self.full_mask(), upcoming)
        self._enter(self.stage + 1)
        if upcoming.keep_alpha:
            with torch.no_grad():
                for alpha, kept in zip(self.a, before, strict=True):
                    alpha.copy_(kept)

    def full_mask(self) -> Mask:
        """All options of every decision, except `none` where the settings leave it out."""
        barred = None if self.settings.none else self.net.none
        return {name: [[c != barred for c in range(a.shape[1])] for _ in a] for name, a in self.net.alpha.items()}

    def relaxed(self, relaxation: Any, name: str) -> Relaxation:
        """A relaxation at the current share of the budget, among the living options of one α."""
        current: Relaxation = relaxation.at(self.used()) if hasattr(relaxation, "at") else relaxation
        alive = self.mask[name]
        among = current if all(map(all, alive)) else Restricted(current, alive, self.net.none)
        return current.around(among, self.net) if hasattr(current, "around") else among

    @property
    def w(self) -> tuple[Tensor, ...]:
        """The weights of the supernet: the inner variables."""
        return self.net.weight_parameters()

    @property
    def a(self) -> tuple[Tensor, ...]:
        """α: the outer variables."""
        return self.net.architecture_parameters()

    @property
    def finished(self) -> bool:
        """Whether no round could change the architecture, whatever the budget."""
        return self.strategy.finished or (self.strategy.steps_alpha and not open_decisions(self.mask))

    @property
    def healthy(self) -> bool:
        """False while numbers are not finite: such a state must not replace a good checkpoint.

        In a selection there is something to save only when trials have ended.
        """
        return not self.bad_rounds and (self._before_selection is None or bool(self.trials))

    def current(self) -> Architecture:
        """The architecture that the search would give now, by α alone."""
        return self.strategy.current()

    def select(self) -> Architecture:
        """The architecture of this search, by the selection rule of its settings."""
        if self.shares_weights:
            self.net.set_skip_dropout(0.0)
        self._before_selection = self._streams()
        with self.joint_statistics(), self.mean.in_place_of(self.a if self.mean.count else ()):
            selected: Selected = self.selector(self)
        self._before_selection = None
        self.spent.gradient_evaluations += selected.gradient_evaluations
        self.tried = selected.tried
        return selected.architecture

    def pick(self, alphas: Mapping[str, Tensor] | None = None) -> Architecture:
        """The architecture of α or of values in its place; within the cost target, where there is one."""
        if self.cost:
            return self.cost.pick(self.net, self.selection, self.living(alphas))
        return self.largest(alphas)

    def largest(self, alphas: Mapping[str, Tensor] | None = None) -> Architecture:
        """The architecture of α or of values in its place, at any cost."""
        return largest(self.net, self.selection, self.living(alphas))

    def living(self, alphas: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
        """α or values in its place, −∞ for the options that take no part any more."""
        values = {name: alpha.detach() for name, alpha in (alphas or self.net.alpha).items()}
        dead = {name: ~constant(self.mask[name], value.device) for name, value in values.items()}
        return {name: value.masked_fill(dead[name], -torch.inf) for name, value in values.items()}

    def spread(self) -> tuple[float, float]:
        """Entropy and margin of α's softmax among the options that take part."""
        return spread(dict(self.net.alpha.items()), self.mask)

    def joint_statistics(self) -> Any:
        """BatchNorm over all ranks together, where the settings say so."""
        return joint_statistics(self.settings.batch_norm == "synchronised")

    def _train_mode(self) -> None:
        if self.shares_weights:
            self.net.train()

    def _synchronise(self) -> None:
        """Between rounds all ranks hold the same state, so that a checkpoint of the first one serves all."""
        if self.weights is not None and world() > 1:
            average_buffers([self.net])
            require_same({"α": self.a, "w": self.w}, f"after round {self.number}")

    def state_dict(self) -> dict[str, Any]:
        """Tensors and plain values only, so that loading it never runs anything."""
        spent = self.spent
        weights = {} if self.weights is None else {"net": self.net.state_dict(), **self.weights.state_dict()}
        return {
            **weights,
            **(self._before_selection or self._streams()),
            **({"trials": dict(self.trials)} if self.trials else {}),
            **({"mean": self.mean.state_dict()} if self.mean.count else {}),
            **({"pace": pace} if (pace := self.pace_state()) else {}),
            "strategy": self.strategy.state_dict(),
            **({"entered": self.entered} if self.stage and self.entered != self.mask else {}),
            "stage": [self.stage, self.stage_steps, self.mask],
            "counts": [spent.number, spent.weight_steps, self.bad_rounds, spent.gradient_evaluations, spent.measuring],
            "seconds": self.clock.seconds,
        }

    def _streams(self) -> dict[str, Any]:
        """The places of all that is random or drawn from: a selection moves them, and leaves the rest as it is."""
        train, valid = self.task.train.state_dict(), self.task.valid.state_dict()
        return {"train": train, "valid": valid, "random": random_states([self.device])}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a saved state, bit for bit."""
        state = legacy.upgrade_state(state, self)
        missing = self.state_dict().keys() - state.keys()
        if missing:
            raise InputError(f"this is not the state of such a search: it lacks {', '.join(sorted(missing))}")
        stage, steps, mask = state["stage"]
        if stage != self.stage:
            self.mask = mask
            self._enter(stage)
            self.entered = state.get("entered", mask)
        self.stage_steps, self.mask = steps, mask
        if self.weights is not None:
            self.net.load_state_dict(state["net"])
            self.weights.load_state_dict(state)
        self.task.train.load_state_dict(state["train"])
        self.task.valid.load_state_dict(state["valid"])
        self.strategy.load_state_dict(state["strategy"])
        number, weight_steps, self.bad_rounds, *evaluations = state["counts"]  # 0.1.0 measured nothing
        self.spent = Spent(number, weight_steps, *evaluations)
        self.clock.seconds = state["seconds"]
        self.load_pace_state(state.get("pace"))
        self.trials = state.get("trials", {})
        self.mean.load_state_dict(state.get("mean", AlphaMean().state_dict()), self.device)
        set_random_states([self.device], state["random"])

    @property
    def device(self) -> torch.device:
        """Where the search runs."""
        return self.a[0].device if self.shares_weights else torch.device("cpu")
