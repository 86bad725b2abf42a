# Front door: make demo | test | lint | format | bench | clean
# Needs Python 3.10+ with venv, and gcc. CMake, ninja and the rest come from PyPI into virtual environments here.
PYTHON   ?= python3
BACKENDS ?= numpy
JOBS     ?= $(shell nproc 2>/dev/null || echo 2)
# Processes for pytest: each may compile with torch, which takes about 1 GB.
TEST_JOBS ?= $(shell n=$(JOBS); [ $$n -gt 8 ] && n=8; echo $$n)

TORCH     := torch==2.13.0
REFERENCE := anytensor==1.1.0
VENV      := .venv
NUMPY     := .venv-numpy
MIN       := .venv-min
REF       := .venv-reference
PIP       := -m pip --disable-pip-version-check install --quiet
BIN       := $(CURDIR)/$(VENV)/bin

export PATH := $(BIN):$(PATH)
SOURCES := CMakeLists.txt pyproject.toml README.md $(shell find src include python tools -type f \
             -not -path '*/__pycache__/*' -not -name 'README.md' 2>/dev/null)
C_FILES  = $(shell find src include tests fuzz examples bench -name '*.[ch]' 2>/dev/null)

# One pytest each, in this order: tests/selections.py. A process imports one framework.
SELECTIONS := torch jax jax_modes tensorflow array_api_strict rest
export TF_CPP_MIN_LOG_LEVEL := 3
export JAX_PLATFORMS := cpu

.PHONY: help demo test lint format bench clean fuzz fuzz-c fuzz-py aarch64 c-tests c-asan c-tsan c-valgrind py-tests \
        numpy-tests docs-tests parity coverage test-min $(addprefix py-tests-,$(SELECTIONS)) $(addprefix min-,$(SELECTIONS))
help:
	@echo "make demo [BACKENDS=all]   build, run one helper on a real graph on each framework installed"
	@echo "make test                  C tests (plain, sanitizers, valgrind), Python tests"
	@echo "make test-min              Python tests with the oldest supported versions (2 GB to fetch; needs Python 3.11)"
	@echo "make lint | format         check | apply the formatters; folder and frame rules; generated files"
	@echo "make py-tests-NAME         of these, the tests of one framework: $(SELECTIONS)"
	@echo "make fuzz [SECONDS=60]     fuzz-c: each target for so long, from fuzz/corpus (needs clang);"
	@echo "                           fuzz-py: every function on every framework beside an oracle, so long in all"
	@echo "make aarch64               C library and tests for 64-bit ARM, run by qemu where it is found"
	@echo "make coverage              lines and branches of C and Python that the tests reach"
	@echo "make bench                 speed against the reference, in ratios"
	@echo "make clean                 remove build/, keep the virtual environments"

# ---- virtual environments; a stamp says that a step is done
$(VENV)/.made:
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.backends-all: $(VENV)/.made
	@echo "installing torch, jax and tensorflow-cpu"
	@$(BIN)/python $(PIP) $(TORCH) numpy
	@$(BIN)/python $(PIP) jax jaxlib tensorflow-cpu
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.made
	@echo "installing what the tests need"
	@$(BIN)/python $(PIP) $(TORCH) numpy
	@$(BIN)/python $(PIP) array-api-compat einops jaxtyping $(shell $(PYTHON) tools/dev_requirements.py)
	@touch $@

# ---- demo: `pip install .` fetches its own build tools
ifeq ($(BACKENDS),all)
demo: $(VENV)/.backends-all
endif
demo: $(VENV)/.installed
	@$(BIN)/python examples/karate.py

$(VENV)/.installed: $(SOURCES) | $(VENV)/.made
	@echo "building anytensor"
	@$(BIN)/python $(PIP) .
	@touch $@

# ---- test: the summary lines of ctest and pytest come last
test: c-tests c-asan c-tsan c-valgrind numpy-tests docs-tests parity py-tests
	@cat build/summary.c-tests build/summary.c-asan build/summary.c-tsan build/summary.c-valgrind
	@$(PYTHON) tools/test_summary.py numpy-tests docs-tests parity $(addprefix py-tests-,$(SELECTIONS))

# $(1) folder and name, $(2) CMake options, $(3) options of ctest
define ctest
	@echo "== $(1)"
	@$(BIN)/cmake -S . -B build/$(1) -G Ninja -DCMAKE_BUILD_TYPE=Debug -DANYTENSOR_TESTS=ON \
	    -DANYTENSOR_WERROR=ON $(2) >build/$(1).log || { cat build/$(1).log; exit 1; }
	@$(BIN)/cmake --build build/$(1) >>build/$(1).log || { cat build/$(1).log; exit 1; }
	@$(BIN)/ctest --test-dir build/$(1) --output-on-failure --no-tests=error -j $(JOBS) $(3) >build/$(1).log 2>&1; \
	    code=$$?; cat build/$(1).log; \
	    echo "$(1): $$(grep 'tests passed' build/$(1).log)" >build/summary.$(1); exit $$code
endef

build:
	@mkdir -p build
