# Targets for people; `make help` lists them. Tools are installed once into .tools by `make setup`.

MAKEFLAGS += --no-print-directory
SHELL := /bin/bash
.DEFAULT_GOAL := help

TOOLS := $(CURDIR)/.tools
export VERILATOR_ROOT := $(TOOLS)/verilator
export PATH := $(TOOLS)/verilator/bin:$(TOOLS)/venv/bin:$(PATH)

help: ## Say what can be made.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install the pinned tools into .tools (at once when they are there).
	@verify/tools/setup.sh $(TOOLS)

build: ## Build bin/hwgen and bin/tributary; needs Go alone.
	go build -o bin/ ./hwgen ./driver/cmd/tributary

env: ## Print what puts the tools into a shell: eval "$(make env)".
	@printf 'export VERILATOR_ROOT=%q PATH=%q:%q:"$$PATH"\n' \
	  "$(VERILATOR_ROOT)" "$(TOOLS)/verilator/bin" "$(TOOLS)/venv/bin"

cocotb: setup build ## Run the cocotb benches.
	python -m pytest -n 2 cocotb

clean: ## Remove what was built; the tools stay.
	rm -rf bin build

.PHONY: help setup build env cocotb clean
