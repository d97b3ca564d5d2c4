# Dewar. `make demo` shows it at work on a real build; `make test` proves it.

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
DEWAR := $(TARGET)/release/dewar
export RUST_BACKTRACE ?= 0

.PHONY: demo test check fuzz build bench install clean

build: $(DEWAR)

.PHONY: $(DEWAR)
$(DEWAR):
	$(CARGO) build --release --locked -p dewar

demo:
	scripts/setup
	$(MAKE) --no-print-directory $(DEWAR)
	scripts/demo $(DEWAR)

# Everything: format, lints, documents, dependencies, tests. Signals that whoever calls it ignores would reach no test.
test:
	scripts/setup cargo-deny
	$(MAKE) --no-print-directory check
	$(CARGO) test --workspace --locked --no-run
	DEWAR_BIN=$(abspath $(TARGET)/debug/dewar) env --default-signal $(CARGO) test --workspace --locked

check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked --document-private-items
	cargo deny --locked check --hide-inclusion-graph licenses bans sources

# Half a minute of each fuzz target (policies, profiles, messages, spools, ports, the cache of plugins), from the kept
# corpus. Needs a nightly toolchain.
fuzz:
	scripts/setup cargo-fuzz
	scripts/fuzz

install: $(DEWAR)
	install -D -m 755 $(DEWAR) $(DESTDIR)/usr/local/bin/dewar

clean:
	$(CARGO) clean
