#!/bin/sh
# Makes record.jsonl: five minutes of five real jobs on an emulated file system, which nobody
# manages (mode observe). Three jobs write often and little, two write seldom and much.
# Usage: examples/record.sh RECORD.jsonl
set -eu
record=$(realpath "$1")
cd "$(mktemp -d)"
mkdir data

job() { # name, phases, seconds of computing, MiB per phase
    penstock run --state state --name "$1" -- sh -c "for k in \$(seq $2); do sleep $3;
        dd if=/dev/zero of=data/$1 bs=1M count=$4 conv=notrunc 2>&1; done" >"$1.log" &
}

penstock up --root data --io-nodes 1 --state state --mode observe \
    --emulate targets=1,rate=20MiB/s --set site.bandwidth='20 MiB/s' --set site.name=emulated
job solver 36 6 20
job climate 30 7.5 22
job genome 26 9 24
sleep 5
job plasma 5 40 240
job reactor 6 33 200
wait
penstock down --state state
cp state/records/record-*-0001.jsonl "$record"
echo "$record was made in $PWD, which can be removed"
