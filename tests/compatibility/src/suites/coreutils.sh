# coreutils' own tests: each is a script.
make -k check SUBDIRS=. RUN_EXPENSIVE_TESTS=no 2>&1 | results
