"""A penalty of one's own: the squares of α, more and more of them."""


def small(alphas, mask, used, weight=0.1):
    return weight * used * sum(alpha.square().sum() for alpha in alphas.values())
