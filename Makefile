# make demo   installs what is missing, builds, crashes the sample in all its ways, shows what comes out
# make test   installs what is missing, runs every test
# make bench  make demo, then measures and prints the table of docs/figures.md
# make bench-symbolication   the same for symbolication, beside llvm-symbolizer, binutils, elfutils and SymCache (a quarter of
#             an hour; SymCache comes from PyPI)
# make bench-batch   what reading, writing and grouping many reports costs (BENCH_FLAGS="--reports 10000000": an hour)
# make bench-grouping   how well bugs are found in labelled stacks (DATA=PREFIX; the set of the tests), and in a program that
#             the rules were not made for, which it builds and crashes
# make bench-redaction   what redaction finds and costs, beside scrubadub and datafog (from PyPI)
# make soak   the tests that crash on purpose, SOAK_RUNS times (50: hours), the first two with all cores busy
# make oracle the interpreter of call frame information against libunwind, over all that is installed (minutes)
# make test-peers  what symbolicate writes, judged by the readers of others (from PyPI), a Bugsink on loopback among them
# make fuzz   the seven fuzzers, FUZZ_RUNS executions each (10000000: some hours)
#
# SOAK_FLAGS, ORACLE_FLAGS and BENCH_FLAGS are handed on to the scripts, whose first lines list them.
#
# Warnings are errors here and not in the manifest: SwiftPM refuses a versioned dependency with unsafe flags.

SHELL := /bin/bash
STRICT := -Xswiftc -warnings-as-errors -Xcc -Wall -Xcc -Wextra -Xcc -Werror
# The Swift runtime in the program: it starts in half the time, and runs on machines that have no Swift.
RELEASE := -c release --static-swift-stdlib
SWIFT ?= swift

FUZZ_RUNS ?= 10000000
SOAK_RUNS ?= 50
SOAK_FLAGS ?=
ORACLE_FLAGS ?=
BENCH_FLAGS ?=
DATA ?= Tests/CrashModelTests/Resources/grouping/dev

.PHONY: demo test test-peers soak oracle bench bench-batch bench-grouping bench-redaction bench-symbolication measure fuzz lint \
  build build-tests packages samples clean

demo: packages
	$(SWIFT) build $(STRICT) $(RELEASE) --product symbolicate
	samples/demo

# Both builds at once: each has long stretches in which one compiler works on one module.
test: packages lint
	$(MAKE) --no-print-directory -j2 build-tests samples
	$(SWIFT) test --skip-build

test-peers: demo
	Tests/peers

soak: packages
	$(MAKE) --no-print-directory -j2 build-tests samples
	Tests/soak --runs $(SOAK_RUNS) $(SOAK_FLAGS)

oracle: packages
	Tests/cfi-oracle $(ORACLE_FLAGS)

bench: demo measure

measure:
	$(SWIFT) build $(STRICT) $(RELEASE)
	Benchmarks/measure $(BENCH_FLAGS)

bench-batch: packages
	$(SWIFT) build $(STRICT) $(RELEASE)
	Benchmarks/batch $(BENCH_FLAGS)

bench-grouping: packages
	$(SWIFT) build $(STRICT) $(RELEASE) --product symbolicate
	Benchmarks/grouping --siggen $(DATA)
	Benchmarks/labelled-program/run

bench-symbolication: demo
	$(SWIFT) build $(STRICT) $(RELEASE)
	Benchmarks/symbolication $(BENCH_FLAGS)

bench-redaction: demo
	Benchmarks/redaction $(BENCH_FLAGS)

fuzz: packages
	Fuzz/run --runs $(FUZZ_RUNS)

lint:
	$(SWIFT) format lint --strict --recursive --parallel Package.swift Sources Plugins Tests Fuzz samples Benchmarks

build-tests:
	$(SWIFT) build --build-tests $(STRICT)

build: packages
	$(SWIFT) build $(STRICT)

# The sample service in the four ways in which services are built; the end-to-end tests crash all of them.
samples:
	samples/build-orderd

# Debian and Ubuntu. Elsewhere: elfutils, libunwind, simdjson, zlib, zstd and liblzma with their headers, by whatever name
# they have there.
packages:
	@.ci/install-packages

clean:
	$(SWIFT) package clean
	rm -rf .build/orderd
