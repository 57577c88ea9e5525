#!/bin/sh
# From a directory of Darshan logs to the choice of a policy.
#   examples/darshan/choose.sh DIRECTORY [LOGS]      writes its files into DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: choose.sh DIRECTORY [LOGS]}
logs=${2:-$(python3 -c 'import darshan, pathlib
print(pathlib.Path(darshan.__file__).parent / "examples/example_logs")')}
policies=fair-share,exclusive-fcfs,set-10,greedy-com,greedy-yield,fair-finish,hedged-finish
mkdir -p "$out"

echo "== Profiles of the logs"
penstock profile "$logs" --workload "$out/jobs.json" --cores 32

echo "== Simulated as the jobs ran"
penstock compare "$out/jobs.json" --policies "$policies"

echo "== Simulated as if the jobs had run together: synthetic, made from real runs"
python3 "$here/meet.py" "$out/jobs.json"
penstock compare "$out"/meet-*.json --knowledge learned --policies "$policies"
penstock compare "$out"/meet-*.json --knowledge learned --policies "$policies" --json >"$out/compared.json"
python3 "$here/pick.py" <"$out/compared.json"
