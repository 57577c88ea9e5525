#!/bin/sh
# Slurm's Epilog: takes the job back from the node's agent, as often as it is called. Whatever fails
# here ends the subshell alone; the agent finds out by itself that a job has ended.
(
    . "${0%/*}/penstock.conf"
    export PENSTOCK_RUN PENSTOCK_PATIENCE
    exec /usr/bin/timeout -k 0.1 "${HOOK_SECONDS:-1.6}" "$PENSTOCK" slurm epilog
) </dev/null >/dev/null 2>&1
exit 0
