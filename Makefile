# Everything sets itself up: `make demo` and `make test` work in a fresh clone on a
# bare Debian 12, as root or as a user with sudo, and need neither afterwards.

VENV := .venv
PYTHON := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed

C_FILES := $(shell find emu tests -name '*.[ch]' -not -name _core.c)
SCRIPTS := vagrant/provision.sh vagrant/welcome.sh tests/vm/inside.sh tests/vm/bare.sh .ci/run
PROPERTIES := tests/runtime/test_properties.py tests/runtime/test_conservation.py \
	tests/core/link/test_credit_properties.py tests/core/nic/test_stress.py
CORE_TESTS := tests/core tests/flow_model tests/runtime tests/traffic tests/verbs/test_hostile.py
# Labs in real time (marked `timing`) run one at a time, with the machine for themselves.
LAB_TESTS := tests/lab tests/daemon tests/verbs
# They wait for a third of their time, so there are more at once than processors.
LAB_WORKERS := $(shell expr $$(nproc) \* 3 / 2)

# Tests and labs start many Pythons. Without bytecode each would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-pythons properties vm-test bare-test coverage bench results reference docs hooks lint lint-python lint-c sanitize format clean

help:
	@echo "make demo          one incast on five fabrics: table, page and captures in out/demo"
	@echo "make test          all tests"
	@echo "make test-pythons  what needs no lab, on Python 3.12 and 3.13"
	@echo "make coverage      what the tests run of Python and of the C core: build/coverage/index.html"
	@echo "make properties    what must hold for any fabric, on 2000 random ones each; many minutes"
	@echo "make vm-test       on Debian's own kernel, in QEMU: Linux' soft RoCE at the other end; many minutes"
	@echo "make bare-test     provision.sh on a bare Debian 12, made by debootstrap; then a set-up and labs there"
	@echo "make bench         how fast it is here, beside baselines; QUICK=1: in less than a minute"
	@echo "make results       what the fabrics must show, on the virtual and the exact clock: topologies/results/README.md"
	@echo "make reference     docs/reference and the JSON schema, from the texts beside the code"
	@echo "make docs          the pages of docs/ as a site in build/site"
	@echo "make hooks         git commit checks layout, spelling and imports first"
	@echo "make lint          layout, types, spelling, the C analyser, who may import whom"
	@echo "make sanitize      the core's tests with the sanitizers for addresses, undefined behaviour and threads"
	@echo "make format        lay out Python and C"
	@echo "make clean         remove what was built; the environment stays"

demo: setup
	$(VENV)/bin/emu compare topologies/incast.emu.yml --out out/demo

test: setup
	$(PYTHON) -m pytest --numprocesses auto --dist worksteal $(addprefix --ignore ,$(LAB_TESTS))
	$(PYTHON) -m pytest --numprocesses $(LAB_WORKERS) --dist worksteal -m "not timing" $(LAB_TESTS)
	$(PYTHON) -m pytest -m timing $(LAB_TESTS)

properties: setup
	$(PYTHON) -m pytest --numprocesses auto --hypothesis-profile long --timeout 0 $(PROPERTIES)

# A machine emulated in software; it needs no hardware's help and no root.
vm-test: setup
	@vagrant/provision.sh --vm
	EMU_VM=1 $(PYTHON) -m pytest --verbose tests/vm

# Nothing is missing from the list of packages. Takes root.
bare-test:
	@vagrant/provision.sh --bare
	rm -rf build/bare
	tests/vm/bare.sh build/bare

# The core that counts its lines is in the tests' own process; the commands that tests start use
# the released one. COVERED=tests counts the labs, too. Counts of files that have gone would stay, so
# it begins with an empty folder.
COVERED := $(addprefix --ignore ,$(LAB_TESTS)) tests
coverage: setup
	rm -rf build/coverage
	$(PYTHON) -m emu._build coverage
	$(PYTHON) -m pytest --numprocesses auto --dist worksteal --timeout 600 \
		--core build/coverage --cov --cov-report= $(COVERED)
	$(PYTHON) -m emu._build.coverage

# What needs no lab, on the Pythons that Debian 12 does not have. Labs need Debian's own: Mininet is
# packaged for it alone, and imports distutils, which Python 3.12 no longer has.
PYTHONS := 3.12 3.13
test-pythons: $(PYTHONS:%=test-python%)
test-python%: setup
	test -x build/python$*/bin/python || python$* -m venv build/python$*
	build/python$*/bin/python -m pip install --quiet --editable '.[dev,sweep]'
	build/python$*/bin/python -m pytest --numprocesses auto --dist worksteal $(addprefix --ignore ,$(LAB_TESTS))

bench: setup
	$(PYTHON) -m emu.bench $(if $(QUICK),--quick)

results: setup
	$(VENV)/bin/emu results topologies/results --clock virtual --clock exact \
		--page topologies/results/README.md

reference: setup
	$(PYTHON) -m emu.reference

# What `git commit` then checks first: .pre-commit-config.yaml.
hooks: setup
	$(VENV)/bin/pre-commit install

# The site in build/site, which needs nothing from the network. A dead link is an error.
docs: reference
	$(VENV)/bin/mkdocs build --strict --quiet
	@echo "see it: python3 -m http.server --directory build/site"

lint: setup
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint-python lint-c

lint-python:
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(VENV)/bin/lint-imports

lint-c:
	clang-format --dry-run -Werror $(C_FILES)
	$(PYTHON) -m emu._build.layers
	$(PYTHON) -m emu._build analyze
	$(PYTHON) -m codespell_lib
	shellcheck $(SCRIPTS)

# The interpreter itself is not instrumented, so the sanitizer comes first of all
# libraries; memory that Python keeps until its end is not our leak. gcc and clang look for
# different kinds of undefined behaviour. A core that clang built stops with SIGILL. Races between
# threads are reported in build/threads/races.<pid>.
sanitize: setup
	$(PYTHON) -m emu._build sanitize
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0 \
	$(PYTHON) -m pytest --core build/sanitize $(CORE_TESTS)
	$(PYTHON) -m emu._build undefined
	$(PYTHON) -m pytest --core build/undefined tests/core tests/runtime
	$(PYTHON) -m emu._build threads
	LD_PRELOAD="$$(gcc -print-file-name=libtsan.so)" \
	TSAN_OPTIONS="exitcode=66 log_path=build/threads/races" \
	$(PYTHON) -m pytest --timeout 600 --core build/threads tests/runtime/test_parts.py \
		--deselect tests/runtime/test_parts.py::test_shipped_specs_in_parts

format: setup
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix --select I .
	clang-format -i $(C_FILES)

clean:
	rm -rf build out emu/_core.*.so emu/*/*.so emu/*/*/*.o emu.egg-info .pytest_cache .mypy_cache .ruff_cache

# --- set-up: well under a second when there is nothing to do ---

setup: $(INSTALLED)
	@vagrant/provision.sh
	@$(PYTHON) -m emu._build

# An environment holds absolute paths, so one that was moved is made anew.
ifneq ($(CURDIR),$(shell cat $(INSTALLED) 2>/dev/null))
.PHONY: $(INSTALLED)
$(INSTALLED): CLEAR := --clear
endif

# Debian's own Python, with its packages in sight: Mininet is one of them.
$(INSTALLED): pyproject.toml
	vagrant/provision.sh
	/usr/bin/python3 -m venv --system-site-packages $(CLEAR) $(VENV)
	$(PYTHON) -m pip install --quiet --editable '.[dev,sweep]'
	@pwd -P > $@
