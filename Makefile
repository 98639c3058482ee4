# make demo [NOTES=FOLDER] [QUESTION="…"]   sets up and shows what notewarden does, with your notes if you like
# make test      sets up and tests       make check   also format, lint, types and imports
# make prove     the long random tests   make bench   the measurements of the README
# make lock      pins all packages anew (needs uv)
# make install   as services of this machine, needs root (docs/admin-guide.md); make uninstall leaves the data
# PYTHON=python3.12 chooses the interpreter. But for install nothing leaves .venv and nothing needs root.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

VENV := .venv
BIN := $(VENV)/bin
KEY := $(shell cat requirements.lock pyproject.toml | sha256sum | cut -c1-16)
DEV_KEY := $(shell cat requirements.lock requirements-dev.lock pyproject.toml | sha256sum | cut -c1-16)
READY := $(VENV)/.ready-$(KEY)
DEV_READY := $(VENV)/.ready-dev-$(DEV_KEY)
UV ?= $(or $(wildcard $(BIN)/uv),uv)
CODE := notewarden acl db indexer answerer tests examples bench

# Free text reaches the recipe through the environment, so that no quote or dollar in it means anything.
export NOTEWARDEN_DEMO_NOTES = $(value NOTES)
export NOTEWARDEN_DEMO_QUESTION = $(value QUESTION)

PYTHON ?=

.PHONY: help demo test check prove bench lock install uninstall install-venv install-dev

help:
	@sed -n 's/^# //p' Makefile | head -6

demo: install-venv
	@$(BIN)/python examples/demo.py \
	  $${NOTEWARDEN_DEMO_NOTES:+--notes "$$NOTEWARDEN_DEMO_NOTES"} \
	  $${NOTEWARDEN_DEMO_QUESTION:+--question "$$NOTEWARDEN_DEMO_QUESTION"}

test: install-dev
	@$(BIN)/python -m pytest -n 2 -m "not prove"

check: install-dev
	@$(BIN)/ruff format --check $(CODE)
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest -n 2 -m "not prove"

prove: install-dev
	@HYPOTHESIS_PROFILE=prove $(BIN)/python -m pytest -m prove --hypothesis-show-statistics

bench: install-dev
	@$(BIN)/python -m bench

# The files that stand for "set up with exactly these packages" carry the hash of what decides them.
install-venv: | $(READY)
install-dev: | $(DEV_READY)

$(READY):
	@PYTHON="$(PYTHON)" bash deploy/make-venv.sh $(VENV) requirements.lock
	@rm -f $(VENV)/.ready-* && touch $@

$(DEV_READY):
	@PYTHON="$(PYTHON)" bash deploy/make-venv.sh $(VENV) requirements-dev.lock
	@rm -f $(VENV)/.ready-* && touch $@ $(READY)

# As services of this machine, below PREFIX (/opt/notewarden); uninstall leaves configuration and data.
install:
	@PYTHON="$(PYTHON)" bash deploy/install.sh install

uninstall:
	@bash deploy/install.sh uninstall

lock:
	@command -v $(UV) >/dev/null || { echo "make lock needs uv: $(BIN)/python -m pip install uv" >&2; exit 2; }
	$(UV) pip compile -q --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
	  pyproject.toml --group build -o requirements.lock
	$(UV) pip compile -q --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
	  pyproject.toml --group build --group dev -c requirements.lock -o requirements-dev.lock
