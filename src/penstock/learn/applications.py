"""The application that a command runs: what is behind launchers, interpreters and containers.

On a cluster every command begins with `srun`, `python3` or `bash`; what is learnt belongs to the
program behind them. `_TOOLS` says how to read their arguments. Where the program cannot be told,
the name is that of the last tool that was understood: `mpiexec` before an unknown option. A program
that is given as text is named by it: `bash -c 'a && b'`.
"""

import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import dropwhile

from penstock.printable import printable

LONGEST_NAME = 200
"""Bytes of an application's name."""
_LONGEST_TEXT = 80
"""Bytes of the name of a program that is given as text."""
_LONGEST_SHELL_TEXT = 4096
"""Characters of a text for a shell, up to which its program is searched for."""
_DEEPEST = 20
"""Tools inside tools."""
_UNNAMED = "job"
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SHELL_OPERATOR = re.compile(r"[();<>|&]+")
_REDIRECTION = re.compile(r"&?[<>]{1,2}[&|]?")


def application_of(command: Sequence[str]) -> str:
    """Return the name of the application that a command runs: not empty, and bounded."""
    return bounded(_name(command, 0) or _UNNAMED)


def bounded(name: str, most: int = LONGEST_NAME) -> str:
    """Return a name that can be stored and shown; a digest keeps changed names distinct."""
    shown = printable(name)
    if shown == name and len(name.encode()) <= most:
        return name
    digest = "~" + blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return shown.encode()[: most - len(digest)].decode("utf-8", "ignore") + digest


def runs_others(program: str) -> bool:
    """Tell whether a program is known to run others, so that its name says little."""
    return _tool(program) is not None


def _tool(program: str) -> "_Tool | None":
    return _TOOLS.get(program) or _TOOLS.get(program.rstrip("0123456789."))


def _name(command: Sequence[str], depth: int) -> str:
    """Return the name of what a command runs; "" if it has no words."""
    if not command:
        return ""
    program = _file_name(command[0]) or command[0]
    tool = _tool(program)
    if tool is None or depth == _DEEPEST:
        return program
    return tool.find(command, depth + 1) or program


def _name_behind(words: Sequence[str], depth: int) -> str:
    """Return the name of the command that a tool runs; "" if these words are not a command."""
    command = words[1:] if words[:1] == ["--"] else words
    return _name(command, depth) if command and _is_program(command[0]) else ""


def _is_program(word: str) -> bool:
    """Tell a program from what else follows an option that is not known, such as a number."""
    return word[0:1] not in ("-", "$") and "=" not in word and any(map(str.isalpha, word))


