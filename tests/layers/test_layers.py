"""The lean layers against torch's own: values, gradients, double gradients, buffers and layouts."""

import copy
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from idarts.layers.lean import (
    LeanAvgPool2d,
    LeanBatchNorm2d,
    LeanConv2d,
    LeanReLU,
    avg_pool2d,
    batch_norm,
    conv2d,
    lean,
    lean_depthwise,
    relu,
    statistics_by,
    unlean,
)

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-4}
LAYOUTS = st.sampled_from([torch.contiguous_format, torch.channels_last])
DTYPES = st.sampled_from([torch.float64, torch.float64, torch.float32])
fast = settings(max_examples=40, deadline=None)


@pytest.fixture(autouse=True)
def every_input_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' inputs are small, and the layers would leave them to torch."""
    monkeypatch.setattr("idarts.layers.fallback.SMALL", 0)


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64, **options: Any) -> Tensor:
    t = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype, **options)
    return t.detach().requires_grad_()


def orders(function: Callable[..., Tensor], inputs: Sequence[Tensor]) -> list[Tensor | None]:
    """The value, the gradients along a random g, and the double gradients along random u, also with respect to g."""
    inputs = [t.detach().clone().requires_grad_() for t in inputs]
    value = function(*inputs)
    g = random(*value.shape, seed=1, dtype=value.dtype)
    grads = torch.autograd.grad(value, inputs, g, create_graph=True)
    u = [random(*t.shape, seed=2 + i, dtype=t.dtype) for i, t in enumerate(grads)]
    double = torch.autograd.grad(grads, [g, *inputs], u, allow_unused=True)
    return [value, *grads, *double]


def assert_same(ours: Sequence[Tensor | None], stock: Sequence[Tensor | None]) -> None:
    for i, (a, b) in enumerate(zip(ours, stock, strict=True)):
        if a is None or b is None:  # autograd's two forms of zero: None, or a tensor of zeros
            assert all(t is None or not t.any() for t in (a, b)), f"only one of the tensors {i} is zero"
            continue
        assert a.dtype == b.dtype
        error = (a - b).abs().max() / (1 + b.abs().max())
        assert error < TOLERANCE[b.dtype], f"tensor {i} is off by {error:.1e}"


@fast
@given(
    shape=st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 6), st.integers(1, 6)),
    training=st.booleans(),
    affine=st.sampled_from(["none", "weight", "both"]),
    eps=st.sampled_from([1e-5, 1e-3, 1.0]),
    offset=st.sampled_from([0.0, 3.0]),
    layout=LAYOUTS,
    dtype=DTYPES,
)
def test_batch_norm_equals_stock_in_all_orders(
    shape: tuple[int, ...],
    training: bool,
    affine: str,
    eps: float,
    offset: float,
    layout: torch.memory_format,
    dtype: torch.dtype,
) -> None:
    n, c, h, w = shape
    assume(n * h * w >= 8)  # with fewer values the variance may vanish, and any two roundings disagree
    x = random(*shape, dtype=dtype, memory_format=layout) + offset
    vectors = [random(c, seed=5, dtype=dtype), random(c, seed=6, dtype=dtype)]
    inputs = [x, *vectors[: ["none", "weight", "both"].index(affine)]]
    statistics = (random(c, seed=7, dtype=dtype).detach(), random(c, seed=8, dtype=dtype).detach().abs() + 0.1)
    results = []
    for function in (batch_norm, functional.batch_norm):
        mean, var = (t.clone() for t in statistics)

        def layer(x: Tensor, *wb: Tensor, f: Any = function, mv: tuple[Tensor, Tensor] = (mean, var)) -> Tensor:
            return f(x, *mv, *(*wb, None, None)[:2], training, 0.3, eps)

        results.append([*orders(layer, inputs), mean, var])
    assert_same(*results)


