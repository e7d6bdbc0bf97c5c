# dmgbench: `make run` measures and reports, `make test` tests. `make help` lists the rest.
# Written for GNU make 3.81 (the one of macOS) and later.

GO       ?= go
PLAN     ?= quick
FUZZTIME ?= 10s
FUZZFOR  ?= 3600
BENCH    ?= .
COUNT    ?= 9
# No cgo anywhere: one static binary, and the same code on every machine. Only the race detector needs it.
CGO_ENABLED ?= 0
export CGO_ENABLED

# The variables of a run reach the shell through the environment, so that paths may hold blanks and quotes.
export PLAN SETS SCALE ON
# ON is a folder, or places as NAME=DIR with semicolons between them.
RUN = set -f --; IFS=';'; for on in $$ON; do set -- "$$@" --on "$$on"; done; unset IFS; \
	bin/dmgbench run $${SETS:+--sets "$$SETS"} $${SCALE:+--scale "$$SCALE"} "$$@" --

# One target for each built-in plan, by name, so that shells complete them.
REPRODUCE := $(patsubst plans/%.toml,reproduce-%,$(sort $(wildcard plans/*.toml)))

.DEFAULT_GOAL := help
.PHONY: help need-go build run fleet-demo test test-race test-race-short test-long test-interop lint lint-format lint-vet lint-static lint-darwin lint-modules \
	lint-tree lint-workflows fuzz fuzz-hours accuracy bench bench-mounted bench-formats bench-random bench-spans bench-fleet bench-watch bench-cipher bench-go crosscheck assets clean $(REPRODUCE)

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | awk -F ':.*## ' '{ printf "%-13s %s\n", $$1, $$2 }'
	@echo
	@echo 'For run and reproduce-...: SETS=1 fewer sets of the published sizes, SCALE=0.01'
	@echo 'smaller files, ON=/path the folder to measure on, ON="a=/path;b=here" for the'
	@echo 'places that a plan names. PLAN is a name or a path.'
	@echo
	@printf '%s\n' $(REPRODUCE) | paste -d ' ' - - | awk '{ printf "%-36s %s\n", $$1, $$2 }'

# Go 1.21 and later fetch the Go that go.mod asks for; older ones do not understand go.mod.
need-go:
	@command -v $(GO) >/dev/null 2>&1 || { \
		echo "Go is missing: install Go 1.26 or later from https://go.dev/dl/ (macOS: brew install go) and make sure that go is on PATH" >&2; \
		exit 1; }
	@case "$$(GOTOOLCHAIN=local $(GO) env GOVERSION 2>/dev/null)" in \
		''|go1.[0-9]|go1.[0-9].*|go1.1[0-9]*|go1.20*) \
		echo "Go is too old: this needs Go 1.26 or later from https://go.dev/dl/; here is $$($(GO) version)" >&2; exit 1 ;; esac

# What git says of the files that go into the program; Go itself counts every file in the clone, such as a plan of the user's.
SOURCES = cmd internal plans third_party go.mod go.sum
CHANGED = { git status --porcelain --untracked-files=no -- $(SOURCES) ':(exclude)*_test.go' ':(exclude)*/testdata/*' && \
	git ls-files --others --exclude-standard -- '*.go' ':(exclude)*_test.go'; } 2>/dev/null

build: need-go ## build bin/dmgbench and bin/dmgbench-fleet
	@test -x bin/dmgbench || echo "building bin/dmgbench; the first time takes half a minute" >&2
	@$(GO) build -trimpath $$(test -n "$$($(CHANGED))" || echo "-ldflags=-X=dmgbench/internal/system/version.sources=unchanged") \
		-o bin/ ./cmd/dmgbench ./cmd/dmgbench-fleet

run: build ## execute PLAN (the plan quick, if none is given) and report
	@$(RUN) "$$PLAN"

$(REPRODUCE): reproduce-%: build
	@$(RUN) '$*'

fleet-demo: build ## a server and three agents on this machine, compared by host
	@scripts/fleet-demo.sh

test: need-go ## every test that is quick
	@echo "testing: after a change some minutes of compiling come first, without output" >&2
	@$(GO) test -p 4 -timeout 600s $(TESTFLAGS) ./...

test-race: need-go ## the tests under the race detector (needs a C compiler)
	@CGO_ENABLED=1 $(GO) test -race -p 2 -timeout 30m ./...

# All tests of the quick packages with goroutines, and of the slow ones those in which several of them are at work.
RACE_QUICK = ./internal/system/... ./internal/bench/workload/... ./internal/result/... ./internal/watch/... \
	./internal/image/container/udif ./internal/fleet
RACE_SLOW = ./internal/bench/runner ./internal/bench/engine/... ./internal/image/container ./internal/linuxhdiutil/attach \
	./internal/fleet/agent
RACE_RUN = AtOnce|Parallel|Concurrent|OneAnother|OneLimit|RunOut|Stop|Slept|Waiting|ServedVolume|TestDirectory|SecondAgent|Cancelled

test-race-short: need-go ## the packages with goroutines under the race detector: minutes (needs a C compiler)
	@CGO_ENABLED=1 $(GO) test -race -timeout 480s $(TESTFLAGS) $(RACE_QUICK)
	@CGO_ENABLED=1 $(GO) test -race -timeout 480s $(TESTFLAGS) -run '$(RACE_RUN)' $(RACE_SLOW)

test-long: need-go ## all tests, those of many minutes included
	@DMGBENCH_LONG=1 $(GO) test -p 2 -timeout 120m ./...

# A tool that is missing is a failure here, and a reason to skip everywhere else.
test-interop: need-go ## others read what we write: installs 7-Zip, fstool and other judges, most into a cache folder
	@scripts/interop/setup.sh
	@DMGBENCH_INTEROP=1 $(GO) test -count=1 -p 2 -timeout 30m $(TESTFLAGS) ./internal/interoptest
	@DMGBENCH_INTEROP=1 $(GO) test -count=1 -p 2 -timeout 10m -run 'Others|7Zip|QEMU|ReferenceProgram' $(TESTFLAGS) \
		./internal/image/container ./internal/image/container/udif ./internal/image/container/codec ./internal/result/export
	@PYTHONDONTWRITEBYTECODE=1 $$(scripts/interop/setup.sh --python) -m unittest discover -q -s scripts/interop

lint: lint-format lint-vet lint-static lint-darwin lint-modules lint-tree lint-workflows ## format, vet on three targets, staticcheck, dead code, layers, lengths, names, workflows
	@echo "lint: no findings"

lint-format: need-go
	@unformatted=$$(gofmt -l $$($(GO) list -f '{{.Dir}}' ./...)) || exit 1; \
	if [ -n "$$unformatted" ]; then echo "not formatted by gofmt:" >&2; echo "$$unformatted" >&2; exit 1; fi

lint-vet: need-go
	@$(GO) vet ./...
	@GOOS=linux GOARCH=amd64 $(GO) vet ./...
	@GOOS=darwin GOARCH=arm64 $(GO) vet ./...
	@GOOS=darwin GOARCH=amd64 $(GO) vet ./...

# A function is dead if no program reaches it on Linux nor on a Mac.
lint-static: need-go
	@$(GO) tool staticcheck ./...
	@tool=$$($(GO) tool -n deadcode) && linux=$$(GOOS=linux GOARCH=amd64 "$$tool" ./cmd/... ./tools/...) && \
		darwin=$$(GOOS=darwin GOARCH=arm64 "$$tool" ./cmd/... ./tools/...) && \
		dead=$$(printf '%s\n' "$$linux" "$$darwin" | sort | uniq -d) && \
		if [ -n "$$dead" ]; then echo "$$dead" >&2; exit 1; fi

# Links every program and every test binary for a Mac without running one: vet alone does not see a missing symbol.
lint-darwin: need-go
	@GOOS=darwin GOARCH=arm64 $(GO) build -o /dev/null ./...
	@log=$$(GOOS=darwin GOARCH=arm64 $(GO) test -vet=off -p 2 -exec true ./... 2>&1) || { echo "$$log" >&2; exit 1; }

# Compares the module cache with go.sum; without the modules at hand (offline, cache cold) it says so and goes on.
lint-modules: need-go
	@log=$$($(GO) mod verify 2>&1) || case "$$log" in \
		*"has been modified"*|*"checksum mismatch"*|*"SECURITY ERROR"*) echo "$$log" >&2; exit 1 ;; \
		*) echo "lint: modules not verified: $$log" >&2 ;; esac

lint-tree: need-go
	@log=$$($(GO) test -count=1 ./internal/archtest 2>&1) || { echo "$$log" >&2; exit 1; }

# The findings must not depend on shellcheck, which some machines have. The release is checked where goreleaser is
# installed; the workflow ci builds it.
lint-workflows: need-go
	@$(GO) tool actionlint -shellcheck= -pyflakes=
	@! command -v goreleaser >/dev/null || log=$$(goreleaser check 2>&1) || { echo "$$log" >&2; exit 1; }

fuzz: need-go ## every fuzz target for FUZZTIME (10s)
	@scripts/fuzz.sh "$(FUZZTIME)"

fuzz-hours: need-go ## fuzz for FUZZFOR seconds, least CPU time first, and add it to the table of docs/fuzzing.md
	@scripts/fuzz.sh 2m "$(FUZZFOR)" $(FUZZBELOW)

.PHONY: docs
docs: need-go ## the pages of docs that are generated from the program's registries
	@$(GO) run ./tools/docs

accuracy: need-go ## every study of docs/accuracy.md, in full: some minutes; the page is made anew
	@$(GO) run ./tools/docs -accuracy

bench: build ## the in-process engine against native folders; ON= folder on the disk to use, FLAGS= flags of dmgbench run
	@bin/dmgbench run tools/bench/engines.toml --engine inprocess $(if $(ON),--on "$(ON)") $(FLAGS)

bench-mounted: build ## Linux, root: mounted images against native folders; ON= and FLAGS= as for bench
	@bin/dmgbench run tools/bench/mounted.toml --engine hdiutil $(if $(ON),--on "$(ON)") $(FLAGS)

# The turns of all sides go to a file first, so that a failure is one of make, too.
SIDEBYSIDE = @dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && $(1) $(if $(ON),--dir "$(ON)") $(FLAGS) \
	>"$$dir/out" && $(GO) tool benchstat -col '/by@($(2))' "$$dir/out"

crosscheck: need-go ## the native folder against fio, the same files, calls and flushes; ON= folder, FLAGS= see docs/benchmarks.md
	$(call SIDEBYSIDE,$(GO) run ./tools/crosscheck,fio dmgbench)

bench-formats: need-go ## conversions against qemu-img, dmg2img, 7zz and fstool; ON= and FLAGS= as for crosscheck
	$(call SIDEBYSIDE,scripts/bench-formats.sh,hdiutil fstool qemu-img dmg2img 7zz)

bench-random: need-go ## random I/O in a native folder against fio; ON= and FLAGS= as for crosscheck
	$(call SIDEBYSIDE,scripts/bench-random.sh,fio dmgbench)

bench-spans: need-go ## Linux: latencies in a tree against the single calls that they contain; ON= folder, COUNT (9) turns
	@ON="$(ON)" $(GO) test -run '^$$' -bench OperationsBesideTheirCalls -benchtime 1x -count $(COUNT) ./internal/bench/workload/folder

bench-fleet: build ## a run alone against the same as a job of a fleet; ON= and FLAGS= as for crosscheck
	$(call SIDEBYSIDE,scripts/bench-fleet.sh,bare joined)

bench-watch: build ## a run alone against the same while it is watched; ON= and FLAGS= as for crosscheck
	$(call SIDEBYSIDE,scripts/bench-watch.sh,alone watched)

# The runs take turns, so that what the machine does to one implementation it does to all.
bench-cipher: need-go ## AES-CBC against OpenSSL, COUNT (9) turns of each
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && $(GO) test -c -o "$$dir/test" ./internal/image/container/crypt/aescbc && \
	for turn in $$(seq $(COUNT)); do "$$dir/test" -test.run '^$$' -test.bench 'Cipher/impl=openssl' -test.benchtime 1x && \
		"$$dir/test" -test.run '^$$' -test.bench 'Cipher/impl=[^o]' -test.benchtime 60ms || exit 1; done >"$$dir/out" && \
	$(GO) tool benchstat -filter '.unit:B/cpu-s' -col '/impl@(openssl vaes-512 aes-ni generic)' "$$dir/out"

bench-go: need-go ## Go benchmarks of the containers, the file system and the timed work; BENCH= selects
	@$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 30m -p 1 \
		./internal/image/container/... ./internal/image/exfat/... ./internal/system/hostio/... ./internal/bench/workload/...

.PHONY: site
site: need-go ## the documentation with a page for each plan, for any browser or server: dist/site
	@echo "making dist/site: small runs of all plans (a minute or two), then Hugo, which is built first (ten minutes, once)" >&2
	@rm -rf dist/plans
	@$(GO) run ./tools/docs -site -o dist/plans
	@$(GO) tool -modfile=site/go.mod hugo --quiet --config site/hugo.toml --destination dist/site \
		--cleanDestinationDir --noBuildLock

.PHONY: man completions licences snapshot reproducible
# Packages install the compressed ones; -n leaves out name and time, so that equal pages give equal bytes.
man: build ## manual pages of all commands, plain and compressed: dist/man
	@rm -rf dist/man
	@bin/dmgbench man dist/man
	@bin/dmgbench-fleet man dist/man
	@bin/dmgbench hdiutil man > dist/man/dmgbench-hdiutil.1
	@gzip -n -9 -k dist/man/*.1

completions: build ## tab completion for bash, zsh and fish: dist/completions
	@rm -rf dist/completions && mkdir -p dist/completions
	@bin/dmgbench completion bash > dist/completions/dmgbench.bash
	@bin/dmgbench completion zsh > dist/completions/_dmgbench
	@bin/dmgbench completion fish > dist/completions/dmgbench.fish
	@bin/dmgbench-fleet completion bash > dist/completions/dmgbench-fleet.bash
	@bin/dmgbench-fleet completion zsh > dist/completions/_dmgbench-fleet
	@bin/dmgbench-fleet completion fish > dist/completions/dmgbench-fleet.fish

licences: need-go ## the licences of all that the programs contain: dist/LICENCES.txt
	@mkdir -p dist && GO="$(GO)" scripts/licences.sh dist/LICENCES.txt

# Signing takes the identity of the release workflow.
snapshot: need-go ## archives and packages in dist/release, nothing published (needs goreleaser; syft for the SBOMs)
	@goreleaser check
	@goreleaser release --snapshot --clean --skip=sign$$(command -v syft >/dev/null || echo ,sbom)

reproducible: need-go ## build the release twice, in different folders, and compare (needs goreleaser)
	@scripts/reproducible.sh

.PHONY: recording pictures
pictures: build ## the pictures of docs, of runs on this machine: two minutes (needs Chromium and pngquant)
	@scripts/pictures.sh

# Through a file, so that a failure leaves the old picture.
recording: build ## docs/recording.svg: a run and its watcher on two terminals, less than a minute (needs tmux)
	@file=$$(mktemp) && trap 'rm -f "$$file"' EXIT && tools/recording/tape.sh >"$$file" && cat "$$file" >docs/recording.svg

assets: ## re-create third_party/echarts from the npm package
	@scripts/assets.sh

clean: ## remove what build and profiling made; runs/ stays
	@rm -rf bin dist
	@find . -name '*.test' -type f -not -path './.git/*' -delete