def _file_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _text_name(program: str, option: str, text: str) -> str:
    """Name a program that is given as text."""
    words = " ".join(text.split())
    return bounded(f"{_file_name(program)} -{option} '{words}'", _LONGEST_TEXT) if words else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tool(ABC):
    """A program that runs another one, and how to read its arguments; options have no dashes."""

    values: frozenset[str] = frozenset()  # options that are followed by a value
    pairs: frozenset[str] = frozenset()  # options that are followed by two values
    flags: frozenset[str] | None = None  # if given, all other options are followed by a value
    last: frozenset[str] = frozenset()  # options whose value is the program; they end the options
    long: bool = False  # "-np" is one option; of other tools it is "-n" and "-p", or "-n p"

    @abstractmethod
    def find(self, command: Sequence[str], depth: int) -> str:
        """Return the name of what a command that begins with it runs, or "" if it does not tell."""

    def read(self, arguments: Sequence[str]) -> tuple[dict[str, str], Sequence[str]]:
        """Return the options with their values, and the words that follow them."""
        options: dict[str, str] = {}
        at = 0
        while at < len(arguments) and arguments[at][:1] in ("-", "+") and arguments[at] != "--":
            word = arguments[at]
            at += 1
            for option, attached in self._options(word):
                count = self._count(option) if attached is None else 0
                options[option] = attached or " ".join(arguments[at : at + count])
                at += count
            if self.last & options.keys():
                break
        return options, arguments[at:]

    def _options(self, word: str) -> Iterator[tuple[str, str | None]]:
        """Split a word into options, each with the value that is attached to it, or None."""
        if self.long or word.startswith("--"):
            option, equals, value = word.lstrip("-").partition("=")
            yield option, value if equals else None
            return
        for end, letter in enumerate(word[1:], 2):
            if self._count(letter):
                yield letter, word[end:] or None
                return
            yield letter, ""

    def _count(self, option: str) -> int:
        """Return how many words after an option belong to it."""
        if option in self.pairs:
            return 2
        if self.flags is not None:
            return int(option not in self.flags)
        return int(option in self.values or option in self.last)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launcher(_Tool):
    """Runs the command that follows its options."""

    operands: int = 0  # words before the command
    verbs: frozenset[str] = frozenset()  # one of these words comes before everything else
    several: bool = False  # commands with options of their own, separated by colons

    def find(self, command: Sequence[str], depth: int) -> str:
        arguments = command[1:]
        if self.verbs:
            if not arguments or arguments[0] not in self.verbs:
                return ""
            arguments = arguments[1:]
        parts: list[list[str]] = [[]]
        for word in arguments:
            if self.several and word == ":":
                parts.append([])
            else:
                parts[-1].append(word)
        names = [_name_behind(self.command(part), depth) for part in parts]
        return " : ".join(dict.fromkeys(names)) if all(names) else ""

    def command(self, arguments: Sequence[str]) -> Sequence[str]:
        """Return the words of the command."""
        _, rest = self.read(arguments)
        return rest[self.operands :]


