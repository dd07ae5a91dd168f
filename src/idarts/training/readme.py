"""The model card, a model folder's `README.md`: metadata for Hugging Face's hub, and what a person should know."""

import json
from collections.abc import Iterator
from typing import Any

from idarts._version import __version__
from idarts.training.card import COLOURS, Card

_TAGS = ("image-classification", "neural-architecture-search", "idarts")


def readme(card: Card) -> str:
    """The text of a model card. The license is left to the author of the network.

    >>> from idarts.arch import parse
    >>> trained = {"data": "pets", "accuracy": 0.9, "test": {"accuracy": 0.9, "interval": [0.6, 0.98], "images": 10}}
    >>> card = Card(parse("DARTS_V2"), None, 3, (8, 8), (0.5,) * 3, (0.2,) * 3, ("cat", "dog"), trained)
    >>> print(readme(card).partition("# ")[2].splitlines()[0])
    darts network for pets
    """
    data = str(card.trained.get("data") or "unnamed data")
    name = f"{card.architecture.space} network for {plain(data)}"
    lines = [*_metadata(card, name, data), "", f"# {name}", "", *_about(card, data), "", *_input(card), "", *_usage()]
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Text on one line that is no Markdown, no HTML and no YAML: what could be is left out or escaped.

    >>> plain("a`b|<i>\\x1b[31m")
    'ab i \\\\x1b 31m'
    """
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return " ".join("".join(" " if char in "<>|[]" else "" if char in "`*" else char for char in shown).split())


def _metadata(card: Card, name: str, data: str) -> Iterator[str]:
    """YAML in which every text is quoted as in JSON."""
    yield from ("---", "library_name: idarts", "pipeline_tag: image-classification", "tags:")
    yield from (f"- {tag}" for tag in _TAGS)
    test = _test(card)
    if test:
        yield from ("metrics:", "- accuracy", "model-index:", f"- name: {_quoted(name)}", "  results:")
        yield from ("  - task:", "      type: image-classification", "      name: Image Classification")
        yield from ("    dataset:", f"      type: {_quoted(data)}", f"      name: {_quoted(data)}")
        yield from ("    metrics:", "    - type: accuracy", f"      value: {round(test['accuracy'], 4)}")
        yield "      name: Test accuracy"
    yield "---"


def _about(card: Card, data: str) -> Iterator[str]:
    trained, test = card.trained, _test(card)
    yield f"An image classifier with {len(card.labels)} classes, whose architecture is given in `config.json`"
    yield f"(space `{card.architecture.space}`). It was trained from scratch with idarts {__version__}."
    yield ""
    yield "| | |"
    yield "| --- | --- |"
    yield f"| trained on | {plain(data)}{_count(trained.get('images'), 'images')} |"
    for key in ("epochs", "parameters"):
        if isinstance(trained.get(key), int):
            yield f"| {key} | {trained[key]:,} |"
    if test:
        low, high = test["interval"]
        yield f"| test accuracy | {_percent(test['accuracy'])}, 95 % interval {_percent(low)} to {_percent(high)} |"
        yield f"| test images | {test['images']:,}, none of them used for training |"
    yield ""
    yield "Before you publish it: add `license:` to the metadata above, and say where the images come from, what the"
    yield "network is for, and where it fails (`idarts evaluate` shows that)."


def _input(card: Card) -> Iterator[str]:
    height, width = card.image
    yield "## Input and output"
    yield ""
    colour = COLOURS.get(card.in_channels, f"{card.in_channels} channels")
    yield f"- Image: {height} × {width} pixels, {colour}; other sizes are resized (bilinear, antialiased)."
    yield "- Input: float32 (N, C, H, W), `(pixels / 255 - mean) / std` with"
    yield f"  mean `{[round(value, 6) for value in card.mean]}` and std `{[round(value, 6) for value in card.std]}`."
    yield f"- Output: {len(card.labels)} logits, in this order: {_labels(card)}."


def _usage() -> Iterator[str]:
    yield "## Use"
    yield ""
    yield "```python"
    yield "import idarts"
    yield 'net = idarts.load("path/to/this/folder")'
    yield 'print(next(idarts.predict(net, ["photo.jpg"])).classes)'
    yield "```"


def _test(card: Card) -> dict[str, Any] | None:
    """The facts of the test, if they are there as this version writes them: a card may come from anywhere."""
    test = card.trained.get("test")
    if not isinstance(test, dict):
        return None
    interval = test.get("interval")
    numbers = [test.get("accuracy"), test.get("images"), *(interval if isinstance(interval, list | tuple) else ())]
    return test if len(numbers) == 4 and all(type(number) in (int, float) for number in numbers) else None


def _labels(card: Card) -> str:
    shown = ", ".join(f"`{plain(label)}`" for label in card.labels[:100])
    return shown if len(card.labels) <= 100 else f"{shown} and {len(card.labels) - 100} more, see `config.json`"


def _count(number: Any, unit: str) -> str:
    return f" ({number:,} {unit})" if isinstance(number, int) else ""


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _quoted(text: str) -> str:
    return json.dumps(plain(text) or "unnamed", ensure_ascii=False)
