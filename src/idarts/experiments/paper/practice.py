"""Does a search help on a person's own data? Five data sets, each fitted in the same time with several seeds.

Not in the paper. `idarts fit` trains the found network beside a fixed and some random networks of the same size; this
experiment repeats that over data sets and seeds, and tests the differences in pairs.
"""

from collections.abc import Iterator
from pathlib import Path
from statistics import median

from idarts.arch import as_text
from idarts.data.roots import locate
from idarts.engine.folder import RESULT
from idarts.experiments.experiment import Experiment, Request
from idarts.experiments.jobs import FunctionJob, Job
from idarts.experiments.paper import add
from idarts.experiments.statistics import paired, require_scipy
from idarts.experiments.store import Row, digest
from idarts.fitting import fit
from idarts.fitting.outcome import read_result
from idarts.fitting.record import FIT, read
from idarts.pages.experiment import Section, column
from idarts.pages.numbers import MISSING, mean_std
from idarts.training import load, profile
from idarts.training.card import card_of

MINUTES = {"paper": 20.0, "cpu": 20.0, "smoke": 0.3}
# data set → a source by name, or the file in the data root
SETS: dict[str, tuple[str, str]] = {
    "cifar10": ("cifar10", ""),
    "cifar100-16px": ("npz", "cifar100_16px*.npz"),
    "fashion-mnist": ("fashion-mnist", ""),
    "pneumonia": ("npz", "pneumoniamnist*.npz"),
    "spoken-digits": ("npz", "fsdd_logmel*.npz"),
}
SMOKE = {"digits": "digits"}  # are part of the package, so smoke runs on a machine without data
NETWORKS = ("found", "fixed", "random")
PLANNED = ("threads", "image", "channels")  # what depends on the speed of the machine
COLUMNS = (
    *("data", "seed", "minutes", "seconds", "winner", *NETWORKS),
    *(*PLANNED, "epochs", "p"),
    *(f"{name}_{limit}" for name in NETWORKS for limit in ("low", "high")),
    *(f"{name}_parameters" for name in NETWORKS),
    *("found_milliseconds", "fixed_milliseconds", "architecture"),
)


def _plan(request: Request) -> Iterator[Job]:
    require_scipy()
    minutes = MINUTES[request.preset]
    sources = SMOKE if request.preset == "smoke" else {name: source_of(name) for name in SETS}
    for seed in request.seeds:  # seed by seed, so that an experiment that is stopped early has complete seeds
        for name, source in sources.items():
            folder = request.out / "fits" / f"{name}-{seed}"
            arguments = {"name": name, "source": source, "seed": seed, "minutes": minutes, "out": str(folder)}
            yield FunctionJob(
                f"{name}-{seed}", digest({"minutes": minutes}), function=fit_once, arguments=arguments, words=(name,)
            )


def source_of(name: str) -> str:
    """The data source of a set; an error that says what is missing where its file is not there."""
    source, pattern = SETS[name]
    return source if not pattern else f"{source}:{locate([pattern], None, name, pattern)}"


def fit_once(name: str, source: str, seed: int, minutes: float, out: str) -> list[Row]:
    """One fit, or the rest of one that was stopped, as a row. A finished fit is only read."""
    folder = Path(out)
    if (folder / RESULT).is_file():
        result = read_result(folder)
    else:
        result = fit(source, minutes=minutes, out=folder, seed=seed, resume=(folder / FIT).is_file())
    row: Row = {"data": name, "seed": seed, "minutes": minutes, "seconds": result.seconds, "winner": result.winner}
    made = read(folder)
    row |= {fact: made["plan"][fact] for fact in PLANNED}
    row |= {"epochs": round(made["trainings"][0]["epochs"], 1), "p": made["p"]}
    for network in NETWORKS:
        low, high = result.interval[network]
        row |= {network: 100 * result.accuracy[network], f"{network}_low": 100 * low, f"{network}_high": 100 * high}
        row[f"{network}_parameters"] = result.parameters[network]
    for network in ("found", "fixed"):
        net = load(folder / network)
        card = card_of(net)
        cost = profile(net, (card.in_channels, *card.image), batches=[1], seconds=0.5)
        row[f"{network}_milliseconds"] = round(1000 * cost["batches"][0]["minimum"], 3)
    return [{**row, "architecture": as_text(result.architecture)}]


def _show(rows: list[Row], request: Request) -> list[Section]:
    lines, better, level = [], 0, 0
    for name in dict.fromkeys(str(row["data"]) for row in rows):
        own = [row for row in rows if row["data"] == name]
        found, fixed = column(own, "found"), column(own, "fixed")
        test = paired(found, fixed)
        better += test.mean > 0 and all(one > other for one, other in zip(found, fixed, strict=True))
        level += test.mean >= 0
        spread = MISSING if test.deviation is None else f"{test.deviation:.2f}"
        chance = MISSING if test.permutation is None else f"{test.permutation:.3g}"
        sizes = f"{median(column(own, 'found_parameters')):,.0f}"
        speed = f"{median(column(own, 'found_milliseconds')):.2f} / {median(column(own, 'fixed_milliseconds')):.2f}"
        wins = ", ".join(str(row["winner"]) for row in own)
        means = [mean_std(column(own, network)) for network in NETWORKS]
        lines.append([name, str(len(own)), *means, f"{test.mean:+.2f} ± {spread}", chance, wins, sizes, speed])
    header = ["", "seeds", "found, %", "fixed, %", "random, %", "found − fixed", "p", "winners", "parameters", "ms"]
    text = [
        f"{MINUTES[request.preset]:g} minutes for each fit: search, selection, and the trainings of the found network, "
        "of a fixed network of the same size and of random networks. Accuracy on the test images, mean ± standard "
        "deviation over seeds; differences are paired over seeds.",
        f"The mean of the found network is at least as high on {level} of {len(lines)} sets, and higher with every "
        f"seed on {better}.",
    ]
    notes = ["p comes from an exact permutation test of the paired differences; with three seeds it is at least 0.25."]
    return [Section("Found against fixed and random", text, header, lines, notes=notes)]


_ABOUT = "Practice: `idarts fit` on five data sets, against a fixed network of the same size and random networks."
add(Experiment("practice", _ABOUT, _plan, _show, columns=COLUMNS, uses=()))
