//! E-code on every target: tests only, in `tests/it`.