@fast
@given(
    n=st.integers(1, 3),
    groups=st.integers(1, 3),
    width=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    size=st.tuples(st.integers(5, 8), st.integers(5, 8)),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    dilation=st.integers(1, 2),
    bias=st.booleans(),
    layout=LAYOUTS,
    dtype=DTYPES,
)
def test_conv2d_equals_stock_in_all_orders(
    n: int,
    groups: int,
    width: tuple[int, int],
    size: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: int,
    bias: bool,
    layout: torch.memory_format,
    dtype: torch.dtype,
) -> None:
    x = random(n, groups * width[0], *size, dtype=dtype, memory_format=layout)
    weight = random(groups * width[1], width[0], *kernel, seed=5, dtype=dtype)
    inputs = [x, weight, *([random(groups * width[1], seed=6, dtype=dtype)] if bias else [])]
    geometry = (stride, padding, dilation, groups)

    def layer(function: Any) -> Callable[..., Tensor]:
        return lambda x, w, b=None: function(x, w, b, *geometry)

    assert_same(orders(layer(conv2d), inputs), orders(layer(functional.conv2d), inputs))


@fast
@given(
    kernel=st.integers(1, 3),
    stride=st.sampled_from([None, 1, 2]),
    pad=st.booleans(),
    ceil=st.booleans(),
    count=st.booleans(),
    divisor=st.sampled_from([None, 3]),
    layout=LAYOUTS,
)
def test_avg_pool2d_equals_stock_in_all_orders(
    kernel: int,
    stride: int | None,
    pad: bool,
    ceil: bool,
    count: bool,
    divisor: int | None,
    layout: torch.memory_format,
) -> None:
    x = random(2, 3, 7, 6, memory_format=layout)
    window = (kernel, stride, kernel // 2 if pad else 0, ceil, count, divisor)
    ours, stock = (orders(lambda x, f=f: f(x, *window), [x]) for f in (avg_pool2d, functional.avg_pool2d))
    assert_same(ours, stock)


def test_relu_equals_stock_in_all_orders() -> None:
    x = random(2, 3, 4, 5)
    assert_same(orders(lambda x: relu(x) * x, [x]), orders(lambda x: torch.relu(x) * x, [x]))


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_against_finite_differences(training: bool) -> None:
    mean, var = torch.zeros(2, dtype=torch.float64), torch.full((2,), 1.5, dtype=torch.float64)

    def layer(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return batch_norm(x, mean, var, weight, bias, training, 0.0, 1e-2)

    inputs = random(3, 2, 2, 3), random(2, seed=5), random(2, seed=6)
    assert gradcheck(layer, inputs, fast_mode=True)
    assert gradgradcheck(layer, inputs, fast_mode=True)


@pytest.mark.parametrize("groups", [1, 2])
def test_conv2d_against_finite_differences(groups: int) -> None:
    inputs = random(2, 4, 4, 3), random(2, 4 // groups, 2, 3, seed=5), random(2, seed=6)
    assert gradgradcheck(lambda x, w, b: conv2d(x, w, b, (2, 1), 1, 1, groups), inputs, fast_mode=True)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel:UserWarning")
@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("kernel", [(3, 3), (2, 3), (1, 1)])
def test_conv2d_with_named_padding(padding: str, kernel: tuple[int, int]) -> None:
    inputs = [random(2, 3, 6, 6), random(4, 3, *kernel, seed=5)]
    ours, stock = (orders(lambda x, w, f=f: f(x, w, padding=padding), inputs) for f in (conv2d, functional.conv2d))
    assert_same(ours, stock)


def test_conv2d_refuses_what_stock_refuses() -> None:
    x, w = random(1, 2, 5, 5), random(2, 2, 3, 3)
    for options in ({"padding": "same", "stride": 2}, {"padding": "some"}, {"groups": 2}):
        with pytest.raises((RuntimeError, ValueError)):
            conv2d(x, w, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_conv_layer_with_other_padding_modes(mode: str) -> None:
    stock = nn.Conv2d(2, 3, 3, padding=1, padding_mode=mode).double()
    ours = lean(copy.deepcopy(stock))
    assert_same(orders(ours, [random(2, 2, 5, 5)]), orders(stock, [random(2, 2, 5, 5)]))


@pytest.mark.parametrize(
    "options",
    [{}, {"momentum": None}, {"momentum": 0.5, "eps": 1e-3}, {"affine": False}, {"track_running_stats": False}],
    ids=str,
)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
def test_batch_norm_layer_keeps_the_same_statistics(options: dict[str, Any], layout: torch.memory_format) -> None:
    stock = nn.BatchNorm2d(3, **options)
    ours = lean(copy.deepcopy(stock))
    for step in range(4):
        x = random(4, 3, 5, 5, seed=step, dtype=torch.float32, memory_format=layout) + step
        assert_same([ours(x)], [stock(x)])
    assert ours.state_dict().keys() == stock.state_dict().keys()
    for name, buffer in stock.named_buffers():
        torch.testing.assert_close(ours.get_buffer(name), buffer, rtol=1e-6, atol=1e-7)
    ours.eval(), stock.eval()
    x = random(4, 3, 5, 5, seed=9, dtype=torch.float32)
    assert_same(orders(ours, [x]), orders(stock, [x]))


def test_batch_norm_needs_two_values_and_four_dimensions() -> None:
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        LeanBatchNorm2d(3)(torch.zeros(1, 3, 1, 1))
    with pytest.raises(ValueError, match="expected 4D input"):
        LeanBatchNorm2d(3)(torch.zeros(2, 3))
    with pytest.raises(RuntimeError, match="running_mean"):
        batch_norm(random(2, 3, 4, 4), None, None, training=False)


@pytest.mark.parametrize("precision", [None, torch.bfloat16])
def test_batch_norm_of_an_expanded_weight(precision: torch.dtype | None) -> None:
    """Torch's own kernel of the gradient reads past its end where the channels are last."""
    x, u = (random(4, 32, 2, 2, seed=seed, dtype=torch.float32) for seed in (0, 1))
    x, u = (t.detach().contiguous(memory_format=torch.channels_last).requires_grad_() for t in (x, u))
    weight = torch.full((1,), 2.0, requires_grad=True).expand(32)
    with torch.autocast("cpu", precision, enabled=precision is not None):
        ours, expected = (
            torch.autograd.grad(batch_norm(x, None, None, w, training=True), x, u) for w in (weight, weight.clone())
        )
    assert_same(ours, expected)


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_refuses_vectors_of_another_length(training: bool, place: int, length: int) -> None:
    """Torch's kernel below checks nothing: it reads past the end of a short one."""
    vectors = [torch.ones(length if place == number else 3) for number in range(4)]
    wrong = f"{('running_mean', 'running_var', 'weight', 'bias')[place]} should contain 3 elements not {length}"
    x = torch.randn(16, 3, 16, 16, requires_grad=True)
    for gathers in (False, True):
        with (
            statistics_by(lambda own: own[None]) if gathers else nullcontext(),
            pytest.raises(RuntimeError, match=wrong),
        ):
            batch_norm(x, *vectors, training=training)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1, bias=False),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.AvgPool2d(3, 2, 1, count_include_pad=False),
        nn.Sequential(nn.Conv2d(6, 6, 3, groups=2, bias=False), nn.BatchNorm2d(6, affine=False), nn.ReLU(inplace=True)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, 4),
    )


def test_lean_changes_classes_and_nothing_else() -> None:
    net = network()
    before = [*net.parameters(), *net.buffers()]
    keys, hooked = list(net.state_dict()), []
    net[0].register_forward_hook(lambda *_: hooked.append(True))
    assert lean(net) is net
    assert all(a is b for a, b in zip(before, [*net.parameters(), *net.buffers()], strict=True))
    assert list(net.state_dict()) == keys
    assert [type(m) for m in net[:4]] == [LeanConv2d, LeanBatchNorm2d, LeanReLU, LeanAvgPool2d]
    net(torch.zeros(2, 3, 8, 8))
    assert hooked == [True]


def test_lean_leaves_other_classes_and_takes_a_single_layer() -> None:
    class Mine(nn.Conv2d):
        pass

    assert [type(m) for m in lean(nn.Sequential(Mine(1, 1, 1), nn.BatchNorm1d(1)))] == [Mine, nn.BatchNorm1d]
    assert type(lean(nn.BatchNorm2d(2))) is LeanBatchNorm2d


def hvp(net: nn.Module, x: Tensor) -> list[Tensor]:
    w = dict(net.named_parameters())
    loss = torch.func.functional_call(net, w, x).pow(3).sum()
    grads = torch.autograd.grad(loss, list(w.values()), create_graph=True)
    vectors = [random(*g.shape, seed=i, dtype=g.dtype) for i, g in enumerate(grads)]
    return [*grads, *torch.autograd.grad(grads, list(w.values()), vectors)]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
def test_network_has_the_same_hessian_products(dtype: torch.dtype, layout: torch.memory_format) -> None:
    net = network().to(dtype=dtype, memory_format=layout)
    x = random(5, 3, 9, 9, dtype=dtype, memory_format=layout).detach()
    stock = hvp(net, x)
    assert_same(hvp(lean(net), x), stock)


class Watch(TorchDispatchMode):
    """Records every operation that torch runs, with its arguments and result."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, tuple[Any, ...], Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.calls.append((func.__name__, args, result))
        return result


def test_channels_last_is_preserved_through_the_double_backward() -> None:
    net = lean(network())[:4].to(memory_format=torch.channels_last)
    x = torch.randn(5, 3, 9, 9).to(memory_format=torch.channels_last)
    with Watch() as watch:
        hvp(net, x)
    results = [r for _, _, result in watch.calls for r in (result if isinstance(result, tuple) else (result,))]
    images = [r for r in results if isinstance(r, Tensor) and r.dim() == 4 and len(r) == 5]
    assert len(images) > 20
    assert all(t.is_contiguous(memory_format=torch.channels_last) or not t.stride(0) for t in images)


def test_derivatives_by_hidden_tensors() -> None:
    def twice(net: nn.Sequential) -> list[Tensor]:
        hidden = net[0](random(5, 3, 9, 9))
        (grad,) = torch.autograd.grad(net[1:4](hidden).pow(3).sum(), hidden, create_graph=True)
        return [grad, *torch.autograd.grad(grad.pow(2).sum(), (hidden, net[1].weight))]

    assert_same(twice(lean(network().double())), twice(network().double()))


def test_weight_gradients_that_are_not_needed_are_not_computed() -> None:
    net = lean(network())[:3].double()
    weight, scale = net[0].weight, net[1].weight
    with Watch() as watch:
        (grad,) = torch.autograd.grad(net(random(5, 3, 9, 9)).pow(3).sum(), [weight], create_graph=True)
    assert [args[-1] for name, args, _ in watch.calls if "convolution_backward" in name] == [[False, True, False]]
    with Watch() as watch:
        torch.autograd.grad(grad.pow(2).sum(), [scale])
    assert not [args[-1] for name, args, _ in watch.calls if "convolution_backward" in name]


class Formulas:
    """Torch's functions, except for batch normalisation, whose third derivative is wrong in torch."""

    relu, conv2d, avg_pool2d = torch.relu, staticmethod(functional.conv2d), staticmethod(functional.avg_pool2d)

    @staticmethod
    def batch_norm(x: Tensor, mean: Tensor, var: Tensor, weight: Tensor, _: None, training: bool) -> Tensor:
        if training:
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0)
        mean, scale = (t.view(1, -1, 1, 1) for t in (mean, weight * (var + 1e-5).rsqrt()))
        return (x - mean) * scale


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
def test_the_third_order_is_right_too(training: bool, layout: torch.memory_format) -> None:
    def third(f: Any) -> list[Tensor]:
        inputs = [random(2, 2, 5, 5, memory_format=layout), random(2, 2, 3, 3, seed=5), random(2, seed=6)]
        mean, var = torch.ones(2, dtype=torch.float64), torch.full((2,), 2.0, dtype=torch.float64)
        y = f.batch_norm(f.conv2d(*inputs[:2]), mean, var, inputs[2], None, training)
        y = y.contiguous()  # gradients of another layout than x must not break the chain
        value = f.avg_pool2d(f.relu(y) * y, 2).pow(3).sum()
        for _ in range(3):
            grads = torch.autograd.grad(value, inputs, create_graph=True)
            value = torch.stack([(g * random(*g.shape, seed=i)).sum() for i, g in enumerate(grads)]).sum()
        return list(grads)

    ours = SimpleNamespace(relu=relu, conv2d=conv2d, avg_pool2d=avg_pool2d, batch_norm=batch_norm)
    assert_same(third(ours), third(Formulas))


def test_under_autocast_the_layers_are_stock() -> None:
    stock = network()
    ours = lean(copy.deepcopy(stock))
    x = torch.randn(4, 3, 8, 8)
    with torch.autocast("cpu", torch.bfloat16):
        a, b = ours(x), stock(x)
    assert a.dtype == b.dtype == torch.bfloat16
    assert torch.equal(a, b)


def test_torch_func_and_forward_mode_work() -> None:
    stock = network().double().eval()
    ours = lean(copy.deepcopy(stock))
    x, t = random(4, 3, 8, 8).detach(), random(4, 3, 8, 8, seed=1).detach()
    for function in (
        lambda net: torch.func.grad(lambda x: net(x).pow(2).sum())(x),
        lambda net: torch.func.vmap(lambda x: net(x[None]))(x),
        lambda net: torch.func.jvp(net, (x,), (t,))[1],
        lambda net: torch.autograd.functional.hvp(lambda x: net(x).pow(2).sum(), x, t)[1],
    ):
        assert_same([function(ours)], [function(stock)])


def test_an_empty_batch_is_stock() -> None:
    x = torch.zeros(0, 3, 4, 4)
    assert LeanConv2d(3, 2, 3)(x).shape == (0, 2, 2, 2)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_an_expanded_weight(layout):
    """One number for all channels, as α is: torch's kernel reads past the end of such a tensor."""
    torch.manual_seed(0)
    x = torch.randn(4, 8, 16, 16).contiguous(memory_format=layout).requires_grad_()
    scale, shift = torch.tensor(0.7, requires_grad=True), torch.tensor(0.2, requires_grad=True)
    grads = []
    for weight, bias in ((scale.expand(8), shift.expand(8)), (scale.repeat(8), shift.repeat(8))):
        y = batch_norm(x, None, None, weight, bias, training=True)
        grads.append(torch.autograd.grad(y.pow(3).sum(), (x, scale, shift)))
    torch.testing.assert_close(*grads)


def names(y: Tensor) -> str:
    return type(y.grad_fn).__name__


def test_small_inputs_are_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As measured: below some 16,000 values the fixed cost of a lean layer is more than what it saves."""
    monkeypatch.setattr("idarts.layers.fallback.SMALL", 16_384)
    for stock in (nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(2), nn.MaxPool2d(2)):
        layer = lean(copy.deepcopy(stock))
        small, large = (
            torch.randn(n, 4, 16, 16).contiguous(memory_format=torch.channels_last).requires_grad_() for n in (8, 16)
        )
        assert names(layer(small)) == names(stock(small))
        assert names(layer(large)) != names(stock(large))
    assert names(lean(nn.MaxPool2d(2))(large.contiguous())) == names(nn.MaxPool2d(2)(large.contiguous()))


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
def test_recomputation_of_lean_layers(layout: torch.memory_format) -> None:
    net = lean(network().double())[:4]
    x = random(5, 3, 9, 9, memory_format=layout)

    def orders_of(run: Callable[[Tensor], Tensor]) -> list[Tensor]:
        inputs = [x, *net.parameters()]
        grads = torch.autograd.grad(run(x).pow(3).sum(), inputs, create_graph=True)
        return [*grads, *torch.autograd.grad(sum(g.pow(2).sum() for g in grads), inputs)]

    again = orders_of(lambda x: checkpoint(net, x, use_reentrant=False))
    assert_same(again, orders_of(net))


@pytest.mark.parametrize("channels", range(1, 9))
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
def test_an_activation_in_place_may_follow_pooling(channels: int, layout: torch.memory_format) -> None:
    stock = nn.Sequential(nn.MaxPool2d(2), nn.ReLU(inplace=True))
    x = random(2, channels, 6, 6, memory_format=layout)
    assert_same(orders(lean(copy.deepcopy(stock)), [x]), orders(stock, [x]))


def test_unlean_is_the_way_back() -> None:
    net = network()
    parameters, kinds = list(net.parameters()), [type(m) for m in net.modules()]
    assert unlean(lean(net)) is net
    assert [type(m) for m in net.modules()] == kinds
    assert all(a is b for a, b in zip(parameters, net.parameters(), strict=True))
    fused = torch.nn.utils.fusion.fuse_conv_bn_eval(net.eval()[0], net[1])
    x = torch.randn(2, 3, 8, 8)
    torch.testing.assert_close(fused(x), net[:2](x), rtol=1e-4, atol=1e-5)


def test_only_slow_depthwise_convolutions_become_lean() -> None:
    slow = [nn.Conv2d(4, 4, 5, padding=2, groups=4), nn.Conv2d(4, 4, (3, 7), groups=4)]
    fast = [nn.Conv2d(4, 4, 3, groups=4), nn.Conv2d(4, 8, 5, groups=4), nn.Conv2d(4, 4, 5, dilation=2, groups=4)]
    others = [nn.Conv2d(4, 4, 5), nn.Conv2d(1, 1, 3), nn.BatchNorm2d(4), nn.ReLU()]
    kinds = [type(layer) for layer in (*fast, *others)]
    assert lean_depthwise(nn.Sequential(*slow, *fast, *others)) == slow
    assert [type(layer) for layer in slow] == [LeanConv2d] * 2
    assert [type(layer) for layer in (*fast, *others)] == kinds


def test_a_lean_depthwise_network_has_torchs_gradients() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 6, 1), nn.Conv2d(6, 6, 5, 2, 2, groups=6), nn.Conv2d(6, 6, 5, 1, 2, groups=6))
    ours, x = copy.deepcopy(net), torch.randn(4, 3, 16, 16)
    assert len(lean_depthwise(ours)) == 2
    for one in (net, ours):
        one(x).square().sum().backward()
    assert_same([p.grad for p in ours.parameters()], [p.grad for p in net.parameters()])


@pytest.mark.parametrize("order", [3, 4])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_higher_orders_with_a_stock_convolution(order: int, before: bool, affine: bool, training: bool) -> None:
    """The docstrings say any number of derivatives."""

    def derivatives(make: Callable[[nn.Module], nn.Module]) -> list[Tensor]:
        torch.manual_seed(0)
        norm = nn.BatchNorm2d(2, affine=affine).double().train(training)
        layers = [nn.Conv2d(2, 2, 3), make(norm), make(nn.Conv2d(2, 2, 2)), nn.Softplus(), make(nn.AvgPool2d(2))]
        net = nn.Sequential(*(layers if before else layers[1:])).double()
        inputs = [random(2, 2, 6, 6), *net.parameters()]
        value = net(inputs[0]).pow(3).sum()
        for _ in range(order):
            grads = torch.autograd.grad(value, inputs, create_graph=True, materialize_grads=True)
            value = torch.stack([(g * random(*g.shape, seed=i)).sum() for i, g in enumerate(grads)]).sum()
        return list(grads)

    def by_formula(layer: nn.Module) -> nn.Module:
        """BatchNorm's third derivative is wrong in torch."""
        if isinstance(layer, nn.BatchNorm2d):
            ones = torch.ones(2, dtype=torch.float64)
            mean, var = (layer.running_mean, layer.running_var) if not training else (None, None)
            weight = ones if layer.weight is None else layer.weight
            norm = nn.Identity()
            if layer.weight is not None:
                norm.weight, norm.bias = layer.weight, layer.bias
            norm.forward = lambda x: (
                Formulas.batch_norm(x, mean, var, norm.weight if affine else weight, None, training)
                + (norm.bias.view(1, -1, 1, 1) if affine else 0)
            )
            return norm
        return layer

    assert_same(derivatives(lean), derivatives(by_formula))