class _Environment(_Launcher):
    """Runs the command that follows its options and assignments."""

    __slots__ = ()

    def command(self, arguments: Sequence[str]) -> Sequence[str]:
        """Return the words of the command."""
        return list(dropwhile(_ASSIGNMENT.match, super().command(arguments)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Interpreter(_Tool):
    """Runs a script, a module, or a text."""

    text: str = ""  # the options whose value is a text; others that are `last` name the program
    runners: "Mapping[str, _Tool]" = field(default_factory=dict)  # modules that run others

    def find(self, command: Sequence[str], depth: int) -> str:
        options, rest = self.read(command[1:])
        for option in self.last & options.keys():
            value = options[option]
            if option in self.text.split():
                return _text_name(command[0], option, value)
            runner = self.runners.get(value)
            name = runner.find([command[0], *rest], depth) if runner else ""
            return name or _file_name(value)
        return self.script(rest)

    def script(self, rest: Sequence[str]) -> str:
        """Return the name of the script, "" if it comes from standard input."""
        rest = rest[1:] if rest[:1] == ["--"] else rest
        return _file_name(rest[0]) if rest and _is_program(rest[0]) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ScriptRunner(_Tool):
    """Runs a Python script, or with -m a module, that follows its options."""

    verbs: frozenset[str] = frozenset()  # one of these words comes before everything else

    def find(self, command: Sequence[str], depth: int) -> str:  # noqa: ARG002 - of all tools
        arguments = command[1:]
        if self.verbs:
            if not arguments or arguments[0] not in self.verbs:
                return ""
            arguments = arguments[1:]
        _, rest = self.read(arguments)
        rest = rest[1:] if rest[:1] == ["--"] else rest
        return _file_name(rest[0]) if rest and _is_program(rest[0]) else ""


class _Shell(_Interpreter):
    """Runs a script, or a text that may be one command."""

    __slots__ = ()

    def find(self, command: Sequence[str], depth: int) -> str:
        options, rest = self.read(command[1:])
        if "c" not in options:
            return self.script(rest)
        text = rest[0] if rest else ""
        return _name_behind(_simple_command(text), depth) or _text_name(command[0], "c", text)


def _simple_command(text: str) -> Sequence[str]:
    """Return the words of a shell's text if it is one command without expansions, else none."""
    if len(text) > _LONGEST_SHELL_TEXT or "`" in text or "\n" in text.strip():
        return []
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.commenters = ""
    try:
        tokens = iter(list(lexer))
    except ValueError:  # a quotation that does not end
        return []
    words = []
    for token in tokens:
        if _REDIRECTION.fullmatch(token):
            next(tokens, None)
        elif _SHELL_OPERATOR.fullmatch(token):
            return []
        else:
            words.append(token)
    return list(dropwhile({"exec", "command"}.__contains__, dropwhile(_ASSIGNMENT.match, words)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Container(_Tool):
    """Runs a command in an image; without a command the application is the image."""

    verbs: Mapping[str, bool] | None = None  # and whether a command may follow the image

    def find(self, command: Sequence[str], depth: int) -> str:
        _, rest = self.read(command[1:])
        has_command = True
        if self.verbs is not None:
            if not rest or rest[0] not in self.verbs:
                return ""
            has_command = self.verbs[rest[0]]
            _, rest = self.read(rest[1:])
        if not rest:
            return ""
        name = _name_behind(rest[1:], depth) if has_command else ""
        return name or _file_name(rest[0])


def _of(names: str) -> frozenset[str]:
    return frozenset(names.split())


_MPI = _Launcher(
    # Open MPI and PRRTE; MPICH's Hydra and Intel MPI.
    values=_of(
        "n np c N H host hosts hostfile machinefile default-hostfile wd wdir x am tune path prefix "
        "map-by rank-by bind-to ppr rf rankfile cf cartofile cpu-list cpu-set cpus-per-proc "
        "cpus-per-rank npernode npersocket debugger hnp launch-agent max-restarts max-vm-size "
        "ompi-server output-filename output display personality preload-files report-events "
        "report-pid report-uri stdin timeout xml-file xterm dvm-uri runtime-options pset "
        "f ppn perhost rr grr envlist genvlist iface launcher launcher-exec bootstrap "
        "bootstrap-exec rmk configfile usize outfile-pattern errfile-pattern order-nodes umask "
        "ckpoint-interval ckpoint-prefix ckpoint-num ckpointlib arch genvexcl demux gpus-per-proc"
    ),
    pairs=_of("mca gmca omca gomca prtemca pmixmca env genv"),
    long=True,
    several=True,
)
_SLURM = _Launcher(
    values=_of(
        "A account acctg-freq bb bbf b begin c cpus-per-task comment cpu-bind cpu-freq d "
        "dependency deadline delay-boot D chdir export e error epilog gres gres-flags i input "
        "jobid J job-name L licenses M clusters m distribution mail-type mail-user mcs-label "
        "mem-bind mpi n ntasks ntasks-per-node ntasks-per-gpu ntasks-per-tres N nodes network o "
        "output het-group p partition power priority prolog profile q qos r relative S core-spec "
        "signal slurmd-debug switches task-epilog task-prolog thread-spec T threads t time "
        "time-min tres-bind tres-per-task W wait wckey cluster-constraint C constraint container "
        "container-id mem mincpus reservation tmp w nodelist x exclude mem-per-cpu prefer "
        "sockets-per-node cores-per-socket threads-per-core ntasks-per-core ntasks-per-socket B "
        "extra-node-info cpus-per-gpu G gpus gpu-bind gpu-freq gpus-per-node gpus-per-socket "
        "gpus-per-task mem-per-gpu bcast-exclude export-file gid uid F nodefile"
    ),
    several=True,
)
_APPTAINER = _Container(
    values=_of(
        "B bind H home W workdir S scratch o overlay app apply-cgroups env env-file hostname "
        "network network-args pwd cwd security mount dns fusemount pem-path add-caps drop-caps "
        "cpus cpuset-cpus cpuset-mems cpu-shares memory memory-reservation memory-swap "
        "blkio-weight blkio-weight-device pids-limit config"
    ),
    verbs={"exec": True, "run": False},
)
_DOCKER = _Container(
    flags=_of(
        "d detach i interactive t tty rm init privileged read-only no-healthcheck oom-kill-disable "
        "P publish-all q quiet sig-proxy disable-content-trust use-api-socket D debug tls "
        "tlsverify help replace rmi no-hosts no-hostname env-host http-proxy tls-verify "
        "read-only-tmpfs rootfs r remote"
    ),
    verbs={"run": True, "exec": True},
)
_SHELL = _Shell(values=_of("o O rcfile init-file"))
_PYTHON_RUNNER = _Interpreter(values=_of("o s"), last=_of("c m"), text="c")
_TORCHRUN = _ScriptRunner(
    values=_of(
        "nnodes nproc-per-node nproc_per_node rdzv-backend rdzv_backend rdzv-endpoint "
        "rdzv_endpoint rdzv-id rdzv_id rdzv-conf rdzv_conf max-restarts max_restarts "
        "monitor-interval monitor_interval start-method start_method role log-dir log_dir r "
        "redirects t tee local-ranks-filter local_ranks_filter node-rank node_rank master-addr "
        "master_addr master-port master_port local-addr local_addr logs-specs logs_specs "
        "numa-binding numa_binding"
    ),
    long=True,
)
_PYTHON = _Interpreter(
    values=_of("W X check-hash-based-pycs"),
    last=_of("c m"),
    text="c",
    runners={
        **dict.fromkeys(_of("mpi4py mpi4py.run mpi4py.futures cProfile profile"), _PYTHON_RUNNER),
        **dict.fromkeys(_of("torch.distributed.run torch.distributed.launch"), _TORCHRUN),
    },
)
_TOOLS: Mapping[str, _Tool] = {
    **dict.fromkeys(["mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "prun"], _MPI),
    **dict.fromkeys(["srun", "salloc"], _SLURM),
    "aprun": _Launcher(
        values=_of(
            "n pes N pes-per-node d cpus-per-pe j cpus-per-cu S pes-per-numa-node sn "
            "numa-nodes-per-node sl cc cp cpu-binding a architecture D debug e "
            "environment-override F access-mode L node-list l node-list-file m memory-per-pe M "
            "mpmd-env p protection-domain P pipes r specialized-cpus t cpu-time-limit W "
            "wdir-override"
        ),
        long=True,
        several=True,
    ),
    "jsrun": _Launcher(
        values=_of(
            "n nrs np p a tasks_per_rs c cpu_per_rs g gpu_per_rs r rs_per_host K rs_per_socket m "
            "memory_per_rs l latency_priority d launch_distribution b bind U use_resources E env F "
            "env_eval e stdio_mode i stdio_input o stdio_stdout k stdio_stderr t stdio_stdin h "
            "chdir f appfile L use_spindle M smpiargs P use_reservation S save_resources Z "
            "allocate_only X exit_on_error erf_input"
        ),
        several=True,
    ),
    "torchrun": _TORCHRUN,
    "accelerate": _ScriptRunner(
        values=_of(
            "config_file config-file num_processes num-processes num_machines num-machines "
            "machine_rank machine-rank main_process_ip main-process-ip main_process_port "
            "main-process-port mixed_precision mixed-precision gpu_ids gpu-ids "
            "num_cpu_threads_per_process num-cpu-threads-per-process dynamo_backend "
            "dynamo-backend rdzv_backend rdzv-backend rdzv_conf rdzv-conf max_restarts "
            "max-restarts monitor_interval monitor-interval tee role log_dir "
            "deepspeed_config_file zero_stage offload_optimizer_device offload_param_device "
            "gradient_accumulation_steps gradient_clipping deepspeed_hostfile "
            "deepspeed_multinode_launcher fsdp_sharding_strategy fsdp_auto_wrap_policy "
            "fsdp_transformer_layer_cls_to_wrap fsdp_state_dict_type same_network"
        ),
        verbs=_of("launch"),
        long=True,
    ),
    "flux": _Launcher(
        values=_of(
            "n ntasks N nodes c cores-per-task g gpus-per-task t time-limit q queue B bank o "
            "setopt S setattr input output error cwd env env-remove env-file rlimit "
            "job-name urgency dependency requires begin-time tasks-per-node tasks-per-core cores "
            "gpus-per-node conf add-file signal taskmap cc bcc flags"
        ),
        verbs=_of("run submit alloc batch"),
    ),
    "ibrun": _Launcher(values=_of("n np o"), long=True),
    "uv": _Launcher(
        values=_of(
            "extra no-extra group no-group only-group env-file with with-editable "
            "with-requirements p python package directory project config-file index "
            "default-index i index-url extra-index-url f find-links cache-dir color P "
            "upgrade-package prerelease resolution exclude-newer link-mode"
        ),
        verbs=_of("run"),
    ),
    **dict.fromkeys(
        ["conda", "mamba", "micromamba"],
        _Launcher(values=_of("n name p prefix cwd a attach e env"), verbs=_of("run")),
    ),
    "env": _Environment(values=_of("u unset C chdir")),
    "time": _Launcher(values=_of("f format o output")),
    "nice": _Launcher(values=_of("n adjustment")),
    "numactl": _Launcher(
        values=_of(
            "i interleave w weighted-interleave p preferred P preferred-many m membind N "
            "cpunodebind C physcpubind S shm f file o offset L length M shmmode I shmid"
        )
    ),
    "taskset": _Launcher(operands=1),
    "timeout": _Launcher(values=_of("k kill-after s signal"), operands=1),
    "stdbuf": _Launcher(values=_of("i input o output e error")),
    "chrt": _Launcher(values=_of("T sched-runtime P sched-period D sched-deadline"), operands=1),
    "ionice": _Launcher(values=_of("c class n classdata")),
    "strace": _Launcher(values=_of("e o s a b E I O P p S u U X output env user columns")),
    "perf": _Launcher(
        values=_of(
            "e event o output F freq c count C cpu p pid t tid u uid m mmap-pages G cgroup r "
            "repeat I interval-print x field-separator D delay filter call-graph timeout M metrics"
        ),
        verbs=_of("stat record trace"),
    ),
    **dict.fromkeys(["nohup", "setsid", "catchsegv", "valgrind"], _Launcher()),
    "shifter": _Launcher(values=_of("i image V volume e env env-file m module w workdir")),
    **dict.fromkeys(["sh", "bash", "dash", "ash", "ksh", "zsh", "csh", "tcsh"], _SHELL),
    **dict.fromkeys(["python", "pypy"], _PYTHON),
    "perl": _Interpreter(values=_of("I"), last=_of("e E"), text="e E"),
    "ruby": _Interpreter(values=_of("I r C E"), last=_of("e"), text="e"),
    "Rscript": _Interpreter(last=_of("e"), text="e"),
    "julia": _Interpreter(
        values=_of("p procs t threads L load J sysimage C cpu-target H home machine-file"),
        last=_of("e eval E print"),
        text="e eval E print",
    ),
    "node": _Interpreter(
        values=_of("r require C conditions import loader"),
        last=_of("e eval p print"),
        text="e eval p print",
    ),
    "java": _Interpreter(
        values=_of("cp classpath class-path p module-path upgrade-module-path add-modules"),
        last=_of("jar m module"),
        long=True,
    ),
    **dict.fromkeys(["apptainer", "singularity"], _APPTAINER),
    **dict.fromkeys(["docker", "podman", "podman-hpc"], _DOCKER),
    "ch-run": _Container(values=_of("b bind c cd g gid u uid unset-env m mount join-ct join-pid")),
}