c-tests: $(VENV)/.dev | build
	$(call ctest,$@,-DANYTENSOR_TESTS_VALGRIND=OFF)
c-asan: $(VENV)/.dev | build
	$(call ctest,$@,-DANYTENSOR_SANITIZE=ON -DANYTENSOR_TESTS_VALGRIND=OFF)
c-tsan: $(VENV)/.dev | build
	$(call ctest,$@,-DANYTENSOR_SANITIZE=thread -DANYTENSOR_TESTS_VALGRIND=OFF)
# Hostile input, the plans of large folds and large softmaxes have other guards (pages that cannot be touched, sanitizers) and take
# valgrind minutes.
ifneq ($(shell command -v valgrind 2>/dev/null),)
c-valgrind: $(VENV)/.dev | build
	$(call ctest,$@,-DANYTENSOR_TESTS_VALGRIND=OFF "-DCMAKE_TEST_LAUNCHER=valgrind;-q;--error-exitcode=99;--leak-check=full;--child-silent-after-fork=yes",-E 'hostile|plans|test_softmax')
else
c-valgrind: | build
	@echo "c-valgrind: valgrind is not installed, left out" | tee build/summary.$@
endif

# 64-bit ARM: compiled across, and run instruction by instruction where qemu-user is there.
AARCH64 := aarch64-linux-gnu
ifneq ($(shell command -v $(AARCH64)-gcc 2>/dev/null),)
aarch64: $(VENV)/.dev | build
	@command -v qemu-aarch64 >/dev/null || echo "aarch64: qemu-aarch64 is not installed: compiled, tests left out"
	$(call ctest,$@,-DCMAKE_TOOLCHAIN_FILE=$(CURDIR)/tools/aarch64.cmake -DANYTENSOR_TESTS_VALGRIND=OFF \
	    -DCMAKE_BUILD_TYPE=RelWithDebInfo)
else
aarch64: | build
	@echo "aarch64: $(AARCH64)-gcc is not installed, left out" | tee build/summary.$@
endif

# ---- fuzz: what was found beside the corpus lies in build/fuzz-NAME, crashes in build/crash-NAME-*
SECONDS ?= 60
TARGETS := segment_fold segment_softmax partition
fuzz: fuzz-c fuzz-py
fuzz-c: $(VENV)/.dev | build
	@command -v clang >/dev/null || { echo "fuzz: clang is not installed"; exit 1; }
	@$(BIN)/cmake -S . -B build/fuzz -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	    -DANYTENSOR_FUZZ=ON >build/fuzz.log && $(BIN)/cmake --build build/fuzz >>build/fuzz.log || { cat build/fuzz.log; exit 1; }
	@for name in $(TARGETS); do \
	    mkdir -p build/fuzz-$$name && echo "== fuzz_$$name for $(SECONDS) s" && \
	    AT_NUM_THREADS=$${AT_NUM_THREADS:-4} build/fuzz/fuzz/fuzz_$$name -max_total_time=$(SECONDS) -max_len=400 -timeout=60 \
	        -rss_limit_mb=0 -verbosity=0 -print_final_stats=1 -artifact_prefix=build/crash-$$name- \
	        build/fuzz-$$name fuzz/corpus/$$name || exit 1; done

# One process per framework, with an equal share of the time; new calls each time, and what failed before comes first.
fuzz-py: build/wheel
	@failed=0; for only in $(filter-out jax_modes,$(SELECTIONS)); do echo "== fuzz-py: $$only"; \
	    CONTRACT_SECONDS=$$(( $(SECONDS) / 5 )) $(BIN)/python -m pytest -q --tb=short tests/py/contract --only $$only || failed=1; \
	done; exit $$failed

