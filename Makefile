# `make` alone lists the targets; each target does its own set-up first.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help up demo test must-beat compat lint format bench bench-console bench-peers bench-lake wheel release manifests site profile screenshots crash sim soak trace-truth lock vendor clean

PY := .venv/bin/python
READY := .venv/.ready
ARGS ?=
# Three workers fit a two-core machine, since many tests wait; WORKERS=0 runs in one process, for a debugger.
WORKERS ?= 3
PYTEST := $(PY) -m pytest -n $(WORKERS)

help: ## list the targets
	@echo 'make TARGET [ARGS="…"]'
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 16

up: $(READY) ## start everything: name server, broker, console, jobs (ARGS="--help" lists the options)
	@exec $(PY) manage.py up $(ARGS)

demo: $(READY) ## up with sample producers and consumers; one consumer group fails
	@exec $(PY) manage.py demo $(ARGS)

test: $(READY) ## all tests: unit, wire, sim, crash, api, spark, browser, compat (ARGS="-k word")
	@tools/setup.sh browser
	@tools/setup.sh gettext
	@tools/setup.sh clients
	@tools/setup.sh charts
	$(PYTEST) $(ARGS)

must-beat: $(READY) ## tests of the console's must-beat requirements: number, title, pass or fail
	@tools/setup.sh browser
	@tools/setup.sh clients
	$(PYTEST) -q --must-beat -m must_beat tests/api tests/browser tests/compat tests/up tests/unit/console $(ARGS)

compat: $(READY) ## only the tests with foreign RocketMQ clients
	@tools/setup.sh clients
	$(PYTEST) tests/compat $(ARGS)

crash: $(READY) ## kill the broker RUNS times under load, fill its disk, and check the store
	$(PYTEST) tests/crash $(ARGS)

sim: $(READY) ## SEEDS seeded schedules of writes, power cuts and faults on a simulated disk
	$(PYTEST) tests/sim $(ARGS)

soak: $(READY) ## the long crash, simulation, fault and image runs, and the console for HOURS; hours (sizes: HOURS, RUNS, SEEDS, RAFT_SEEDS, RAFT_ROUNDS, DLEDGER_SEEDS, FAILOVERS, ORDERED_MESSAGES, ORDERED_FAILOVERS, PARTITIONS, SLAVE_ROUNDS, COPIED_MESSAGES, JAVA_FAILOVERS, CALLS, CUT_STRIDE, CALL_STRIDE, FRAMES, ATTACKS, CONNECTIONS, STUCK_PEERS)
	RUNS=$(or $(RUNS),1000) SEEDS=$(or $(SEEDS),100000) RAFT_SEEDS=$(or $(RAFT_SEEDS),10000) RAFT_ROUNDS=$(or $(RAFT_ROUNDS),200) FAILOVERS=$(or $(FAILOVERS),100) ORDERED_MESSAGES=$(or $(ORDERED_MESSAGES),1000000) ORDERED_FAILOVERS=$(or $(ORDERED_FAILOVERS),10) \
	DLEDGER_SEEDS=$(or $(DLEDGER_SEEDS),10000) PARTITIONS=$(or $(PARTITIONS),60) SLAVE_ROUNDS=$(or $(SLAVE_ROUNDS),50) CALLS=$(or $(CALLS),20000) \
	CUT_STRIDE=$(or $(CUT_STRIDE),1) CALL_STRIDE=$(or $(CALL_STRIDE),1) FRAMES=$(or $(FRAMES),10000) ATTACKS=$(or $(ATTACKS),250) \
	CONNECTIONS=$(or $(CONNECTIONS),18000) STUCK_PEERS=$(or $(STUCK_PEERS),200) $(PYTEST) tests/crash tests/sim --timeout=0 $(ARGS)
	UPGRADE_CHECKS=all $(PYTEST) tests/up/test_console_upgrade.py --timeout=0 $(ARGS)
	@tools/setup.sh clients
	COPIED_MESSAGES=$(or $(COPIED_MESSAGES),50000) JAVA_FAILOVERS=$(or $(JAVA_FAILOVERS),20) \
	$(PYTEST) tests/compat -k "slave_of_java or java_slave or replica_set" --timeout=0 $(ARGS)
	IMAGE_CHECKS=all $(PYTEST) tests/up/test_image.py --timeout=0
	$(PY) -m benchmarks.soak --hours $(or $(HOURS),24)

lint: $(READY) ## style, types, layers and house rules
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports
	$(PY) -m pytest tests/test_tidy.py tests/test_documents.py -q -p no:randomly

format: $(READY) ## format the source
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench-console: $(READY) ## measure the console with 5,000 topics, groups and ACL users, a million messages and 30 days of history
	$(PY) -m benchmarks.console $(ARGS)

trace-truth: $(READY) ## check the trace jobs against 5 million known records (ARGS="--records 500000")
	$(PY) -m benchmarks.trace_truth $(ARGS)

bench: $(READY) ## measure the broker and write bench.json
	$(PY) -m benchmarks $(ARGS)

bench-lake: $(READY) ## measure the analytics pages over a lake of 100 million events
	$(PY) -m benchmarks.lake $(ARGS)

bench-peers: $(READY) ## measure Gantry beside its peers, an hour; writes docs/performance.md
	$(PY) -m benchmarks.peers $(ARGS)

profile: $(READY) ## profile the broker under a load (SCENARIO=send-64x1)
	$(PY) -m benchmarks.profile $(or $(SCENARIO),send-64x1) $(ARGS)

wheel: $(READY) ## build dist/*.whl with the compiled kernel (manylinux), and the source distribution (ARGS=all: a wheel for each Python)
	@tools/wheel.sh $(ARGS)

release: $(READY) ## build and check everything of a release in dist/: wheels, source, chart, bill of materials; publishes nothing
	@tools/release.sh

site: $(READY) ## build the documentation site into build/site; the console serves it below /docs/
	@rm -rf build/site
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet --strict
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet --strict -f mkdocs.zh.yml

manifests: $(READY) ## render deploy/kubernetes from the Helm chart
	@tools/setup.sh charts
	build/charts/bin/python tools/charts.py --write >/dev/null

screenshots: $(READY) ## the console's main pages in both themes, for docs/images (ARGS="--review FOLDER" for a review)
	@tools/setup.sh browser
	$(PY) -m tools.screenshots $(ARGS)

lock: $(READY) ## resolve pyproject.toml into requirements.lock
	.venv/bin/uv pip compile pyproject.toml --all-extras --python-version 3.11 --no-emit-index-url --generate-hashes -o requirements.lock
	.venv/bin/uv pip compile -q deploy/chart/checks.in --python-version 3.11 --no-emit-index-url --generate-hashes --custom-compile-command "make lock" -o deploy/chart/checks.lock
	.venv/bin/uv pip compile -q deploy/chart/policies.in --python-version 3.11 --no-emit-index-url --generate-hashes --custom-compile-command "make lock" -o deploy/chart/policies.lock

vendor: $(READY) ## fetch static/vendor from npm again (ARGS="--accept" takes new versions)
	$(PY) tools/vendor.py $(ARGS)
	$(PY) tools/notices.py

clean: ## remove caches and build output; the virtual environment and ./var stay
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist *.egg-info bench.json
	find . -path ./.venv -prune -o -path ./var -prune -o -name __pycache__ -type d -print0 | xargs -0 rm -rf

$(READY): requirements.lock tools/setup.sh setup.py $(wildcard core_broker/kernel/*.p* core_broker/remoting/connection_state.py core_broker/store/queue_tail.py trace/scan.p* trace/attempts.py trace/facts.py)
	@tools/setup.sh venv
