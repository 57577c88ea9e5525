"""penstock key: a new site key."""

from pathlib import Path

import click

from penstock.cli.common.output import emit_json, json_option
from penstock.live.protocol.site_key import SiteKey


@click.command(short_help="Make a site key, for deployments of several hosts.")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def key(*, file: Path, as_json: bool) -> None:
    """Write a new site key to FILE, which its owner alone can read.

    \b
    Examples:
      penstock key site.key

    Controller, I/O nodes and jobs on other hosts prove to each other that they have the same key
    ('--key-file'); it never travels. Copy it to the hosts of the site by a way that is safe.
    """
    SiteKey.create(file)
    if as_json:
        emit_json({"key_file": str(file.resolve())})
    else:
        click.echo(f"{file} is a new site key; hosts that have it are of one site")