# One wheel serves both environments; build/wheel-tree makes a second build incremental.
build/wheel: $(SOURCES) $(VENV)/.dev | build
	@echo "== wheel"
	@rm -rf $@
	@$(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation \
	    --config-settings=build-dir=build/wheel-tree --config-settings=cmake.define.ANYTENSOR_WERROR=ON -w $@ . || { rm -rf $@; exit 1; }
	@$(BIN)/python $(PIP) --force-reinstall --no-deps $@/*.whl
	@touch $@ $(VENV)/.installed

$(NUMPY)/.installed: build/wheel
	@test -x $(NUMPY)/bin/python || $(PYTHON) -m venv $(NUMPY)
	@$(NUMPY)/bin/python $(PIP) numpy pytest pytest-xdist hypothesis build/wheel/*.whl
	@$(NUMPY)/bin/python $(PIP) --force-reinstall --no-deps build/wheel/*.whl
	@touch $@

# The oldest versions that are supported, in one environment: pyproject.toml's group `min`. The wheel is the one above.
PYTHON_MIN ?= python3.11
$(MIN)/.installed: build/wheel pyproject.toml
	@test -x $(MIN)/bin/python || $(PYTHON_MIN) -m venv $(MIN)
	@echo "installing the oldest supported versions"
	@$(MIN)/bin/python $(PIP) $(shell $(PYTHON) tools/dev_requirements.py min)
	@$(MIN)/bin/python $(PIP) --force-reinstall --no-deps build/wheel/*.whl
	@touch $@

# $(1) the Python to run, $(2) the name of the log, $(3) options, $(4) the folder if not tests
define pytest
	@echo "== $(2)"
	@bash -c 'set -o pipefail; $(1) -m pytest -q -n $(TEST_JOBS) $(3) $(or $(4),tests) 2>&1 | tee build/$(2).log'
endef

# All selections run, whatever fails; each keeps all processors busy, so they come one after the other.
py-tests: build/wheel
	@rm -f build/py-tests-*.log
	@$(MAKE) --no-print-directory --keep-going --jobs=1 $(addprefix py-tests-,$(SELECTIONS)) || \
	    { $(PYTHON) tools/test_summary.py $(addprefix py-tests-,$(SELECTIONS)); exit 1; }
$(addprefix py-tests-,$(SELECTIONS)): py-tests-%: build/wheel
	$(call pytest,$(BIN)/python,$@,--only $*)
# The case list is one small program per case; jax_modes alone meets XLA as users do.
py-tests-jax: export XLA_FLAGS := --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true
numpy-tests: $(NUMPY)/.installed
	$(call pytest,$(NUMPY)/bin/python,$@,-m "not slow")

# All selections, whatever fails. Tests of what newer versions brought say from which on, and are skipped.
test-min: $(MIN)/.installed
	@rm -f build/min-*.log
	@$(MAKE) --no-print-directory --keep-going --jobs=1 $(addprefix min-,$(SELECTIONS)) || true
	@$(PYTHON) tools/test_summary.py $(addprefix min-,$(SELECTIONS))
$(addprefix min-,$(SELECTIONS)): min-%: $(MIN)/.installed
	$(call pytest,$(MIN)/bin/python,$@,--only $*,tests/py)
min-jax: export XLA_FLAGS := --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true

# The code in the documentation; a page is one session, so it stays in one process.
docs-tests: build/wheel
	$(call pytest,$(BIN)/python,$@,--dist loadfile,docs)

# The tests of the release that this one stands in for, from PyPI.
parity: build/wheel
	@echo "== $@"
	@bash -c 'set -o pipefail; $(BIN)/python tests/parity/reference.py -n $(TEST_JOBS) 2>&1 | tee build/$@.log'

# ---- coverage: all tests again, on a build that counts; the lines and branches that none reached are listed
$(VENV)/.coverage: $(VENV)/.dev
	@$(BIN)/python $(PIP) 'gcovr>=7' 'coverage>=7.4' 'pytest-cov>=5'
	@touch $@
COVERED := $(CURDIR)/build/coverage-site
coverage: $(VENV)/.coverage | build
	@rm -rf build/coverage-py build/coverage-c $(COVERED) build/.coverage*
	$(call ctest,coverage-c,-DANYTENSOR_COVERAGE=ON -DANYTENSOR_TESTS_VALGRIND=OFF)
	@$(BIN)/python $(PIP) --no-deps --no-build-isolation --target $(COVERED) --config-settings=build-dir=build/coverage-py \
	    --config-settings=cmake.build-type=Debug --config-settings=cmake.define.ANYTENSOR_COVERAGE=ON .
	-@for only in $(SELECTIONS); do echo "== coverage: $$only"; PYTHONPATH=$(COVERED) COVERAGE_FILE=build/.coverage.$$only \
	    $(BIN)/python -m pytest -q -n $(TEST_JOBS) --cov --cov-config=pyproject.toml --cov-report= --only $$only tests | tail -3; done
	@cd build && $(BIN)/coverage combine --rcfile=../pyproject.toml --keep -q .coverage.* && $(BIN)/coverage report --rcfile=../pyproject.toml
	@$(BIN)/gcovr --root . --filter src/ --exclude-unreachable-branches --exclude-throw-branches --txt build/coverage.txt \
	    --txt-metric line --print-summary --fail-under-line 95 build/coverage-c build/coverage-py
	@echo "C: build/coverage.txt lists the lines that no test reached"

# ---- the rest
lint: $(VENV)/.dev
	$(BIN)/clang-format --dry-run -Werror $(C_FILES)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/lint.py
	$(BIN)/python tools/opgen

format: $(VENV)/.dev
	$(BIN)/clang-format -i $(C_FILES)
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

$(REF)/.made:
	@echo "installing the reference, $(REFERENCE), and the frameworks"
	@test -x $(REF)/bin/python || $(PYTHON) -m venv $(REF)
	@$(REF)/bin/python $(PIP) $(TORCH) numpy
	@$(REF)/bin/python $(PIP) $(REFERENCE) jax jaxlib tensorflow-cpu
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	@$(BIN)/python $(PIP) torch-geometric matplotlib
	@touch $@

bench: build/wheel $(REF)/.made $(VENV)/.bench
	@$(BIN)/python bench/run.py --reference $(CURDIR)/$(REF)/bin/python
	@$(BIN)/python bench/large.py
	@$(BIN)/python bench/trees.py

clean:
	rm -rf build dist
