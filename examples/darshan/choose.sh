#!/bin/sh
# From a directory of Darshan logs to the choice of a policy.
#   examples/darshan/choose.sh DIRECTORY [LOGS]      what it makes goes to DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: choose.sh DIRECTORY [LOGS]}
logs=${2:-$(python3 -c 'import darshan, pathlib
print(pathlib.Path(darshan.__file__).parent / "examples/example_logs")')}
policies=fair-share,exclusive-fcfs,set-10,greedy-com,greedy-yield,fair-finish
mkdir -p "$out"

echo "== What the logs tell"
penstock profile "$logs" --workload "$out/jobs.json" --cores 32

echo "== Simulated as they were"
penstock compare "$out/jobs.json" --policies "$policies"

echo "== Simulated as if they had come together: synthetic, of real runs"
python3 "$here/meet.py" "$out/jobs.json"
penstock compare "$out"/meet-*.json --knowledge learned --policies "$policies"
penstock compare "$out"/meet-*.json --knowledge learned --policies "$policies" --json >"$out/compared.json"
python3 "$here/pick.py" <"$out/compared.json"
