#!/bin/sh
# Slurm's Epilog: releases the job at the node's agent; calling it again does no harm. A failure here
# ends the subshell only; the agent also detects by itself that a job has ended.
(
    . "${0%/*}/penstock.conf"
    export PENSTOCK_RUN PENSTOCK_PATIENCE
    exec /usr/bin/timeout -k 0.1 "${HOOK_SECONDS:-1.6}" "$PENSTOCK" slurm epilog
) </dev/null >/dev/null 2>&1
exit 0
