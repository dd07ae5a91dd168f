"""A population strategy of one's own: the better of two, changed in one decision, trained for a few steps."""

from random import Random

from idarts.arch import from_json, to_json
from idarts.searching import Step, Strategy
from idarts.searching.selections.trials import Trial


class TinyEvolution(Strategy):
    shares_weights = False

    def __init__(self, search):
        super().__init__(search)
        self.random = Random(search.settings.seed)
        self.history = []  # (loss, architecture), oldest first
        self.trial = Trial.of(search, [next(search.task.valid)])

    def step(self):
        task = self.search.task
        if len(self.history) < 3:
            child = task.sample(self.random)
        else:
            child = task.mutate(min(self.random.sample(self.history[-3:], 2), key=lambda one: one[0])[1], self.random)
        loss = self.trial(child, steps=2)
        self.search.spent.gradient_evaluations += 2
        self.history.append((loss, child))
        return Step(loss, measures={"population": float(len(self.history))})

    def current(self):
        return min(self.history, key=lambda one: one[0])[1]

    def state_dict(self):
        history = [[loss, to_json(architecture)] for loss, architecture in self.history]
        return {"history": history, "random": self.random.getstate()}

    def load_state_dict(self, state):
        self.history = [(loss, from_json(text)) for loss, text in state["history"]]
        version, internal, gauss = state["random"]
        self.random.setstate((version, tuple(internal), gauss))
