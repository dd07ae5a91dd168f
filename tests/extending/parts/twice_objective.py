"""An objective of one's own: the mean loss of two draws; it counts its steps, which is its state."""


class Twice:
    def __init__(self, settings):
        self.steps = 0

    def __call__(self, draw, evaluate):
        self.steps += 1
        return (evaluate(draw()) + evaluate(draw())) / 2

    def state_dict(self):
        return {"steps": self.steps}

    def load_state_dict(self, state):
        self.steps = state["steps"]
