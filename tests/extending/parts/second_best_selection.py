"""A selection of one's own: the second-largest option of every decision."""

from idarts.searching import Selected


def second_best(search):
    alphas = {name: alpha.detach().clone() for name, alpha in search.net.alpha.items()}
    for alpha in alphas.values():
        alpha.scatter_(1, alpha.argmax(1, keepdim=True), -1e9)
    return Selected(search.pick(alphas))
