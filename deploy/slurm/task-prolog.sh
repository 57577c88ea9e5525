#!/bin/sh
# Slurm's TaskProlog: lets a task be part of its job. It reads a file and asks nobody, and a job
# without that file runs unmanaged.
. "${0%/*}/penstock.conf"
file=$PENSTOCK_RUN/jobs/${SLURM_JOB_ID:-none}/environment
[ "${PENSTOCK_DISABLE:-0}" = 1 ] && exit 0
[ -r "$file" ] || exit 0
first='' last=''
while IFS= read -r line; do
    case $line in
    LD_PRELOAD=*) first=${line#*=} ;;
    LD_PRELOAD_BELOW=*) last=:${line#*=} ;;
    *=*) echo "export $line" ;;
    esac
done <"$file"
case :${LD_PRELOAD:-}: in
*:"$first":*) ;; # a step of a task that is part of the job already
*) echo "export LD_PRELOAD=$first${LD_PRELOAD:+:$LD_PRELOAD}$last" ;;
esac
exit 0
