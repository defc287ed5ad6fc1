# make demo      a scripted agent, its turns and their scores, then /metrics until Ctrl-C   (make demo ARGS=--once exits, as without a terminal)
# make test      the tests that take at most 5 seconds, with Debian's servers: ten minutes on a fresh machine   (make test ARGS="-k config")
# make test-all  all tests with all servers, some of which are built first                  (make test-all ARGS="tests/servers")
# make nightly   all tests, with 400 drawn examples of each property instead of 25
# make servers   the servers that tests run against, into a cache of this user               (make servers ARGS=redis)
# make otelcol   the OpenTelemetry Collector of collector_config/builder.yaml, into that cache
# make coverage  what the last `make test-all COVER=yes` ran of the package, held against pyproject.toml
# make wheel     the built package with the lowest versions that it declares: core tests in a clean environment
# make lint      ruff (rules and format), spelling, prose and mypy                           (make lint ARGS="--show 20" lists flagged sentences)
# make house     the structure of the package: lines and budget of each room, import circles, complex functions, repeated names, frames of the
#                busiest walks   (make house ARGS=--show)
# make unseen    what each dialect is worth: the facts that are lost without it                       (make unseen ARGS="--without mlflow")
# make bench     what collecting and scoring costs                                           (make bench AGAINST=../other-checkout ARGS=--check PEERS=yes)
# make hosts     one agent under every kind of host program, on every Python here, with the oldest and the newest SDK
# make pictures   take the pictures of the documentation: web page, report and dashboards (needs `make servers`, five minutes)
# make quickstarts  every page of docs/get-started/integrations as its reader would go through it, with the real frameworks   (make quickstarts ARGS="langgraph django")
# make docs      the documentation as a site, into build/site: strictly, with search, versions and a metric catalogue with filters
# make format    rewrite the sources as ruff formats them
# make pin       lock requirements/*.txt for every supported Python                          (make pin ARGS=--upgrade; make pin ARGS=--check installs and writes nothing)
# make tools     all that the other targets install, and nothing else
#
# Needs make and Python 3.10 or newer with venv; everything else goes into .venv. A second run installs nothing.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all nightly coverage wheel servers otelcol lint house unseen bench hosts quickstarts pictures docs format pin tools

# The processes of tests and benchmarks would each compile every module.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.installed-core
DEV := $(VENV)/.installed-dev
DOCS := $(VENV)/.installed-docs
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# uv takes a seventh of pip's time. It doesn't read pip's configuration, so pip tries what uv can't get.
INSTALL = install() { $(BIN)/uv pip install --quiet --python $(BIN)/python "$$@" 2>/dev/null || { echo "==> uv failed, so pip installs the packages"; $(PIP) install "$$@"; }; }; install
ARGS ?=

# The first that runs, is new enough and can make a virtual environment; PYTHON=… chooses another.
CANDIDATES := python3.11 python3.12 python3.13 python3.10 python3 python
CHECK := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))
PYTHON ?= $(firstword $(foreach candidate,$(CANDIDATES),$(shell $(candidate) -c '$(CHECK)' >/dev/null 2>&1 && echo $(candidate))))

help:
	@sed -n 's/^# \{0,1\}//; /^make /p' Makefile

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "No Python 3.10 or newer with the venv module was found; name one: make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "==> making $(VENV) with $$($(PYTHON) -V)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --constraint requirements/dev.txt uv

$(CORE): pyproject.toml requirements/dev.txt | $(BIN)/python
	@echo "==> installing otel-agenteval, pinned (requirements/dev.txt)"
	@$(INSTALL) --constraint requirements/dev.txt --editable '.[structured,text]'
	@touch $@

$(DEV): $(CORE)
	@echo "==> installing what the tests need, pinned (requirements/dev.txt)"
	@$(INSTALL) --constraint requirements/dev.txt --editable '.[all,dev]'
	@touch $@

$(DOCS): requirements/docs.txt $(CORE)
	@echo "==> installing what builds the documentation, pinned (requirements/docs.txt)"
	@$(INSTALL) --requirement requirements/docs.txt
	@touch $@

tools: $(DEV) $(DOCS)

demo: $(CORE)
	@echo "==> running a scripted agent; no network, no key"
	@$(BIN)/otel-agenteval demo $(ARGS)

