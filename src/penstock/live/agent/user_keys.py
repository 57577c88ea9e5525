"""Keys of users: given out by the agent of root, and used by `penstock run`.

The site key speaks for all users, so only root and the controller's user have it. Whoever connects
to the agent of its host gets the key of the user that the kernel names, and of nobody else.
"""

import os
from pathlib import Path

from penstock.errors import InputError
from penstock.files import reason
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.hook_messages import AgentDirectory, GetUserKey, UserKey
from penstock.live.protocol.site_key import Key, RemoteController, SiteKey, controller_address
from penstock.live.protocol.users import name_of

AGENT_OF_ROOT = Path("/run/penstock-agent")


def user_key(key: SiteKey, uid: int) -> UserKey:
    """Return the key of a user of this host."""
    of_user = key.of_user(name_of(uid))
    return UserKey(user=of_user.user, secret=of_user.secret.hex())


def key_of_host(folder: AgentDirectory) -> Key:
    """Ask the agent of this host for this user's key."""
    try:
        with ControlConnection(folder.users) as agent:
            if agent.uid not in (0, os.getuid()):
                raise InputError(f"the agent at {folder.users} is not root's: it gives no keys")
            given = agent.ask(GetUserKey(), UserKey)
        return Key(bytes.fromhex(given.secret), given.user)
    except (OSError, ValueError) as error:
        raise InputError(
            f"no agent of root at {folder.users} gives this user a key ({reason(error)}); "
            "give a key of your own with --key-file"
        ) from error


def remote_controller(
    text: str, key_file: Path | None, folder: AgentDirectory | None = None
) -> RemoteController:
    """Return the controller of another host, with the key that this user has.

    That is the one in `key_file`, unless the file is another user's, such as the site key of root.
    """
    address = controller_address(text)
    if key_file is not None and (not key_file.exists() or os.access(key_file, os.R_OK)):
        return RemoteController(address=address, key=Key.read(key_file))
    place = folder or AgentDirectory(Path(os.environ.get("PENSTOCK_RUN", AGENT_OF_ROOT)))
    return RemoteController(address=address, key=key_of_host(place))
