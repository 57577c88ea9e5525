#!/bin/sh
# Simulates a policy from a file beside others, then lets it decide over real jobs.
#   examples/custom-policy/run.sh DIRECTORY      for all files that it writes
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mine=./short_cycles_first.py:ShortCyclesFirst
mkdir -p "${1:?usage: run.sh DIRECTORY}"
cp "$here/short_cycles_first.py" "$1"
cd "$1"

echo "== The policy as Penstock reads it"
penstock policies "$mine"

echo "== Simulated: a synthetic workload, w_iter learned as on a live system"
penstock generate io-sets --out jobs.json
penstock compare jobs.json --knowledge learned --policies "fair-share,exclusive-fcfs,set-10,$mine"

echo "== Live: three real jobs on an emulated file system"
mkdir -p data
penstock up --root data --io-nodes 1 --state state --policy "$mine" --mode enforce \
    --set sharing.options.patience=20 --emulate targets=1,rate=60MiB/s
trap 'penstock down --state state >/dev/null' EXIT

# cycle NAME TIMES MIB SECONDS: repeats TIMES: write MIB, sleep SECONDS
cycle() {
    penstock run --state state --name "$1" -- sh -c "for k in \$(seq $2); do
        dd if=/dev/zero of=data/$1 bs=1M count=$3 conv=fsync status=none; sleep $4; done" &
}
cycle often 8 2 0.4
cycle rarely 3 24 1
cycle seldom 3 24 1
wait
penstock status --state state
penstock down --state state
trap - EXIT

echo "== Replay: from the record, the policy must make the same decisions"
penstock what-if state/records --check --trust "$PWD/$(basename "$mine")"

echo "== What-if: the same jobs under other policies, simulated"
penstock what-if state/records --policies fair-share,set-10 --trust "$PWD/$(basename "$mine")"
