"""penstock key: make a site key."""

from pathlib import Path

import click

from penstock.cli.common.output import emit_json, json_option
from penstock.cli.common.terminal import echo
from penstock.live.protocol.site_key import SiteKey


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def key(*, file: Path, as_json: bool) -> None:
    """Write a new site key to FILE, readable only by its owner.

    \b
    Examples:
      penstock key site.key

    The controller, I/O nodes and jobs of a site prove to each other that they have the same key
    ('--key-file'), without sending it. Copy it to the hosts of the site over a secure channel.
    """
    SiteKey.create(file)
    if as_json:
        emit_json({"key_file": str(file.resolve())})
    else:
        echo(f"{file} is a new site key; copy it to all hosts of the site")
