# make demo   set everything up, run real jobs unmanaged and managed, leave a report in out/demo
# make test   set everything up, run every check and test; out/passed says what passed
# make rates  bandwidths and shares by the clock, for a machine that keeps time
# make bench  those, and speed as ratios measured in one run;  make soak  the full sizes
# make suites public test suites under the client library, compared with their plain runs
# make wheel  sdist, wheel and its bill of materials, checked, in dist
# make fuzz   hostile clients, jobs and I/O nodes, as many cases as CASES and its like say
# make docs   the site in out/site, manual pages in out/man;  make man  those alone
# make clean  back to a fresh checkout

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
CORES ?= $(shell nproc)
NATIVE := $(shell find native -name '*.c' -o -name '*.cpp' -o -name '*.h' -o -name '*.hpp' -o -name CMakeLists.txt) CMakeLists.txt
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: demo test lint rates bench soak suites wheel fuzz docs man clean
.DEFAULT_GOAL := demo

demo: $(VENV)/ready
	rm -rf out/demo  # every run measures again
	penstock reproduce demo --out out/demo

test: $(VENV)/ready-test
	python tests/run.py

lint: $(VENV)/ready-test
	ruff check .
	ruff format --check .
	mypy
	lint-imports --no-cache
	clang-format --dry-run --Werror $(shell git ls-files native tests benchmarks | grep -E "\.(c|h|cpp|hpp)$$")

# Bandwidths, shares and delays by the clock: on a machine that keeps time, as benchmarks.
rates: $(VENV)/ready-test
	PENSTOCK_QUIET_MACHINE=1 pytest -m 'rates or timed'

bench: $(VENV)/ready-bench rates
	python benchmarks/engine.py
	python benchmarks/allocation.py
	python benchmarks/io_resources.py
	python benchmarks/forwarding.py
	python benchmarks/controller.py
	python benchmarks/dashboard.py
	python benchmarks/store.py
	python benchmarks/periods.py
	python benchmarks/shares.py
	python benchmarks/bandits.py
	python benchmarks/tuning.py
	python benchmarks/detection.py

soak: $(VENV)/ready-bench
	python benchmarks/engine.py --huge
	PENSTOCK_SOAK=30 pytest -n $(CORES) tests/parity
	PENSTOCK_SOAK=1 pytest tests/live/client/test_stress.py
	PENSTOCK_QUIET_MACHINE=1 PENSTOCK_SOAK=10 pytest -s tests/chaos
	PENSTOCK_SOAK=1 pytest tests/live/client/test_stress.py
	for study in detection tuning io-sets io-resources forwarding-policies packs write-models live-io-sets live-packs live-forwarding live-io-resources; do \
	  penstock reproduce $$study --full --out out/$$study-full || exit 1; done
	$(MAKE) fuzz CASES=10000000 NODE_CASES=1000000 CONTROL_CASES=400000 COUNTER_CASES=200000 \
	  HTTP_CASES=150000 IO_NODE_CASES=200

# Public test suites, plainly and managed; PENSTOCK_SUITES names those that no package has.
suites: $(VENV)/ready-test
	python tests/suites/run.py

wheel: $(VENV)/ready
	pip install --quiet --group package
	rm -rf dist
	deploy/build-wheel dist

# Hostile frames: the parser alone, fast, and a whole I/O node driven by hand. Seeds are kept. Then
# those of tests/fuzz: control messages, counters of jobs, HTTP, and I/O nodes that answer anything.
CASES ?= 1000000
NODE_CASES ?= 20000
CONTROL_CASES ?= 20000
COUNTER_CASES ?= 10000
HTTP_CASES ?= 5000
IO_NODE_CASES ?= 10
FUZZ_frames := fuzz_frames
FUZZ_node := caller calls connection crew desk epoll intake listeners node permits poller privileges queues requests schedulers server shared fuzz_node
FUZZ_FLAGS := -max_len=1024 -print_final_stats=1 -verbosity=0 -artifact_prefix=build/fuzz/

fuzz: $(VENV)/ready-test build/fuzz/frames build/fuzz/node
	mkdir -p build/fuzz/corpus-frames build/fuzz/corpus-node
	build/fuzz/frames -runs=$(CASES) $(FUZZ_FLAGS) build/fuzz/corpus-frames tests/fuzz/frames
	ASAN_OPTIONS=malloc_context_size=2:quarantine_size_mb=8 build/fuzz/node -runs=$(NODE_CASES) \
	  -entropic=0 $(FUZZ_FLAGS) -max_len=128 build/fuzz/corpus-node tests/fuzz/ionode
	PYTHONPATH=tests python -m fuzz.control --cases $(CONTROL_CASES)
	PYTHONPATH=tests python -m fuzz.counters --cases $(COUNTER_CASES)
	PYTHONPATH=tests python -m fuzz.http_bytes --cases $(HTTP_CASES)
	PYTHONPATH=tests python -m fuzz.io_nodes --cases $(IO_NODE_CASES)

build/fuzz/%: $(NATIVE)
	deploy/install-packages fuzz
	mkdir -p build/fuzz
	clang++ -std=c++20 -O2 -g1 -fno-omit-frame-pointer -fsanitize=fuzzer,address,undefined \
	  -fno-sanitize-recover=undefined -Wall -Wextra -Werror -I native/common -pthread \
	  $(addprefix native/ionode/,$(addsuffix .cpp,$(FUZZ_$*))) -o $@.new
	mv $@.new $@

# Pages of policies, metrics and verbs are made from the code; a warning is an error.
docs: $(VENV)/ready-test man
	NO_MKDOCS_2_WARNING=1 mkdocs build --strict --quiet

man: $(VENV)/ready-test
	penstock man --out out/man/man1

clean:
	rm -rf $(VENV) build dist out benchmarks/build

# An editable install: Python changes count at once, native ones when the stamp is older than them.
$(VENV)/ready: pyproject.toml $(NATIVE) deploy/install-packages
	deploy/install-packages build
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	pip install --quiet --upgrade "pip>=25.1"
	pip install --quiet --config-settings=cmake.define.PENSTOCK_WERROR=ON --editable .
	touch $@

$(VENV)/ready-test: $(VENV)/ready
	deploy/install-packages test
	pip install --quiet --group test --group lint --group docs
	touch $@

$(VENV)/ready-bench: $(VENV)/ready-test
	deploy/install-packages bench
	pip install --quiet --group bench
	touch $@
