# findutils' own tests: scripts, and those of DejaGnu for find and xargs, left out silently where it is missing.
command -v runtest > /dev/null || { echo 'no runtest: install dejagnu' >&2; exit 1; }
for part in find xargs tests; do make -k -C $part check 2>&1 | results; done
# What DejaGnu was told of `find` case by case.
results < find/testsuite/find.sum
