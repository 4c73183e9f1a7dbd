SHELL := /bin/bash
.DEFAULT_GOAL := help

GO ?= go
LINT_VERSION := v2.15.0
# Compiling the linter takes minutes, so it is kept outside the repository and
# compiled once for each version.
LINT_DIR := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/onereply/golangci-lint-$(LINT_VERSION)
LINT := $(LINT_DIR)/golangci-lint

.PHONY: help run build test race check lint vet fmt bench mutants

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-9s %s\n", $$1, $$2}'

run: ## run the service from source
	$(GO) run ./cmd/onereply

build: ## build bin/onereply, stripped
	$(GO) build -trimpath -ldflags='-s -w' -o bin/onereply ./cmd/onereply

test: ## run all tests; nothing but Go is needed
	$(GO) test ./...

race: ## run all tests under the race detector
	$(GO) test -race ./...

check: fmt vet lint test ## what must pass before a commit

fmt: ## fail when gofmt would change a file
	@files="$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go'))"; \
	if [ -n "$$files" ]; then printf 'gofmt would change:\n%s\n' "$$files"; exit 1; fi

vet: ## run go vet
	$(GO) vet ./...

lint: $(LINT) ## run golangci-lint
	$(LINT) run

$(LINT):
	GOBIN=$(LINT_DIR) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

bench: ## measure this machine; BENCH='…' passes flags, BENCH=-help lists them
	cd bench && $(GO) run . $(BENCH)

mutants: ## take each guard out in turn; MUTANTS='-run REGEXP' some, MUTANTS=-list their names
	$(GO) run ./scripts/mutants $(MUTANTS)
