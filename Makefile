# `make help` lists what there is to call. Each target does its own set-up (scripts/).

# As many files at once as there are CPUs; several goals, such as `make env up`, one after another.
# Not for the programs that recipes start: tests call make.
ifeq ($(word 2,$(MAKECMDGOALS)),)
MAKEFLAGS += --jobs=$(shell nproc)
endif
unexport MAKEFLAGS MFLAGS
# Tests start Python thousands of times: it finds its modules compiled, whatever the shell has set.
unexport PYTHONDONTWRITEBYTECODE

SUITE      ?= quick
SUBSYSTEMS := $(patsubst services/%/subsystem.py,%,$(wildcard services/*/subsystem.py))

# ---- the benchmark programs ----
# One tree a variant: build/release/cpu-bench, build/asan/cpu-bench and so on.

VARIANTS        := release clang asan tsan aarch64 flips unchecked
CC_clang        := clang
CC_aarch64      := aarch64-linux-gnu-gcc
FLAGS_asan      := -fsanitize=address,undefined -fno-sanitize-recover=all
FLAGS_tsan      := -fsanitize=thread
# A CPU that computes wrong, to test what finds it: services/cpu/bench/flip.h.
FLAGS_flips     := -DHOSTBENCH_FLIPS
# Beside the release build it shows what comparing the results costs: harness/checked.h.
FLAGS_unchecked := -DHOSTBENCH_UNCHECKED
# Static: qemu-aarch64 then needs no path to an aarch64 C library.
LDFLAGS_aarch64 := -static
FLAGS_aarch64   := -DSTATIC_PROGRAM

# What `make wheel` packs: for glibc 2.28 and newer (RHEL 8). The same compiler makes the same machine
# code, with the headers of an old glibc. zig links it against lists of what that glibc had: a newer
# function is an error, and what starts the program runs its constructors there, too, which that of
# a newer glibc leaves to the C library. libgcc is the compiler's own.
WHEELS     ?= x86_64 aarch64
GLIBC      := 2.28
ZIG        := build/zig/ziglang
libc        = -isystem $(ZIG)/lib/libc/include/$(1)
gcc_file    = $(shell command -v $(1) >/dev/null && $(1) -print-file-name=$(2))
define wheel_variant # ARCHITECTURE ITS-NAME-IN-THE-FOLDERS-OF-HEADERS
CC_wheel-$(1)      := $(1)-linux-gnu-gcc
CFLAGS_wheel-$(1)   = -fPIE -g0 -nostdinc -isystem $$(call gcc_file,$(1)-linux-gnu-gcc,include) \
    $$(call libc,$(2)-linux-gnu) $$(call libc,generic-glibc) $$(call libc,$(2)-linux-any) \
    $$(call libc,any-linux-any) -D__GLIBC_MINOR__=$(GLIBC:2.%=%)
LINK_wheel-$(1)     = ZIG_GLOBAL_CACHE_DIR=build/zig/cache ZIG_LOCAL_CACHE_DIR=build/zig/cache \
    $(ZIG)/zig cc -target $(1)-linux-gnu.$(GLIBC) -pie
LDLIBS_wheel-$(1)   = $$(call gcc_file,$(1)-linux-gnu-gcc,libgcc.a) -lpthread -ldl -lrt
endef
$(foreach w,$(WHEELS),$(eval $(call wheel_variant,$(w),$(w:x86_64=x86))))

ifeq ($(origin CC),default)
CC := gcc
endif
VERSION  := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
CPPFLAGS := -Iharness -DHOSTBENCH_VERSION='"$(VERSION)"' -MMD -MP
# Contracted to an FMA, a kernel would not do the operations it counts.
CFLAGS   := -std=gnu17 -O2 -g -Wall -Wextra -Werror -ffp-contract=off -pthread
LDLIBS   := -lm
# These loops measure what a compiler leaves without optimisation.
build/%/services/cpu/bench/naive_loops.o: CFLAGS += -O0

# The kernels of gpu-bench, compiled for every GPU architecture by a compiler that is no part of the
# program. They are the same in all variants.
MADE_gpu    := build/gpu/kernels.c
GPU_KERNELS := services/gpu/kernels

HARNESS  := $(wildcard harness/*.c)
C_TESTS  := $(wildcard harness/tests/*.c)

# $(call objects,VARIANT,SOURCES)
objects = $(patsubst %.c,build/$(1)/%.o,$(2))

define variant_rules # VARIANT COMPILER
build/$(1)/%.o: %.c Makefile pyproject.toml | packages
	@mkdir -p $$(@D)
	@$(2) $$(CPPFLAGS) $$(CFLAGS) $$(FLAGS_$(1)) $$(CFLAGS_$(1)) -c -o $$@ $$<

build/$(1)/tests/%: build/$(1)/harness/tests/%.o $(call objects,$(1),$(HARNESS))
	@mkdir -p $$(@D)
	@$(2) $$(CFLAGS) $$(FLAGS_$(1)) $$(LDFLAGS_$(1)) -o $$@ $$^ $$(LDLIBS)

c-tests-$(1): $(patsubst harness/%.c,build/$(1)/%,$(C_TESTS))
endef

define program_rules # VARIANT COMPILER SUBSYSTEM
programs-$(1): build/$(1)/$(3)-bench
build/$(1)/$(3)-bench: $(call objects,$(1),$(HARNESS) $(wildcard services/$(3)/bench/*.c) $(MADE_$(3)))
	@echo "==> $$@"
	@$$(or $$(LINK_$(1)),$(2) $$(CFLAGS) $$(FLAGS_$(1)) $$(LDFLAGS_$(1))) -o $$@ $$^ \
	    $$(LDLIBS) $$(LDLIBS_$(1))
endef

compiler = $(or $(CC_$(1)),$(CC))
BUILDS   := $(VARIANTS) $(WHEELS:%=wheel-%)
$(foreach v,$(BUILDS),$(eval $(call variant_rules,$(v),$(call compiler,$(v)))))
$(foreach v,$(BUILDS),$(foreach s,$(SUBSYSTEMS),\
    $(eval $(call program_rules,$(v),$(call compiler,$(v)),$(s)))))

KERNEL_FILES := $(wildcard $(GPU_KERNELS)/*.py $(GPU_KERNELS)/*.k $(GPU_KERNELS)/*.cu \
    $(GPU_KERNELS)/prelude_*.h)

build/gpu/nvrtc/installed: requirements/gpu-build.txt | packages
	@scripts/nvrtc.sh $(@D)
	@touch $@

# NVRTC=none, where its wheel cannot be had: gpu-bench then has its kernels for OpenCL alone.
ifeq ($(NVRTC),none)
$(MADE_gpu): $(KERNEL_FILES) | packages
	@echo "==> $@, for OpenCL alone (NVRTC=none)"
	@rm -f build/gpu/nvrtc/installed # so that a make without NVRTC=none makes them all
	@"$$(scripts/find-python.sh)" $(GPU_KERNELS)/build.py none $(@D)
else
$(MADE_gpu): build/gpu/nvrtc/installed $(KERNEL_FILES)
	@echo "==> $@"
	@"$$(scripts/find-python.sh)" $(GPU_KERNELS)/build.py build/gpu/nvrtc $(@D)
endif

# What gemm and linpack call, beside the programs of all variants. Without the wheel, or with
# OPENBLAS=none, they take the system's library. The static program loads none.
build/openblas/installed: requirements/openblas.txt | packages
	@scripts/openblas.sh $(@D)

ifneq ($(OPENBLAS),none)
ifneq ($(filter cpu,$(SUBSYSTEMS)),)
$(filter-out programs-aarch64,$(VARIANTS:%=programs-%)): build/openblas/installed
endif
endif

build/zig/installed: requirements/wheel.txt | packages
	@scripts/zig.sh $(@D)
	@touch $@

$(foreach w,$(WHEELS),$(patsubst %.c,build/wheel-$(w)/%.o,\
    $(HARNESS) $(wildcard services/*/bench/*.c) $(MADE_gpu))): build/zig/installed

# The control messages of a network test under libFuzzer: the code that reads them, and stand-ins for
# sockets and threads.
FUZZ_SECONDS ?= 600
FUZZED       := wire control token grant test endpoint endpoint_facts far_agreement
FUZZ_FILES   := $(wildcard services/net/fuzz/*.c) $(FUZZED:%=services/net/bench/%.c) $(HARNESS)

build/fuzz/net-control: $(FUZZ_FILES) $(wildcard services/net/*/*.[ch] harness/*.h) Makefile | packages
	@mkdir -p $(@D)
	@echo "==> $@"
	@clang $(filter-out -MMD -MP,$(CPPFLAGS)) -Iservices/net/bench $(CFLAGS) -O1 $(FLAGS_asan) \
	    -fsanitize=fuzzer -o $@ $(FUZZ_FILES) $(LDLIBS)

-include $(wildcard build/*/harness/*.d build/*/harness/tests/*.d build/*/services/*/bench/*.d \
    build/*/build/gpu/*.d)

# ---- set-up ----
# Both scripts find out by themselves, in a few milliseconds, that there is nothing to do.

ifneq ($(filter lint test test-all test-lanes test-clusters e2e soak chaos fuzz fuzz-api format docs lock,$(MAKECMDGOALS)),)
GROUPS       := run develop
REQUIREMENTS := dev
else
GROUPS       := run $(filter wheel,$(MAKECMDGOALS))
REQUIREMENTS := cli
endif

packages:
	@scripts/system-packages.sh $(GROUPS)

venv: packages ## make .venv with the command line, .venv/bin/hostbench
	@scripts/python-env.sh $(REQUIREMENTS)

# ---- what to call ----

# A warning, such as of a link that leads nowhere, is an error.
SITE_OPTIONS := -c docs/site -b html --jobs auto --quiet --fail-on-warning

HELM ?= $(firstword $(wildcard build/kubernetes/helm) helm)

help: ## this list
	@echo "make TARGET [VARIABLE=VALUE ...]"
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/\1\t\2/p' Makefile | expand -t 12 | sed 's/^/  /'

run: venv programs ## measure this host: SUITE=quick|full|..., YES=1 installs without asking, NVRTC=none without CUDA, OPENBLAS=none with the system's BLAS
	@.venv/bin/hostbench run $(SUITE) $(ARGS)

PREFIX ?= /usr/local

install: packages programs ## lay out what hosts run without this checkout: DESTDIR=... PREFIX=/usr/local
	@scripts/install.sh "$(DESTDIR)" "$(PREFIX)"

DIST ?= dist

wheel: venv $(WHEELS:%=programs-wheel-%) ## pack dist/*.whl for pip, x86-64 and aarch64, glibc 2.28 and newer: WHEELS=x86_64 makes one
	@for architecture in $(WHEELS); do scripts/wheel.sh "$$architecture" $(GLIBC) "$(DIST)" || exit; done

peers: ## install the tools that are measured beside ours: likwid, stress-ng, sysbench, fio, hpcc ...
	@scripts/system-packages.sh peers

env: ## make .env and secrets/ of the stack, keep what is there: GPU=nvidia|amd|none
	@scripts/system-packages.sh stack
	@GPU="$(GPU)" scripts/make-env.sh

farhost: ## make NAME.tar for a second machine: NAME=bench-2 ADDRESS=192.0.2.8
	@scripts/make-far-host.sh "$(NAME)" "$(ADDRESS)"

key: ## make a key of the API for somebody, or take it away: NAME=ann ROLE=viewer|operator|poster|host|none
	@scripts/make-key.sh "$(NAME)" "$(ROLE)"

up: ## build and start the stack with Docker Compose, after `make env`
	@scripts/stack-up.sh

down: ## stop the stack; results and metrics stay
	docker compose down

sbom: packages ## write what the images are made of into build/sbom (CycloneDX), look up known advisories
	@scripts/sbom.sh

images: ## build the images for a cluster: REGISTRY=registry.example/hostbench, PUSH=1 pushes them
	@scripts/images.sh "$(REGISTRY)" "$(PUSH)"

chart: ## package the Helm chart into build/chart, write charts/kustomize of it
	@$(HELM) package --destination build/chart charts/hostbench
	@$(HELM) template hostbench charts/hostbench --show-only templates/campaigns.yaml \
	    --set image.registry=none >charts/kustomize/campaigns.yaml

backup: ## save the stack's results, settings and keys: TO=FILE.tar
	@scripts/backup.sh save "$(TO)"

restore: ## put a backup into an empty stack, start it, and write its points again: FROM=FILE.tar
	@scripts/backup.sh restore "$(FROM)"
	@scripts/stack-up.sh
	docker compose exec --no-TTY orchestrator python3 -m orchestrator.influx.reindex

programs: programs-release ## build the benchmark programs into build/release

# What they all link: the Dockerfile compiles it once for all images.
harness: $(call objects,release,$(HARNESS))

# With the flags of ours: what it counts must not be contracted or left out either.
program: $(call objects,release,$(HARNESS)) ## build a subsystem's program that stands elsewhere: FROM=its/folder TO=NAME-bench
	$(if $(and $(FROM),$(TO)),,$(error give FROM=the folder of its C files and TO=the program))
	@$(CC) $(filter-out -MMD -MP,$(CPPFLAGS)) $(CFLAGS) -o "$(TO)" "$(FROM)"/*.c $^ $(LDLIBS)

# Most tests wait for real processes most of the time, and conftest.py keeps those that measure apart:
# six lanes, a file in one of them, in conftest.py's order.
LANES := --numprocesses=6 --dist=loadfile --no-loadscope-reorder

# Beside the compiler one process rewrites the assertions of all test files; six lanes at once would
# each do it. It also says soonest what cannot be imported.
collected: venv
	@found=$$(.venv/bin/pytest --collect-only -qq -p no:cacheprovider) || { echo "$$found"; exit 1; }

test: venv collected c-tests-release programs-release ## run the tests without Docker and other builds: ARGS="-k PATTERN" chooses
	@.venv/bin/pytest -m "not exhaustive" $(LANES) $(ARGS)

test-all: test-lanes ## test every build, every case, Kubernetes and Slurm too
	@.venv/bin/pytest -m engine tests/fleet $(ARGS)

# What test-lanes looks at. Of two variants it runs some of the programs only.
SOME_OF := flips/cpu unchecked/cpu unchecked/mem unchecked/net
builds: c-tests-release c-tests-asan $(SOME_OF:%=build/%-bench) \
    $(filter-out %-flips %-unchecked,$(VARIANTS:%=programs-%))

# Those of test-all that may run beside one another.
test-lanes: venv collected builds
	@.venv/bin/pytest -m "not engine" $(LANES) $(ARGS)

test-clusters: venv programs-release ## test campaigns on a real Kubernetes and Slurm alone
	@.venv/bin/pytest -m engine tests/fleet $(ARGS)

e2e: venv ## test the stack in containers; unpacks a Docker Engine where there is none
	@scripts/docker-engine.sh start
	@HOSTBENCH_DOCKER=required .venv/bin/pytest tests/e2e/test_stack.py tests/e2e/test_image.py $(ARGS)

fuzz: packages build/fuzz/net-control ## try broken control messages on a network test: FUZZ_SECONDS=600
	@for target in messages door far_end near_end grant; do \
	    mkdir -p build/fuzz/corpus/$$target && (cd build/fuzz && \
	    FUZZ_TARGET=$$target ./net-control -max_total_time=$$(($(FUZZ_SECONDS) / 5)) \
	        -max_len=4096 -timeout=5 -print_final_stats=1 corpus/$$target \
	        ../../services/net/fuzz/seeds/$$target) || exit 1; \
	done

# The long forms of tests that `make test-all` has for a minute.
SOAK_JOBS  ?= 5000
CHAOS_S    ?= 1200
API_FUZZ_S ?= 600

soak: venv programs-release ## run many jobs through a stack and watch its memory: SOAK_JOBS=5000
	@HOSTBENCH_SOAK_JOBS=$(SOAK_JOBS) .venv/bin/pytest -s tests/faults/test_stack_soak.py

chaos: venv programs-release ## break a stack at random for 20 minutes: CHAOS_S=1200
	@HOSTBENCH_CHAOS_S=$(CHAOS_S) .venv/bin/pytest -s tests/faults/test_stack_contention.py

fuzz-api: venv programs-release ## send broken bodies to an orchestrator for 10 minutes: API_FUZZ_S=600
	@HOSTBENCH_API_FUZZ_S=$(API_FUZZ_S) .venv/bin/pytest -s tests/faults/test_fuzzed_bodies.py

# Words that hide who acts: not in the pages for readers, not in code, nor as a part of its names.
UNPLAIN       := told|said|asked|whoever|nobody|of which|that which|lest|met
UNPLAIN_NAMES := \b(\w*_)?([Tt]old|[Ss]aid|[Aa]sked|[Ww]hoever|[Nn]obody|[Ss]ettled|[Ii]nsist)(_|[A-Z]|\b)
PAGES         := $(wildcard *.md docs/*.md services/*/*.md services/*/*/*.md benchmarks/*.md baselines/*.md)
PAGES         := $(filter-out CHANGELOG.md,$(PAGES))

lint: venv programs-release programs-clang programs-aarch64 ## check formats, types, layers and warnings
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/python scripts/c_layers.py
	.venv/bin/lint-imports --no-cache
	@.venv/bin/check-jsonschema --builtin-schema vendor.github-workflows $(wildcard .github/workflows/*.yml)
	@.venv/bin/check-jsonschema --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml, \
	    $(wildcard .github/ISSUE_TEMPLATE/*.yml))
	@.venv/bin/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	@if grep -nwiE '$(UNPLAIN)' $(PAGES) $$(git ls-files '*.py' '*.j2' '*.[ch]' '*.js' '*.lua' '*.sh') || \
	    grep -nE '$(UNPLAIN_NAMES)' $$(git ls-files '*.py' '*.[ch]'); then \
	    echo "Not in plain words: name who acts, then the verb."; exit 1; fi
	@echo "clang-format and shellcheck"
	@.venv/bin/clang-format --dry-run --Werror $(C_FILES)
	@shellcheck --external-sources $(SHELL_FILES)

format: venv ## lay out the code as `make lint` wants it
	.venv/bin/ruff check --fix --exit-zero
	.venv/bin/ruff format
	@.venv/bin/clang-format -i $(C_FILES)

docs: venv programs ## regenerate the generated pages of docs/, the promises of the APIs and the boards, make the site in build/site
	.venv/bin/python -m hostbench.cli.reference
	.venv/bin/python -m hostbench.docs
	.venv/bin/python -m grafana.generate
	.venv/bin/python scripts/api_summary.py
	.venv/bin/python -m sphinx $(SITE_OPTIONS) -d build/site-trees . build/site
	@echo "open build/site/index.html"

lock: venv ## write requirements/*.txt from *.in: UPGRADE=1 takes the newest versions
	scripts/lock.sh

clean: ## remove what was built; results and .venv stay
	scripts/docker-engine.sh stop
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache *.egg-info

distclean: clean ## remove .venv too
	rm -rf .venv

C_FILES     := $(wildcard harness/*.[ch] harness/tests/*.[ch] services/*/bench/*.[ch] \
                 services/*/fuzz/*.[ch] services/*/kernels/emulation.[ch] services/*/tests/*.c \
                 services/*/tests/*/*.[ch] tests/*/bench/*.c \
                 benchmarks/*/*.c)
SHELL_FILES := .ci/run $(wildcard scripts/*.sh compose/*/*.sh services/*/image.sh \
                 tests/e2e/images/*/*.sh docs/*/*.sh \
                 benchmarks/*/*.sh)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: help collected builds run install wheel peers env farhost key up down sbom images chart backup restore \
    program programs harness $(BUILDS:%=programs-%) $(BUILDS:%=c-tests-%) test \
    test-all test-lanes test-clusters e2e soak chaos fuzz fuzz-api lint format docs lock clean distclean packages venv
