#!/bin/sh
# Slurm's TaskProlog: gives a task the environment of its job. It only reads a file; a job without that
# file runs unmanaged.
(
    [ "${PENSTOCK_DISABLE:-0}" = 1 ] && exit
    . "${0%/*}/penstock.conf"
    first='' last=''
    while IFS= read -r line; do
        case $line in
        LD_PRELOAD=*) first=${line#*=} ;;
        LD_PRELOAD_BELOW=*) last=:${line#*=} ;;
        ASAN_OPTIONS=*) echo "export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}${line#*=}" ;;
        *=*) echo "export $line" ;;
        esac
    done <"$PENSTOCK_RUN/jobs/$SLURM_JOB_ID/environment"
    case ":${LD_PRELOAD-}:" in
    *:"$first":*) ;; # a step of a task that is part of the job already
    *) echo "export LD_PRELOAD=$first${LD_PRELOAD:+:$LD_PRELOAD}$last" ;;
    esac
) </dev/null 2>/dev/null
exit 0
