# Everything sets itself up: a virtual environment in .venv, the Rust build in target/.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock

.PHONY: help prerequisites demo test test-build test-rust test-python test-alone test-wall test-long test-cases test-all test-record check lint lint-rust lint-python prose format bench bench-gate validate validate-check docs wheel sdist conformance-wheel kernel-wheel clean

help:
	@echo "make demo    answer a question in virtual time, then with real programs on this machine"
	@echo "make test    the tests, without those of test-wall and test-long"
	@echo "make test-alone those of them that run one by one, after the others"
	@echo "make test-wall the tests that judge time: they want a quiet machine, and skip where it is not"
	@echo "make test-long the tests that take five seconds or more"
	@echo "make test-cases the tests of properties, with new cases"
	@echo "make test-all all tests"
	@echo "make test-record those of test-wall and test-long, kept in bench/records/tests.jsonl"
	@echo "make lint    format, lint, types"
	@echo "make check   the same, then make test"
	@echo "make bench   benchmarks, beside the peers that are installed"
	@echo "make bench-gate PARTS=... whether they are slower than at BASE, by turns"
	@echo "make validate the simulation against theory, into docs/explanation/validation.md"
	@echo "make validate-check the same, which fails when a number differs from the page"
	@echo "make docs    the documentation, into site/"
	@echo "make wheel   wheels for x86-64 and aarch64, into dist/"
	@echo "make sdist   the source distribution, into dist/"
	@echo "make conformance-wheel the test cases and the laws, as a wheel of their own into dist/"
	@echo "make kernel-wheel the kernel for programs on the virtual clock, as a wheel into dist/"

prerequisites:
	@PYTHON="$(PYTHON)" tools/prerequisites.sh

$(VENV)/.tools: pyproject.toml tools/prerequisites.sh
	@PYTHON="$(PYTHON)" tools/prerequisites.sh
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing Python packages into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "maturin>=1.9,<2"
	@touch $@

$(VENV)/.built: $(VENV)/.tools $(RUST_SOURCES)
	@echo "Building twinnet (about two minutes the first time) ..."
	@VIRTUAL_ENV="$(abspath $(VENV))" $(BIN)/maturin develop --release --quiet --extras dev >$(VENV)/build.log 2>&1 \
		|| { cat $(VENV)/build.log; exit 1; }
	@touch $@

demo: $(VENV)/.built
	@$(BIN)/twinnet twin tcp-udp-queues --preset demo --repeat 2 --out results

PYTEST := $(BIN)/python -m pytest -q --durations 40
SIDE_BY_SIDE := -n auto --dist loadfile

# All but what judges time and what takes five seconds or more (tests/support/long_tests.txt).
test: test-rust test-python test-alone

test-build: prerequisites
	cargo test --workspace --exclude twinnet-python --quiet --no-run

# The same cases of properties each time; test-cases draws new ones.
test-rust: prerequisites
	PROPTEST_RNG_SEED=1 cargo test --workspace --exclude twinnet-python --quiet

# What fails here is printed in its least form: keep it as a test of its own.
test-cases: $(VENV)/.built
	cargo test --workspace --exclude twinnet-python --quiet
	$(PYTEST) $(SIDE_BY_SIDE) --hypothesis-profile=new -m hypothesis tests

test-python: $(VENV)/.built
	$(PYTEST) $(SIDE_BY_SIDE) -m "not wall and not long and not alone" tests

# What counts what the machine holds, or uses its ports: after the others, one by one.
test-alone: $(VENV)/.built
	$(PYTEST) -m "alone and not wall and not long" tests

test-wall: $(VENV)/.built
	$(PYTEST) -m wall tests

test-long: $(VENV)/.built
	$(PYTEST) $(SIDE_BY_SIDE) -m "long and not wall" tests

test-all: test test-long test-cases test-wall

# Both doors that do not decide in the gate, into bench/records/tests.jsonl and the table of CONTRIBUTING.md.
test-record: $(VENV)/.built
	@for door in wall long; do \
		TWINNET_TEST_RESULT="$(abspath $(VENV))/$$door.json" $(MAKE) --no-print-directory test-$$door || true; \
	done
	$(BIN)/python tools/test_record.py wall=$(VENV)/wall.json long=$(VENV)/long.json

check: lint test

lint: lint-rust lint-python

lint-rust: prerequisites
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings

lint-python: $(VENV)/.built
	$(BIN)/ruff format --check python tests bench tools
	$(BIN)/ruff check python tests bench tools
	$(BIN)/pyright
	$(BIN)/python tools/check_public_types.py
	$(BIN)/python tools/check_imports.py
	$(MAKE) --no-print-directory prose
	$(BIN)/python tools/check_lines.py

# Typography and terms of OpenFlow are left out: code is typed as it is.
prose: $(VENV)/.built
	$(BIN)/proselint check --config tools/proselint.json docs README.md CONTRIBUTING.md

format: $(VENV)/.built
	cargo fmt --all
	$(BIN)/ruff format python tests bench tools
	$(BIN)/ruff check --fix --quiet python tests bench tools

# A part alone: make bench PARTS="throughput idle --quick"; kept for the documentation: make bench RECORD=bench/records/FILE
bench: $(VENV)/.built
	@cargo build --release --quiet -p twinnet-linux --example bare
	@$(BIN)/python -m bench $(PARTS) $(if $(RECORD),--record $(RECORD))

# Beside another commit, by turns; fails where a row is certainly worse by a tenth: make bench-gate PARTS="load throughput" BASE=HEAD~3
bench-gate: $(VENV)/.built
	@$(BIN)/python -m bench.gate $(PARTS) $(if $(BASE),--base $(BASE)) $(if $(TURNS),--turns $(TURNS))

validate: $(VENV)/.built
	$(BIN)/twinnet validate --markdown docs/explanation/validation.md

# The numbers are the same on every machine: a difference is a change of behaviour. 40 s of processor time.
validate-check: $(VENV)/.built
	$(BIN)/twinnet validate --markdown $(VENV)/validation/page.md >/dev/null
	diff docs/explanation/validation.md $(VENV)/validation/page.md

docs: $(VENV)/.built
	$(BIN)/sphinx-build -W -n -q -b html docs site
	@echo "site/index.html"

# Zig links against the oldest glibc that manylinux has, whatever this machine has, and for other processors.
# One alone: make wheel WHEELS=aarch64-unknown-linux-gnu
WHEELS ?= x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu
wheel: $(VENV)/.built
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "ziglang>=0.13"
	@for target in $(WHEELS); do \
		if command -v rustup >/dev/null; then rustup --quiet target add $$target || exit 1; fi; \
		PATH="$(abspath $(BIN)):$$PATH" CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 \
			$(BIN)/maturin build --release --quiet --zig --compatibility manylinux2014 --target $$target --out dist || exit 1; \
	done

# pip builds a wheel of it where none fits the machine: that needs a C compiler and Rust.
sdist: $(VENV)/.tools
	@$(BIN)/maturin sdist --out dist

# What checks twinnet, and what its users rarely need: `twinnet conformance` and `twinnet validate`.
conformance-wheel: $(VENV)/.built
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist packages/conformance

# The kernel in which programs run on the virtual clock, in a package of its own: make kernel-wheel SOURCE=linux-7.3.tar.xz
kernel-wheel: $(VENV)/.built
	@$(BIN)/twinnet kernel build $(if $(SOURCE),--source $(SOURCE))
	@$(BIN)/python tools/kernel_wheel.py --out dist

clean:
	rm -rf $(VENV) target dist site
