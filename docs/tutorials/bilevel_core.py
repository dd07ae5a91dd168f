"""
Hyperparameters and data cleaning with the bilevel core
=======================================================

``idarts.hypergrad`` needs no architecture search. It minimises an outer loss over
parameters ``a`` that shape an inner training of ``w``. Here ``a`` is a weight for each
training example, and the outer loss is that of a few clean examples.
"""

# %%
# Two classes in the plane; a third of the training labels is wrong.
import torch
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

from idarts.hypergrad import Neumann, hypergradient

torch.manual_seed(0)
x = torch.randn(300, 2)
y = (x @ torch.tensor([2.0, -1.0]) > 0).float()
wrong = torch.rand(200) < 0.33
train_x, train_y = x[:200], torch.where(wrong, 1 - y[:200], y[:200])
clean_x, clean_y = x[200:], y[200:]


# %%
# Both losses are functions of two tuples of tensors. The inner one is the training
# loss, weighted by ``a``; the outer one does not use ``a`` directly, so its gradient is
# all implicit.
def inner(w, a):
    losses = cross_entropy(train_x @ w[0], train_y, reduction="none")
    return (a[0].sigmoid() * losses).mean() + 0.01 * (w[0] ** 2).sum()


def outer(w, a):
    return cross_entropy(clean_x @ w[0], clean_y)


# %%
# Alternate: train ``w`` for some steps, then take one step on ``a``. ``step="auto"``
# takes γ from the curvature; passing the state on makes that cheap.
w, a = (torch.zeros(2, requires_grad=True),), (torch.zeros(200, requires_grad=True),)
weights, examples, state = torch.optim.SGD(w, lr=1.0), torch.optim.Adam(a, lr=0.2), None
for number in range(40):
    for _ in range(20):
        weights.zero_grad()
        inner(w, (a[0].detach(),)).backward()
        weights.step()
    estimate = hypergradient(
        inner, outer, w, a, Neumann(terms=10, step="auto"), state=state
    ).write_grad(a)
    state = estimate.state
    examples.step()
    if number % 13 == 0:
        print(f"round {number:2}: outer loss {estimate.outer_loss.item():.3f}")

# %%
# The weights of the wrong examples fell.
learnt = a[0].detach().sigmoid()
for name, some in (("right", ~wrong), ("wrong", wrong)):
    print(f"mean weight of {name} labels: {learnt[some].mean():.2f}")

# %%
# The same loop tunes hyperparameters: let ``a`` be the logarithm of a weight decay. At
# the optimum of the inner problem the exact gradient is known, so the series can be
# checked.
from idarts.hypergrad import Exact

decay = (torch.tensor([-3.0], requires_grad=True),)


def decayed(w, a):
    return cross_entropy(train_x @ w[0], train_y) + a[0].exp().sum() * (w[0] ** 2).sum()


optimizer = torch.optim.LBFGS(
    w, max_iter=100, tolerance_grad=1e-9, line_search_fn="strong_wolfe"
)


def closure():
    optimizer.zero_grad()
    loss = decayed(w, (decay[0].detach(),))
    loss.backward()
    return loss


optimizer.step(closure)
exact = hypergradient(decayed, outer, w, decay, Exact()).grads[0].item()
for terms in (0, 2, 10):
    estimate = hypergradient(decayed, outer, w, decay, Neumann(terms, "auto"))
    print(f"K = {terms:2}: {estimate.grads[0].item():+.5f} (exact {exact:+.5f})")

# %%
# Next: :doc:`/hypergradients` says how to choose an estimator; ``examples/`` has both
# problems on real data.
