"""Runs a survey for a verb: shows its progress, and says how to continue after an interruption."""

import math
from typing import TypeVar

import click

from penstock.campaign.journal import Journal
from penstock.cli.common import live_options
from penstock.cli.common.terminal import echo
from penstock.live.agent.runner import NoJobError
from penstock.live.measure.scratch import InterruptedRun
from penstock.live.measure.survey import Survey
from penstock.progress import progress

T = TypeVar("T")


def run(survey: Survey[T], journal: Journal, label: str, *, budget: float = math.inf) -> None:
    """Run a survey until it is complete or the budget ends; a signal ends the command."""
    try:
        with live_options.launch_errors(), progress(label, len(survey.cells)) as bar:
            survey.run(journal, progress=bar.reach, budget=budget)
    except NoJobError as error:
        raise click.ClickException(str(error)) from error
    except InterruptedRun as interrupt:
        total = f" of {len(survey.cells)}" if survey.next_round is None else ""
        echo(
            f"penstock: interrupted; {survey.measured(journal)}{total} runs are kept in "
            f"{journal.path}; the same command continues from there",
            err=True,
        )
        click.get_current_context().exit(128 + interrupt.number)