# A server that can't be had is skipped by its tests, which list it with the reason. Under AGENTEVAL_REQUIRE_SERVERS=1 it fails them.
# More processes than cores: while one waits for a server, another computes.
PYTEST = $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal $(COVERING)
WORKERS ?= 3

# The servers come while the first tests run; a test that needs one waits for it.
test: $(DEV)
	@echo "==> running the tests that aren't slow, while the servers for them are fetched (make test-all runs all)"
	@$(BIN)/python scripts/get_servers.py --packaged & $(PYTEST) -m "not slow" $(ARGS); status=$$?; wait; exit $$status

test-all: $(DEV) $(DOCS)
	@echo "==> fetching and building the servers that tests run against (ten minutes the first time)"
	@$(BIN)/python scripts/get_servers.py || test "$${AGENTEVAL_REQUIRE_SERVERS:-0}" != 1
	@echo "==> running all tests"
	@$(PYTEST) $(ARGS)

nightly:
	@AGENTEVAL_TEST_EXAMPLES=400 $(MAKE) test-all

# Only a run of all tests says something about coverage, so none is measured unless COVER asks for it.
COVER ?=
COVERING = $(if $(COVER),--cov --cov-report= --cov-fail-under 0 $(if $(filter append,$(COVER)),--cov-append))

coverage: $(DEV)
	@echo "==> coverage of lines and branches, by the last 'make test-all COVER=yes'"
	@$(BIN)/python -m coverage report --skip-covered --sort=cover $(ARGS)

wheel: $(DEV)
	@$(BIN)/python scripts/test_wheel.py $(ARGS)

servers: | $(BIN)/python
	@$(BIN)/python scripts/get_servers.py $(ARGS)

otelcol: | $(BIN)/python
	@$(BIN)/python scripts/get_servers.py otelcol

lint: $(DEV)
	@echo "==> ruff: rules"
	@$(BIN)/ruff check .
	@echo "==> ruff: format"
	@$(BIN)/ruff format --check --quiet . || { echo "Not formatted; 'make format' does it:"; $(BIN)/ruff format --check . ; exit 1; }
	@echo "==> spelling"
	@$(BIN)/codespell
	@echo "==> prose"
	@$(BIN)/python scripts/prose.py $(ARGS)
	@echo "==> structure"
	@$(BIN)/python scripts/house.py
	@echo "==> mypy"
	@$(BIN)/mypy

house: $(DEV)
	@$(BIN)/python scripts/house.py $(ARGS)
	@$(BIN)/python scripts/walks.py

unseen: $(DEV)
	@echo "==> leaving out one dialect after the other, then all (a minute or two)"
	@$(BIN)/python scripts/unseen.py $(ARGS)

# Each measures one path and says whether its bounds hold; those that compare run the package of another checkout in turn with this one.
COMPARING := paced serving startup receiving bench judges files metric_times
MEASURING := growth redaction
AGAINST ?=
PEERS ?=

bench: $(DEV)
	@echo "==> measuring what collecting and scoring costs (some ten minutes; quiet machines measure best)"
	@status=0; \
	for one in $(COMPARING); do \
		echo "==> benchmarks/$$one.py"; \
		$(BIN)/python benchmarks/$$one.py $(if $(AGAINST),--against $(AGAINST)) $(ARGS) || status=1; \
	done; \
	for one in $(MEASURING) $(if $(PEERS),peers); do echo "==> benchmarks/$$one.py"; $(BIN)/python benchmarks/$$one.py $(ARGS) || status=1; done; \
	exit $$status

hosts: $(DEV)
	@echo "==> one agent under every kind of host program, on every Python that is found (some twenty minutes; it needs the network)"
	@$(BIN)/python scripts/hosts.py --write $(ARGS)

quickstarts: $(DEV)
	@echo "==> running the quick starts, each with its framework in an environment of its own (some twenty minutes the first time; it needs the network)"
	@$(BIN)/python scripts/quickstarts.py $(ARGS)

pictures: $(DEV)
	@echo "==> taking the pictures of the web page and the report"
	@$(BIN)/python scripts/page_pictures.py
	@echo "==> drawing the dashboards (four minutes)"
	@$(BIN)/python scripts/panel_pictures.py

docs: $(DOCS)
	@echo "==> building the documentation as a site"
	@$(BIN)/python scripts/docs_site.py $(ARGS)

format: $(DEV)
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

# Without $(DEV): it repairs a lock that can't be installed.
pin: | $(BIN)/python
	@$(BIN)/python requirements/pin.py $(ARGS)
