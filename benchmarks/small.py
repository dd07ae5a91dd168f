"""From which size of an activation on a lean layer pays: lean against torch's, for the gradient and a product.

`python benchmarks/small.py`: a CNN of three layers (convolution, BatchNorm, ReLU), interleaved, fastest CPU time. Lean
layers run torch's own code below `idarts.layers.fallback.SMALL`; here they are lean at every size.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from idarts.layers import fallback
from idarts.layers.lean import lean
from overhead import fastest

SHAPES = ((4, 8, 8), (8, 8, 8), (16, 8, 8), (16, 16, 8), (16, 8, 16), (32, 16, 8), (32, 16, 16), (64, 16, 16))


def cnn(channels: int) -> nn.Sequential:
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for _ in range(3):
        layers += [nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()]
    return nn.Sequential(*layers)


def gradient(net: nn.Module, x: Tensor, *, create_graph: bool = False) -> tuple[Tensor, ...]:
    return torch.autograd.grad(net(x).square().mean(), tuple(net.parameters()), create_graph=create_graph)


def product(net: nn.Module, x: Tensor) -> tuple[Tensor, ...]:
    grads = gradient(net, x, create_graph=True)
    return torch.autograd.grad(grads, tuple(net.parameters()), [torch.ones_like(g) for g in grads])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", type=Path, metavar="FILE", help="save the results here as well")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    fallback.SMALL = 0
    rows = []
    print("values   layout         gradient  with a product   (time with lean layers / with torch's)")
    for batch, channels, size in SHAPES:
        for name, layout in (("contiguous", torch.contiguous_format), ("channels last", torch.channels_last)):
            x = torch.randn(batch, channels, size, size).contiguous(memory_format=layout)
            nets = [net.to(memory_format=layout) for net in (cnn(channels), lean(cnn(channels)))]  # type: ignore[call-overload]
            works: tuple[Callable[[nn.Module, Tensor], object], ...] = (gradient, product)
            runs: dict[str, Callable[[], object]] = {
                f"{work.__name__} {i}": lambda work=work, net=net, x=x: work(net, x)  # type: ignore[misc]
                for work in works
                for i, net in enumerate(nets)
            }
            seconds = fastest(runs, options.rounds)
            ratios = {work.__name__: seconds[f"{work.__name__} 1"] / seconds[f"{work.__name__} 0"] for work in works}
            rows.append({"values": x.numel(), "layout": name, **ratios})
            print(f"{x.numel():7,}  {name:13}  {ratios['gradient']:8.2f}  {ratios['product']:14.2f}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"torch": torch.__version__, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
