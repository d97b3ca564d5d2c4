# Dewar. `make demo` shows it at work on a real build; `make test` proves it.

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
RELEASE := $(TARGET)/release
PREFIX ?= /usr/local
# `dewar` runs untrusted code; the others lie beside it, and have what it does not link: databases, compilers, plots.
PROGRAMS := dewar dewar-bench dewar-daemon dewar-plugin dewar-selftest dewar-serve
# `dewar-mcp` lies beside them, and is built apart: see mcp/Cargo.toml.
MCP := --manifest-path mcp/Cargo.toml --target-dir $(TARGET) --locked
export RUST_BACKTRACE ?= 0

.PHONY: demo test test-again check compatibility fuzz build bench install uninstall deb wheel book package-check clean

build:
	$(CARGO) build --release --locked $(addprefix -p ,$(PROGRAMS)) -p ipc-c -p object-manager-c
	$(CARGO) build --release $(MCP)

# Without plugins, which need compilers that take minutes to build.
demo:
	scripts/setup demo
	$(CARGO) build --release --locked -p dewar -p dewar-bench
	scripts/demo $(RELEASE)/dewar

# Tests wait for programs more than they compute.
TEST_THREADS ?= $(shell expr 2 '*' $$(nproc))

# Everything: format, lints, documents, dependencies, tests. Signals that whoever calls it ignores would reach no test.
test:
	scripts/setup cargo-deny axe-core agents
	$(MAKE) --no-print-directory check
	$(CARGO) build --workspace --locked --bins --tests --examples
	$(CARGO) test $(MCP)
	DEWAR_BIN=$(abspath $(TARGET)/debug/dewar) env --default-signal \
	    $(CARGO) test --workspace --locked --no-fail-fast -- --test-threads $(TEST_THREADS)

# Once more, with less beside it, a target that failed: AGAIN='-p web --test fair', as cargo names it.
test-again:
	DEWAR_BIN=$(abspath $(TARGET)/debug/dewar) env --default-signal \
	    $(CARGO) test --locked --no-fail-fast $(AGAIN) -- --test-threads $$(nproc)

check:
	scripts/check-programs
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) fmt --manifest-path mcp/Cargo.toml --check
	$(CARGO) clippy $(MCP) --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked --document-private-items
	scripts/house
	scripts/manual --check
	cargo deny --locked check --hide-inclusion-graph licenses bans sources
	cargo deny --manifest-path mcp/Cargo.toml --locked check --hide-inclusion-graph licenses bans sources

# What takes longer. Whether programs can tell: random programs of system calls (DEWAR_RANDOM_PROGRAMS says how many, 2,000
# each) and suites of others, natively and under Dewar; programs where Dewar itself is surrounded by a container or a sandbox.
# And 10,000 random programs in E-code against gcc. DEWAR_SUITES_DONE=/FILE keeps there which suites have passed; after an
# interruption the same build does not run them again.
compatibility:
	scripts/setup compatibility
	scripts/suite-sources
	$(CARGO) build --workspace --locked --bins --tests
	DEWAR_BIN=$(abspath $(TARGET)/debug/dewar) DEWAR_RANDOM_PROGRAMS=$${DEWAR_RANDOM_PROGRAMS:-2000} env --default-signal \
	    DEWAR_SUITES=all DEWAR_TESTS_SURROUNDED=all ECODE_PROGRAMS=$${ECODE_PROGRAMS:-10000} \
	    $(CARGO) test --workspace --locked --no-fail-fast --test random --test suites --test sandbox --test it

# Half a minute of each fuzz target (policies, profiles, proposals, messages, spools, ports, the cache of plugins), from the kept
# corpus. Needs a nightly toolchain.
fuzz:
	scripts/setup cargo-fuzz
	scripts/fuzz

# What everything costs here, on one page: three quarters of an hour, and what kernels in guests take, on a machine that does
# nothing else. Interrupted, it is continued. OLD=PROGRAM compares another `dewar` with this one.
bench: build
	scripts/setup bench
	$(RELEASE)/dewar bench report --fetch -o report.html
	$(if $(OLD),$(RELEASE)/dewar bench releases $(OLD) $(RELEASE)/dewar)

# Programs, manual pages, completions, library and header, units, documents. DESTDIR for packages.
install: build
	scripts/install $(RELEASE) $(PREFIX)

uninstall:
	scripts/install --remove $(RELEASE) $(PREFIX)

deb: build
	scripts/deb $(RELEASE)

# These three are not part of `make test`, as each needs minutes and another's server on the first use: a release build and a
# mirror of Debian, PyPI and a release build for Python, mdbook from crates.io. What of them takes seconds is part of it: the
# package in debug form, installed, used and removed (tests/cli/install.rs), the C library from installed files only
# (tests/library), pages, links and examples of the book (tests/documents).

# Whether the package works in a minimal Debian 12, and is removed without a trace. As root, with a Debian mirror.
package-check: build
	scripts/setup package
	scripts/package-check "$$(scripts/deb $(RELEASE))"

# The wheel for Python, tested in a fresh environment. Needs PyPI.
wheel:
	scripts/wheel

# The documents as a book, looked at in a browser. Every example in it is run by `make test`.
book:
	scripts/book

clean:
	$(CARGO) clean
