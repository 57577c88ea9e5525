#!/bin/sh
# Slurm's Prolog: registers the job with the node's agent. A failure here, even an unreadable
# penstock.conf, ends the subshell only: an error of Penstock never drains a node.
(
    . "${0%/*}/penstock.conf"
    export PENSTOCK_RUN PENSTOCK_PATIENCE
    exec /usr/bin/timeout -k 0.1 "${HOOK_SECONDS:-1.6}" "$PENSTOCK" slurm prolog
) </dev/null >/dev/null 2>&1
exit 0
