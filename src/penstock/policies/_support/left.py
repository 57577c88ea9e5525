"""What is left of a phase, by an estimate that may be wrong."""

from penstock.errors import InputError
from penstock.model import Request, View


def left(request: Request, view: View, *, hedge: float, unknown: float) -> float:
    """Return the isolated seconds that a phase is taken to have left.

    That is what is expected less what is done, but at least `hedge` times what is done: an overdue
    phase is not about to end because an estimate says so. With `hedge` 0 it counts as finished, and
    goes before all others until it ends. A phase of which nothing is known is taken to be `unknown`
    seconds long.
    """
    done = view.done(request)
    expected = view.expected(request)
    return max((unknown if expected is None else expected) - done, hedge * done)


def check(name: str, *, hedge: float, unknown: float) -> None:
    """Raise InputError unless the options of `left` make sense."""
    if not 0 <= hedge <= 100:
        raise InputError(f"{name}: hedge is {hedge:g}; give 0 to 100")
    if not 0 <= unknown < float("inf"):
        raise InputError(f"{name}: unknown is {unknown:g}; give seconds, 0 or more")
