"""penstock key: make a site key, or derive a user's."""

from pathlib import Path

import click

from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.common.terminal import echo
from penstock.errors import InputError
from penstock.live.protocol.site_key import SiteKey
from penstock.live.protocol.users import uid_of


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--of-user", "user", metavar="NAME", help="Write the key of this user, derived from --key-file."
)
@live_options.key
@json_option
def key(*, file: Path, user: str | None, key_file: Path | None, as_json: bool) -> None:
    """Write a new site key to FILE, or the key of one user, readable only by its owner.

    \b
    Examples:
      penstock key site.key
      penstock key ada.key --of-user ada --key-file site.key

    The controller, I/O nodes and agents of a site prove to each other that they have the same key
    ('--key-file'), without sending it. Copy it to the hosts of the site over a secure channel, for
    root alone: it speaks for all users. The key of a user begins jobs of that user; the agent of
    root gives each user its own, so a file is needed only where no agent runs.
    """
    if user is None:
        SiteKey.create(file)
    else:
        if key_file is None:
            raise InputError("--of-user needs --key-file: the key is derived from the site's")
        if not user or user.split() != [user]:
            raise InputError(f"--of-user {user!r} is not the name of a user")
        SiteKey.read(key_file).of_user(user).write(file)
        if uid_of(user) < 0:
            warning = f"this host has no user {user!r}: the key is of use where one has this name"
            echo(f"penstock: warning: {warning}", err=True)
    if as_json:
        emit_json({"key_file": str(file.resolve())})
    elif user is None:
        echo(f"{file} is a new site key; copy it to all hosts of the site")
    else:
        echo(f"{file} is the key of user {user}; give it to nobody else")
