# Few commands, the same for people and for CI. `make` alone lists them.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# one more than there are processors: tests wait for processes that they started
JOBS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
NODE := tests/interop
NODE_READY := $(NODE)/node_modules/.ready
WEB := web
WEB_READY := $(WEB)/node_modules/.ready
SDK := agent-client-protocol==0.12.1
SDK_READY := $(VENV)/sdk/.ready
LAB ?= $(HOME)/.cache/pilothouse-lab
CLAUDE_READY := $(LAB)/npm/claude-code/installed
AGENTS ?= claude claude-code opencode gemini codex goose

.PHONY: help run test web web-check web-test screenshots soak lab check format generate bench build clean install

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

install: $(READY) ## make the virtual environment with everything in it

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Pilothouse needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $@

# Node programs that tests talk to. Not `npm ci`: it wants packages for other systems, which not every registry has.
# Without npm some of those tests are skipped, and those with editors' clients fail.
$(NODE_READY): $(NODE)/package-lock.json
	@if command -v npm >/dev/null; then cd $(NODE) && npm install --no-save --no-audit --no-fund --loglevel=error && touch node_modules/.ready; \
	else echo "npm not found: tests against the TypeScript SDK will be skipped, those against acpx will fail"; fi

# Claude Code's own program, pinned; without npm the tests against it are skipped.
$(CLAUDE_READY): tests/lab/agents.py | $(READY)
	@if command -v npm >/dev/null; then $(BIN)/python -m tests.lab.agents $(LAB) claude-code && touch $@; \
	else echo "npm not found: tests against Claude Code's own program will be skipped"; fi

# What builds and tests the page. Without npm only the tests that look for accessibility fail; the built page is there.
$(WEB_READY): $(WEB)/package-lock.json
	@if command -v npm >/dev/null; then cd $(WEB) && npm install --no-save --no-audit --no-fund --loglevel=error && touch node_modules/.ready; \
	else echo "npm not found: the page is not built anew, and some of its tests will fail"; fi

# The official SDK's example agents; they are in its source distribution only.
$(SDK_READY): $(READY)
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary agent-client-protocol --dest $(VENV)/sdk $(SDK)
	@touch $@

# In a terminal it asks; without one nobody could answer, and all it touches is a directory of its own.
run: $(READY) ## take the tour: the scripted agent at work in your terminal
	@$(BIN)/pilothouse demo $$(test -t 0 || echo --approve-all) tour
	@printf '%s\n' '' 'Next:' \
		'  $(BIN)/pilothouse            the same in your browser, and on your phone' \
		'  $(BIN)/pilothouse agents     which agents are here, how to get others' \
		'  $(BIN)/pilothouse setup zed  the same in your editor (jetbrains, neovim, emacs)'

test: $(READY) $(NODE_READY) $(WEB_READY) $(SDK_READY) $(CLAUDE_READY) ## run every test that this machine can run, after the checks
	@$(MAKE) --no-print-directory check
	PILOTHOUSE_PROGRAMS=$(LAB) $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile $(ARGS)

web: $(WEB_READY) ## build the page into the package (src/pilothouse/web)
	cd $(WEB) && npm run --silent check && npm run --silent build

web-check: $(WEB_READY) ## the page in the package is what its sources give, and loads fast
	cd $(WEB) && npm run --silent build:check

web-test: $(READY) $(WEB_READY) ## types, build and tests of the page
	cd $(WEB) && npm run --silent check && npm run --silent build:check && npm run --silent test

screenshots: $(READY) ## the pictures of the documentation anew, by Chromium (PILOTHOUSE_CHROMIUM says where) and scripted agents
	$(BIN)/python -m tests.support.pictures

check: $(READY) ## formatting, lint, types, generated code
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/python tools/generate_schema.py --check
	$(BIN)/python tools/generate_reference.py --check
	$(BIN)/python tools/generate_cli.py --check
	$(BIN)/python tools/generate_web_types.py --check

soak: $(READY) ## half an hour: 200 kills of the hub and of the log, a gibibyte of output, 200 restless consumers
	PILOTHOUSE_SOAK=1 $(BIN)/python -m pytest -s $(ARGS) tests/interaction/test_hub_crash.py \
		tests/interaction/test_log_faults.py tests/interaction/test_terminals_load.py \
		tests/interaction/test_terminal_output.py tests/e2e/test_server_soak.py

lab: $(READY) ## real agents (AGENTS="claude codex …") against a scripted model; installs up to 2 GB into LAB
	-$(BIN)/python -m tests.lab.agents $(LAB) $(AGENTS)
	PILOTHOUSE_LAB=$(LAB) PILOTHOUSE_LAB_AGENTS="$(AGENTS)" $(BIN)/python -m pytest -q --tb=short tests/lab $(ARGS)

format: $(READY) ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

generate: $(READY) ## write the schema types, the method tables, the reference pages and the types of the page anew
	$(BIN)/python tools/generate_schema.py
	$(BIN)/python tools/generate_reference.py
	$(BIN)/python tools/generate_cli.py
	$(BIN)/python tools/generate_web_types.py

bench: $(READY) ## compare with the official SDK, with plain JSON, and with what one would write by hand
	$(BIN)/python bench/acp.py
	$(BIN)/python bench/model.py
	$(BIN)/python bench/log.py
	$(BIN)/python bench/hub.py
	$(BIN)/python bench/server.py
	$(BIN)/python bench/editor.py
	$(BIN)/python bench/discovery.py
	$(BIN)/python bench/web.py

build: $(READY) ## build the wheel and the source distribution
	$(BIN)/python -m pip install --quiet build
	$(BIN)/python -m build

clean: ## remove what was built
	rm -rf $(VENV) $(NODE)/node_modules $(WEB)/node_modules dist .mypy_cache .ruff_cache .pytest_cache
