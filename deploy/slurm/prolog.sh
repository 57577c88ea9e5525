#!/bin/sh
# Slurm's Prolog: hands the job to the node's agent. Whatever fails here, also a penstock.conf that
# cannot be read, ends the subshell alone: a fault of ours never drains a node.
(
    . "${0%/*}/penstock.conf"
    export PENSTOCK_RUN PENSTOCK_PATIENCE
    exec /usr/bin/timeout -k 0.1 "${HOOK_SECONDS:-1.6}" "$PENSTOCK" slurm prolog
) </dev/null >/dev/null 2>&1
exit 0
