# The whole course. Every target sets up its own environment, in .venv, the first time.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test quick packages tidy fresh book pdf slides exercises bench clean

# Asked once, when an environment is made: one compiled without profiles takes 1.4 times as long.
PYTHON ?= $(eval PYTHON := $(or $(shell python3 -I tools/fastest_python.py),python3))$(PYTHON)
BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
# What the shell says of Python, pip and pytest was meant for other projects, but for where packages
# come from. (So what hundreds of short processes import is compiled once, too.)
SOURCES := PYTHON PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_FIND_LINKS PIP_NO_INDEX PIP_TRUSTED_HOST \
  PIP_CERT PIP_CLIENT_CERT PIP_PROXY PIP_KEYRING_PROVIDER PIP_CONFIG_FILE PIP_CACHE_DIR \
  PIP_NO_CACHE_DIR PIP_RETRIES PIP_TIMEOUT PIP_DEFAULT_TIMEOUT
FOREIGN := $(filter PYTHON% PIP_% PYTEST_% BASH_ENV CDPATH GREP_OPTIONS,$(.VARIABLES))
$(foreach name,$(filter-out $(SOURCES),$(FOREIGN)),\
  $(if $(filter environment,$(origin $(name))),$(eval unexport $(name))))

# MODEL=no leaves out the language model of Part V (93 MB, fetched once): what is kept of
# it is shown then. It is fetched while pages run that do without.
MODEL ?= yes
ifeq ($(MODEL),no)
export ATTNCOURSE_MODEL := no
endif
with-model = { if test "$(MODEL)" != no; then $(BIN)/attncourse model 2>&1 || true; fi; } \
  > .venv/model.log & $(1) || { status=$$?; wait; exit $$status; }; \
  ! kill -0 $$! 2> /dev/null || echo "Waiting for the language model (MODEL=no leaves it out) …"; \
  wait; cat .venv/model.log

# $(call beside,one command,its log,another): both at once. What the first says comes at the end,
# without what it said of the time left. Where the other fails, the first is ended.
beside = ( trap 'kill $$!' TERM; $(1) & wait $$! ) > $(2) 2>&1 & one=$$!; ( $(3) ) || \
  { status=$$?; kill $$one 2> /dev/null || true; wait; exit $$status; }; \
  wait $$one || { status=$$?; cat $(2) >&2; exit $$status; }; sed '/ left)*$$/d' $(2)

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' Makefile | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 18

# An environment that is another folder's, another Python's or of other requirements is none.
ifneq ($(shell $(BIN)/python -I tools/environment.py --check 2> /dev/null && echo whole),whole)
.PHONY: .venv/.stamp
endif
.venv/.stamp:
	@$(PYTHON) -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "This needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1 || true)." >&2; \
	  echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 2; }
	@$(PYTHON) -I tools/environment.py

demo: .venv/.stamp ## build the book and the exercises, grade a sample class
	@echo "1 of 3: the exercises, and what the book's pages run"
	@$(call beside,$(BIN)/python tools/exercises.py,.venv/exercises.log,\
	  $(call with-model,$(BIN)/python tools/book.py --run))
	@echo "2 of 3: the book's pages, laid out (on the other core 3 has begun)"
	@$(call beside,echo "3 of 3: grades of a sample class"; $(BIN)/attncourse demo,.venv/demo.log,\
	  $(BIN)/python tools/book.py)
	@echo "Read the book: $$PWD/_build/html/index.html"

packages: # what the tests use of the system; what cannot be installed, its tests say so and skip
	@want=; \
	ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || command -v initdb > /dev/null || want=postgresql; \
	for name in chromium-headless-shell chromium chromium-browser; do \
	  command -v $$name > /dev/null && break; done || want="$$want chromium"; \
	test -z "$$want" && exit 0; \
	as=; test "$$(id -u)" = 0 || as="sudo -n"; \
	get() { $$as env DEBIAN_FRONTEND=noninteractive \
	  apt-get install -y --no-install-recommends "$$@" > /dev/null 2>&1; }; \
	command -v apt-get > /dev/null && $$as true && $$as apt-get update > /dev/null 2>&1 || true; \
	for name in $$want; do echo "Installing $$name …"; \
	  { test $$name = chromium && get chromium-headless-shell; } || get $$name || \
	  echo "$$name could not be installed: its tests will be skipped."; done

test: ## everything that must hold: style, contracts, generated files, tests
	@$(MAKE) --no-print-directory --jobs=2 packages tidy
	@$(MAKE) --no-print-directory --jobs=2 fresh book
	@# A run does not depend on luck (tests/helpers/seeding.py), nor does the order of a set of words.
	@PYTHONHASHSEED=0 $(BIN)/python -m pytest -n 3 --dist loadscope --no-loadscope-reorder

quick: tidy ## style, contracts and the tests near what changed, in under three minutes
	@$(BIN)/python tools/quick.py

tidy: .venv/.stamp # style and contracts
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo "run .venv/bin/ruff format" >&2; exit 1; }
	@$(BIN)/codespell
	@$(BIN)/pyrefly check --min-severity error > .venv/types.txt 2>&1 || { cat .venv/types.txt >&2; exit 1; }
	@$(BIN)/lint-imports --no-cache > .venv/contracts.txt || { cat .venv/contracts.txt >&2; exit 1; }

fresh: .venv/.stamp # generated files; and the tests are compiled once for all processes that run them
	@$(BIN)/python tools/exercises.py --check
	@$(BIN)/python -m pytest --collect-only > .venv/tests.txt || { tail -n 40 .venv/tests.txt >&2; exit 1; }

book: .venv/.stamp ## build the book into _build/html; only changed pages run again
	@$(call with-model,$(BIN)/python tools/book.py)

pdf: book packages ## print the book as one PDF, _build/book.pdf (with Chromium)
	@$(BIN)/python tools/pdf.py

slides: book ## make a deck of slides for each chapter, _build/html/slides
	@$(BIN)/python tools/slides.py

exercises: .venv/.stamp ## regenerate every notebook and the README's table from their sources
	@$(BIN)/python tools/exercises.py

bench: .venv/.stamp ## run every script in benchmarks/
	@shopt -s nullglob; scripts=(benchmarks/*.py); \
	test $${#scripts[@]} -gt 0 || { echo "benchmarks/ holds no script yet"; exit 0; }; \
	for script in "$${scripts[@]}"; do echo "== $$script"; $(BIN)/python "$$script"; done

clean: ## remove what was built (the environment in .venv stays)
	@rm -rf _build build dist .pytest_cache .hypothesis .ruff_cache .import_linter_cache .grimp_cache
	@find attncourse tools tests -name __pycache__ -type d -prune -exec rm -rf {} +
