"""How many I/O nodes a job has, which, and why, in plain sentences."""

from collections.abc import Iterator, Sequence

from penstock.live.protocol import messages
from penstock.live.protocol.io_node_record import AllocationStatus
from penstock.live.protocol.job_record import JobAllocation, JobRecord
from penstock.units import show_count, show_seconds

NEEDS = {
    "best-count": "its best number of I/O nodes",
    "compute": "its compute time",
    "curve": "its curve (bandwidth by number of I/O nodes)",
    "processes": "its number of processes",
    "volume": "its volume",
    "w_iter": "the length of its iterations",
}


def allocation(job: JobRecord, status: messages.Status) -> Iterator[str]:
    """Say what the site's policies decided for a job; nothing where the site has none."""
    decided, site = job.allocation, status.allocation
    if decided is None or site is None:
        return
    given = _given(decided, site, barred(job, status))
    if job.would_have is not None:
        yield f"If its mode were enforce, it would have {_nodes(job.would_have)}: {given}."
    elif job.state == "running" and set(decided.io_nodes) != set(job.io_nodes):
        yield (
            f"It will have {_nodes(decided.io_nodes)} (decided "
            f"{show_seconds(decided.since_seconds)} ago; allocation.remap-delay): {given}."
        )
    elif job.state != "running":
        yield f"It had {_nodes(decided.io_nodes)} at its end: {given}."
    else:
        since = show_seconds(decided.since_seconds)
        yield f"It has had {_nodes(decided.io_nodes)} for {since}: {given}."
    if decided.why_unknown:
        yield f"Of its application {decided.why_unknown}."
    if decided.reason == "new" and job.state == "running":
        share = f"a share of what other jobs leave, by {site.fallback}"
        yield (
            f"Once it has run for {show_seconds(site.settle)} (allocation.settle), it gets "
            f"{share if decided.lacks else f'its share, by {site.policy}'}."
        )


def barred(job: JobRecord, status: messages.Status) -> str:
    """Say which I/O nodes serve, but not this job; empty: no such I/O node."""
    serving = [node for node in status.io_nodes if node.state == "serving"]
    parts = []
    for user in sorted({node.user for node in serving if node.user and node.user != job.user}):
        numbers = [node.number for node in serving if node.user == user]
        carry = "carry" if len(numbers) > 1 else "carries"
        parts.append(f"{named(numbers)} {carry} data for {user} alone")
    if job.host and (local := [node.number for node in serving if not node.user]):
        serve = "serve" if len(local) > 1 else "serves"
        parts.append(f"{named(local)} {serve} jobs on the controller's host alone")
    return ", and ".join(parts)


def named(numbers: Sequence[int]) -> str:
    """Name I/O nodes by number."""
    return f"I/O node{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _given(decided: JobAllocation, site: AllocationStatus, barred: str) -> str:
    """Say who gave the I/O nodes, and from which knowledge."""
    known, lacks = _known(decided), _needs(decided.lacks)
    unknown = f"{lacks} is not known, which {site.policy} needs"
    number = f"{site.policy} gave the number{known}"
    fallback = f"{site.fallback}, the fallback policy, gave the number{known}, because"
    by_load = f"needs {lacks}" if lacks else f"failed ({decided.error})"
    sentences = {
        "policy": f"{number}, {site.placement} chose which",
        "prior": f"{number}, {site.placement} chose which; a prior was used because too few of its "
        "own bandwidths are known",
        "placed-by-load": f"{number}; the least loaded serve, because {site.placement} {by_load}",
        "new": f"a job gets one by default while {unknown}"
        if lacks
        else "a job that may be short moves no other: it gets what no other has been given, or one",
        "unknown": f"{fallback} {unknown}",
        "failed": f"{fallback} {site.policy} failed ({decided.error})"
        if decided.policy
        else f"a job gets one by default, because the policies failed ({decided.error})",
        "explored": f"a number to learn its bandwidth with (allocation.explore){known}",
        "pinned": "it, or a person, asked for them",
        "unreachable": barred or "no I/O node that it can reach is up",
    }
    return sentences[decided.reason]


def _known(decided: JobAllocation) -> str:
    parts = [f"its {name} ({value})" for name, value in decided.knowledge.items()]
    return f" from {', '.join(parts)}" if parts else ""


def _needs(names: Sequence[str]) -> str:
    return " and ".join(NEEDS.get(name, name) for name in names)


def _nodes(numbers: Sequence[int]) -> str:
    if not numbers:
        return "no I/O node (direct)"
    return f"{show_count(len(numbers), 'I/O node')} ({', '.join(map(str, sorted(numbers)))})"
