"""Tables as text, Markdown and CSV, made of records."""

import csv
import io
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from penstock.report.findings import NO, YES, Claim, ClaimLeftOut, Tally, TextTable
from penstock.units import show_count

COLUMNS = ("claim", "by", "paper", "ours", "holds", "why")
TERMINAL = ("claim", "paper", "ours", "holds")


def cells(claim: Claim) -> dict[str, str]:
    """Return a claim as the texts of its columns."""
    texts = (claim.claim, claim.by, claim.paper, claim.ours, claim.verdict, claim.why)
    return dict(zip(COLUMNS, texts, strict=True))


def tally(claims: Sequence[Claim]) -> str:
    """Return how many claims hold; claims of a first look, judged elsewhere, separately."""
    own = [claim for claim in claims if claim.repeats is None]
    small = [claim for claim in claims if claim.repeats is not None]
    parts = []
    if own or not small:
        parts.append(Tally.of(own).text())
    if small:
        judges = list(dict.fromkeys(c.repeats.study for c in small if c.repeats))
        where = f"{' and '.join(judges)} {'does' if len(judges) == 1 else 'do'}"
        hold = sum(claim.verdict == YES for claim in small)
        unclear = sum(claim.holds is None for claim in small)
        unseen = f" ({unclear} without a verdict)" if unclear else ""
        if unclear == len(small) and all(claim.by_clock for claim in small):
            parts.append(
                f"the machine was too busy to judge {show_count(unclear, 'claim')} by measured "
                f"times; run it again when it is idle. A first look judges none: {where}"
            )
        else:
            parts.append(
                f"{hold} of {len(small)} claims are seen to hold at a "
                f"first look{unseen}, which judges none of them: {where}"
            )
    return "; ".join(parts)


def claims_text(claims: Sequence[Claim], width: int = 160) -> str:
    """Return the table for a terminal, with the reasons for what differs below it."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 1, 0), expand=True)
    for column, ratio in zip(TERMINAL, (12, 8, 16, 2), strict=True):
        table.add_column(column, ratio=ratio, overflow="fold")
    for claim in claims:
        texts = cells(claim)
        table.add_row(*(escape(texts[column]) for column in TERMINAL))
    buffer = io.StringIO()
    console = Console(file=buffer, width=width, highlight=False)
    console.print(table)
    differ = [claim for claim in claims if claim.verdict != YES]
    for number, claim in enumerate(differ, start=1):
        console.print(escape(f"{number}. {claim.claim}: {claim.ours}. {claim.why}\n"))
    console.print(tally(claims) + ".")
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def claims_markdown(claims: Sequence[Claim], left_out: Sequence[ClaimLeftOut] = ()) -> str:
    """Return the table in Markdown, with the claims that are not checked below it."""
    text = rows_markdown([cells(claim) for claim in claims], COLUMNS)
    if left_out:
        rows = [{"not checked": one.claim, "by": one.by, "why": one.reason} for one in left_out]
        text += "\n" + rows_markdown(rows)
    return text


def rows_markdown(rows: Sequence[Mapping[str, object]], columns: Sequence[str] = ()) -> str:
    """Return rows of the same columns, or of those that are named, in Markdown."""
    names = columns or (list(rows[0]) if rows else [])
    head = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    body = [
        "| " + " | ".join(str(row[name]).replace("|", "\\|") for name in names) + " |"
        for row in rows
    ]
    return "\n".join((*head, *body)) + "\n"


def text_tables_markdown(tables: Sequence[TextTable]) -> str:
    """Return the tables beside the figures in Markdown, each below its title and caption."""

    def markdown(one: TextTable) -> str:
        head, *rows = one.rows
        body = rows_markdown([dict(zip(head, row, strict=True)) for row in rows], head)
        return f"**{one.title}** {one.caption}\n\n{body}"

    return "\n".join(markdown(one) for one in tables)


def claims_csv(claims: Sequence[Claim]) -> str:
    """Return the table as CSV; `counted` is "no" where a claim is shown, or judged elsewhere."""
    return rows_csv(
        [{**cells(c), "counted": NO if c.apart or c.repeats is not None else YES} for c in claims]
    )


def rows_csv(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows as CSV: the columns of all rows, in the order in which they first appear.

    Numbers are written so that they read back as the very same; what a row does not have, and what
    is no number, is empty.
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()
