"""An application is what runs behind launchers, interpreters, shells and containers."""

import itertools
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.learn.applications import LONGEST_NAME, application_of, bounded
from penstock.printable import is_printable

COMMANDS = {
    # The program itself, by its file name.
    "./solver input.nml": "solver",
    "/opt/apps/bin/lmp -in in.melt": "lmp",
    "./job.sh": "job.sh",
    # Interpreters: the script, the module, or the text.
    "python3 a.py": "a.py",
    "python3 b.py --out data": "b.py",
    "/usr/bin/python3.11 -u -W ignore -X dev=1 run/a.py": "a.py",
    "python3 -um package.tool x": "package.tool",
    "python -m mpi4py -m package.tool": "package.tool",
    "python3 -m mpi4py.futures a.py": "a.py",
    "python3 -m cProfile -o profile.out a.py": "a.py",
    "python3 -m cProfile": "cProfile",
    "python3 -s a.py": "a.py",
    "python3 -c 'import b; b.run()'": "python3 -c 'import b; b.run()'",
    "python3": "python3",
    "python3 -": "python3",
    "perl -w -I lib tools/convert.pl x": "convert.pl",
    "perl -we 'print 1'": "perl -e 'print 1'",
    "ruby -I lib a.rb": "a.rb",
    "Rscript --vanilla fit.R 3": "fit.R",
    "Rscript -e 'fit(3)'": "Rscript -e 'fit(3)'",
    "julia --project=. -t 8 -p 2 sim.jl": "sim.jl",
    "node --max-old-space-size=8192 -r ./hook app.js": "app.js",
    "java -Xmx4g -cp lib/a.jar:lib/b.jar org.site.Main x": "org.site.Main",
    "java -jar build/model.jar --fast": "model.jar",
    # Shells: a script, one command, or a text that is several.
    "sh job.sh": "job.sh",
    "bash -ex ./job.sh 3": "job.sh",
    "bash -o pipefail -e scripts/job.sh": "job.sh",
    "bash --rcfile rc job.sh": "job.sh",
    "sh -c './solver input.nml'": "solver",
    "bash -lc 'OMP_NUM_THREADS=4 exec mpirun -n 4 ./solver > out.log 2>&1'": "solver",
    "sh -c 'dd if=/dev/zero of=data/c bs=1M count=20 2>&1'": "dd",
    "sh -c 'exec \"$@\"' sh ./x": "sh -c 'exec \"$@\"'",
    "bash -c 'a && b'": "bash -c 'a && b'",
    "bash -c 'a &&   b'": "bash -c 'a && b'",
    "sh -c 'cd run; ./solver'": "sh -c 'cd run; ./solver'",
    "sh -c '$PROGRAM x'": "sh -c '$PROGRAM x'",
    "sh -c '`choose` x'": "sh -c '`choose` x'",
    "sh -c ''": "sh",
    "sh -c": "sh",
    "bash": "bash",
    "bash -s": "bash",
    # Programs that run another one.
    "env X=1 Y=2 ./prog": "prog",
    "env -i -u HOME -C /tmp PATH=/bin ./prog": "prog",
    "env": "env",
    "time ./prog": "prog",
    "/usr/bin/time -v -o times ./prog": "prog",
    "/usr/bin/time -vo times ./prog": "prog",
    "nice ./prog": "prog",
    "nice -n 10 ./prog": "prog",
    "nice -n10 ./prog": "prog",
    "numactl --cpunodebind 0 -m 0 --localalloc ./prog": "prog",
    "numactl -N0 -m0 ./prog": "prog",
    "numactl --interleave=all ./prog": "prog",
    "taskset 0x3 ./prog": "prog",
    "taskset -c 0-3 ./prog": "prog",
    "timeout -k 5 1h ./prog": "prog",
    "timeout --signal INT 10 ./prog": "prog",
    "nohup ./prog": "prog",
    "stdbuf -oL -e 0 ./prog": "prog",
    "setsid -w ./prog": "prog",
    "chrt -f 10 ./prog": "prog",
    "ionice -c 2 -n 7 ./prog": "prog",
    "strace -fo trace -e trace=file ./prog": "prog",
    "perf stat -e cycles -- ./prog x": "prog",
    "perf record -g -F 99 -o out ./prog": "prog",
    "catchsegv ./prog": "prog",
    "valgrind --tool=massif ./prog": "prog",
    # Parallel launchers.
    "mpiexec -n 4 ./x": "x",
    "mpiexec -n 4 ./y": "y",
    "mpiexec.hydra -ppn 2 -genv A 1 -genvlist B,C -hosts a,b ./x": "x",
    "mpirun --allow-run-as-root -np 4 --mca btl self,tcp --map-by node -x PATH ./x y": "x",
    "mpirun -np 4 -hostfile hosts --bind-to core --report-bindings ./x": "x",
    "prterun --np 2 --pmixmca a b ./x": "x",
    "srun -n4 --cpu-bind=cores ./x": "x",
    "srun --ntasks 4 -p batch -c 2 --mpi pmix --exclusive -K0 ./x": "x",
    "srun -ln 4 ./x": "x",
    "aprun -n 32 -N 16 -cc depth -ss ./x": "x",
    "jsrun -n 4 -a 1 -c 7 --bind packed:7 --smpiargs -gpu ./x": "x",
    "mpirun -n 1 ./atmosphere : -n 2 ./ocean : -n 1 ./atmosphere": "atmosphere : ocean",
    "srun -n1 ./a : -n2 ./b": "a : b",
    "salloc -n 4 mpirun ./x": "x",
    "torchrun --nproc-per-node 4 --nnodes=2 train.py --lr 1": "train.py",
    "torchrun --standalone -m package.train": "package.train",
    "python -m torch.distributed.run --nproc_per_node=4 run/train.py": "train.py",
    "python3 -m torch.distributed.launch --master_port 29500 --use_env train.py": "train.py",
    "accelerate launch --num_processes 8 --multi_gpu train.py --lr 1": "train.py",
    "accelerate config": "accelerate",
    "flux run -N 2 -n 8 --setopt=mpi=none ./solver in": "solver",
    "flux jobs": "flux",
    "ibrun -n 8 -o 0 ./solver": "solver",
    "uv run --with numpy python3 a.py": "a.py",
    "uv run a.py": "a.py",
    "conda run -n science --no-capture-output python b.py": "b.py",
    # Containers: the command in them, or the image.
    "apptainer exec --nv -B /scratch image.sif ./x": "x",
    "singularity --quiet exec --bind /a:/b image.sif python3 a.py": "a.py",
    "singularity run /images/wrf.sif namelist": "wrf.sif",
    "apptainer run docker://site/wrf:4.5": "wrf:4.5",
    "docker run --rm -it -v /a:/b --network host site/wrf:4.5 ./x y": "x",
    "docker run --rm site/wrf:4.5": "wrf:4.5",
    "docker run --rm site/wrf:4.5 --namelist x": "wrf:4.5",
    "podman exec -w /data box ./x": "x",
    "docker ps": "docker",
    "ch-run -b /scratch /images/wrf -- ./x": "x",
    "shifter --image=docker:site/wrf ./x": "x",
    "shifter -i site/wrf -V /a:/b ./x": "x",
    # All at once.
    "timeout 1h numactl -N 0 mpiexec -n 4 env A=1 apptainer exec i.sif python3 -u a.py": "a.py",
    # What cannot be told is named by what there is.
    "mpiexec": "mpiexec",
    "mpiexec -n 4": "mpiexec",
    "mpiexec --new-option 4 ./x": "mpiexec",
    "env A=1": "env",
    "perf list": "perf",
    "python3 .": "python3",
    "/": "/",
    "''": "job",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_application_behind_a_command(command: str) -> None:
    assert application_of(shlex.split(command)) == COMMANDS[command]


def test_the_table_of_the_page_on_live_sites() -> None:
    page = Path(__file__).parents[2] / "docs/live/index.md"
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|$", page.read_text(), re.MULTILINE)
    assert len(rows) == 8
    for command, application in rows:
        assert application_of(shlex.split(command)) == application


def test_a_command_without_words_is_an_application_without_a_name() -> None:
    assert application_of([]) == "job"


WORDS = st.one_of(
    st.sampled_from(
        sorted({word for command in COMMANDS for word in shlex.split(command)} | {"--", "-", ":"})
    ),
    st.text(max_size=30),
)


@given(st.lists(WORDS, max_size=12))
def test_any_command_has_a_bounded_name(words: list[str]) -> None:
    name = application_of(words)
    assert name
    assert is_printable(name)
    assert len(name.encode()) <= LONGEST_NAME
    assert application_of(words) == name


def test_long_names_stay_distinct() -> None:
    first, second = ("x" * 10_000 + end for end in "ab")
    assert bounded("x" * LONGEST_NAME) == "x" * LONGEST_NAME
    assert bounded(first).startswith("x" * 100)
    assert len({application_of([word]) for word in (first, second, "x" * LONGEST_NAME)}) == 3
    assert len({application_of(["sh", "-c", f"a; {word}"]) for word in (first, second)}) == 2


def test_names_that_a_terminal_would_obey_stay_distinct_and_are_shown() -> None:
    names = {application_of([f"a{character}b"]) for character in "\n\x1b\u202e\udcff"}
    assert len(names) == 4
    assert all(name.startswith("a?b~") for name in names)


def test_a_command_inside_many_others_ends() -> None:
    assert application_of(["env"] * 100_000 + ["./x"])
    assert application_of(["sh", "-c", "eval " * 100_000 + "x"])
    nested = "./x"
    for _ in range(10):
        nested = shlex.join(["sh", "-c", nested])
    assert application_of(shlex.split(nested))


def test_options_of_open_mpi_that_have_values_are_known() -> None:
    """As its own help lists them."""
    mpirun = shutil.which("mpirun")
    assert mpirun is not None
    text = subprocess.check_output([mpirun, "--allow-run-as-root", "--help", "full"], text=True)
    lines = re.findall(r"^ *((?:-{1,2}[A-Za-z][\w-]*\|?)+) <arg0>( <arg1>)?", text, re.MULTILINE)
    assert len(lines) > 20
    for options, second in lines:
        for option in set(options.split("|")) - {"-h", "--help", "--app"}:  # no program follows
            values = ["v", "w"] if second else ["v"]
            assert application_of(["mpirun", option, *values, "./x"]) == "x", option


def test_options_of_slurm_that_have_values_are_known(tmp_path: Path) -> None:
    """As srun's own help lists them."""
    srun, conf = shutil.which("srun"), tmp_path / "slurm.conf"
    assert srun is not None
    conf.write_text("ClusterName=a\nSlurmctldHost=localhost\nNodeName=localhost\n")
    text = subprocess.check_output([srun, "--help"], text=True, env={"SLURM_CONF": str(conf)})
    options = re.findall(r"^ *(?:(-[A-Za-z]), )?(--[a-z-]+)=", text, re.MULTILINE)
    assert len(options) > 50
    for option in set(itertools.chain.from_iterable(options)) - {"", "--bcast"}:  # optional value
        assert application_of(["srun", option, "v", "./x"]) == "x", option
