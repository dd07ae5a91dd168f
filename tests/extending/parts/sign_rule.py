"""A rule for α of one's own: signs of a running mean of the gradient, which is its state."""

import torch


class Sign:
    def __init__(self, alphas, settings):
        self.alphas, self.rate = alphas, settings.rate
        self.means = [torch.zeros_like(alpha) for alpha in alphas]

    @torch.no_grad()
    def step(self, grads):
        for alpha, mean, grad in zip(self.alphas, self.means, grads, strict=True):
            mean.mul_(0.9).add_(grad)
            alpha.sub_(self.rate * mean.sign())

    def state_dict(self):
        return {"means": self.means}

    def load_state_dict(self, state):
        for mean, kept in zip(self.means, state["means"], strict=True):
            mean.copy_(kept)
