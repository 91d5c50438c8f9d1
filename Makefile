# slipway: `make up` starts it with an example, `make test` proves it. Every target installs what it needs.
SHELL := /bin/bash
export CGO_ENABLED := 0
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
DATA_DIR ?= $(HOME)/.slipway
TOOLS := $(CURDIR)/.tools
GOLANGCI_LINT_VERSION := v2.14.0

.PHONY: test-kills otelcol test-otelcol bench-collector build up down check test test-githost test-workers test-go lint fmt bench proof-telemetry clean

build: ## bin/slipway, one static binary
	go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/slipway ./cmd/slipway

up: build ## build, start on the embedded default, deploy the example, print how to talk to it
	bin/slipway up --data-dir "$(DATA_DIR)" --detach

down: ## stop what `make up` started
	bin/slipway down --data-dir "$(DATA_DIR)"

check: ## the quick tier: vet and the packages that start no foreign process
	go vet ./...
	go test -short . ./agent/... ./graphconfig/... ./plan/... ./control/... ./api/... ./client/... ./cli/... ./engine/... ./store/... ./gateway/... ./listener/...

test: test-go test-workers ## what CI runs

test-go: build
	go test -timeout 20m ./...
	SLIPWAY_TEST_DATABASE=postgres go test -timeout 10m ./engine

test-kills: ## agent servers killed under load a hundred times, on SQLite and on Postgres
	SLIPWAY_ROBUST_KILLS=100 go test -timeout 60m -count=1 -v -run ServersAreKilled ./robust

# A real Gitea, built once from its Go module (about ten minutes) into the user's cache.
GITEA_VERSION := v1.26.0
GITEA_HOME := $(HOME)/.cache/slipway-test/gitea

test-githost: $(GITEA_HOME)/gitea ## the suite of git hosts against a real Gitea
	GITEA="$(GITEA_HOME)/gitea" GITEA_STATIC="$(GITEA_HOME)/src" go test -count=1 -timeout 10m -tags realgitea -run RealGitea ./githost ./source/git

$(GITEA_HOME)/gitea:
	mkdir -p $(GITEA_HOME)
	dir=$$(go mod download -json code.gitea.io/gitea@$(GITEA_VERSION) | sed -n 's/.*"Dir": "\(.*\)",/\1/p') && rm -rf $(GITEA_HOME)/src && cp -r "$$dir" $(GITEA_HOME)/src && chmod -R u+w $(GITEA_HOME)/src
	cd $(GITEA_HOME)/src && CGO_ENABLED=1 go build -tags 'sqlite sqlite_unlock_notify' -o $@ .

test-layouts: ## every application layout, also those that need minutes where nothing is cached
	go test -tags layouts -timeout 30m -v ./e2e/layouts

test-workers: .tools/python/.ready workers/node/node_modules/.ready
	cd workers/node && npm test
	cd workers/python && $(TOOLS)/python/bin/python -m pytest -q

workers/node/node_modules/.ready: workers/node/package-lock.json
	cd workers/node && npm ci --no-audit --no-fund
	touch $@

.tools/python/.ready: workers/python/requirements-dev.txt
	rm -rf $(TOOLS)/python
	python3 -m venv $(TOOLS)/python
	$(TOOLS)/python/bin/python -m pip install -q -r workers/python/requirements-dev.txt
	touch $@

lint: $(TOOLS)/golangci-lint .tools/python/.ready workers/node/node_modules/.ready
	$(TOOLS)/golangci-lint run ./...
	$(TOOLS)/python/bin/python -m ruff check workers/python
	cd workers/node && npm run check

$(TOOLS)/golangci-lint:
	GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

fmt:
	gofmt -w $$(git ls-files '*.go')

proof-telemetry: ## the full proof of telemetry: 10 000 transactions, both ends killed, none lost, none counted twice
	SLIPWAY_PROOF_TRANSACTIONS=10000 go test -timeout 60m ./e2e -run TestTelemetryLosesNothing -count=1 -v

bench: build ## every figure of bench/, one table and one JSON line each
	bench/run

OTELCOL ?= $(HOME)/.cache/slipway-test/otelcol/build/otelcol
otelcol: $(OTELCOL) ## an OpenTelemetry Collector, for what is measured and tested beside it

$(OTELCOL): bench/otelcol/builder.yaml
	mkdir -p $(dir $@)
	sed 's#^dist:#dist:\n  output_path: $(patsubst %/,%,$(dir $@))#' $< > $(dir $@)builder.yaml
	cd $(dir $@) && nice go run go.opentelemetry.io/collector/cmd/builder@v0.160.0 --config builder.yaml

test-otelcol: otelcol ## an OpenTelemetry Collector as client and as backend of ours
	OTELCOL=$(OTELCOL) go test -tags otelcol -run OpenTelemetry ./e2e/collector

bench-collector: build otelcol
	go run ./bench/collector -otelcol $(OTELCOL)

clean:
	rm -rf bin .tools workers/node/node_modules
