"""penstock patterns train: a model, made of observations."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock import __version__
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.verbs.patterns import options
from penstock.cli.verbs.patterns.measure import sizes_of
from penstock.errors import unknown
from penstock.files import check_writable

if TYPE_CHECKING:
    from penstock.learn.detection.evaluation import Scores


@click.command(short_help="Make a model of observations.")
@click.argument("file", metavar="[SEEN.csv]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--out", metavar="MODEL.json", required=True, type=click.Path(path_type=Path), help="The model."
)
@click.option(
    "--kind",
    type=click.Choice(["tree", "forest", "network"]),
    default="network",
    show_default=True,
    help="CART, a random forest, or a perceptron with one hidden layer.",
)
@click.option(
    "--features",
    metavar="NAME,...",
    help="What it looks at: names, or 'thesis'; else the strongest of those without units.",
)
@click.option("--sizes", metavar="SIZE,...", help="Requests to learn from; else 32KiB,256KiB.")
@click.option(
    "--trees",
    metavar="N",
    type=click.IntRange(1, 2000),
    default=50,
    show_default=True,
    help="Of a forest.",
)
@options.seed
@json_option
def train(
    *,
    file: Path | None,
    out: Path,
    kind: Any,
    features: str | None,
    sizes: str | None,
    trees: int,
    seed: int,
    as_json: bool,
) -> None:
    """Learn to tell patterns from SEEN.csv, or from the observations that come with penstock.

    \b
    Examples:
      penstock patterns train --out model.json
      penstock patterns train seen.csv --out model.json --kind tree
      penstock patterns train --out thesis.json --features thesis

    It learns from 70% of the observations with requests of --sizes and is tested with the others.
    Requests of all other sizes are what it has never seen: it is validated with them. The model is
    arrays in JSON, and needs nothing but penstock to be used.
    """
    from penstock.learn.detection import evaluation, model, samples, training  # noqa: PLC0415

    check_writable(out)
    found = options.observations(file)
    learnt = sizes_of(sizes) or samples.TRAINED_ON
    known = options.of_sizes(found, learnt, "--sizes")
    names = _features(features, known)
    first, second = training.split(known, seed=seed)
    others = [one for one in found if one.request not in learnt]
    trained = training.train(first, kind, names, seed=seed, trees=trees)
    judged = {
        "tested": evaluation.of_model(trained.model, second),
        "validated": evaluation.of_model(trained.model, others),
        "validated, several clients an I/O node": evaluation.of_model(
            trained.model, evaluation.several_clients(others)
        ),
    }
    made = {
        "penstock": __version__,
        "scikit-learn": training.version(),
        "observations": len(first),
        "of": samples.SHIPPED if file is None else file.name,
        "sizes": sorted(learnt),
        "seed": seed,
        **{
            name: {"accuracy": round(s.accuracy, 5), "said": s.answered, "of": s.observations}
            for name, s in judged.items()
        },
    }
    model.save(training.signed(trained.model, made), out)
    if as_json:
        result = {name: options.figures(s) for name, s in judged.items()}
        emit_json({"out": str(out), "kind": kind, "features": names} | result)
    else:
        _show(out, kind, names, judged)


def _features(text: str | None, known: Any) -> list[str]:
    from penstock.learn.detection import features, selection  # noqa: PLC0415

    if text is None:
        return selection.chosen(known)
    names = list(features.THESIS) if text == "thesis" else [n.strip() for n in text.split(",")]
    for name in names:
        if name not in features.FEATURES:
            raise unknown("feature", name, [*features.FEATURES, "thesis"])
    return list(dict.fromkeys(names))


def _show(out: Path, kind: str, names: list[str], judged: "dict[str, Scores]") -> None:
    click.echo(f"{out}: a {kind} that looks at {', '.join(names)}\n")
    rows = [
        (
            name,
            str(s.observations),
            str(sum(s.unknown)),
            f"{s.accuracy:.4f}" if s.answered else "-",
            f"{s.kappa:.4f}" if s.answered else "-",
        )
        for name, s in judged.items()
    ]
    emit_table(("", "observations", "unknown", "accuracy", "kappa"), rows)
    click.echo(f"\nmore of it: penstock patterns evaluate --model {out}")
