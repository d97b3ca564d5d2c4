# coreutils' own tests, each a script: those of programs that make, change, tell about, follow and
# remove files.
scripts=$(grep -oE 'tests/(chgrp|chmod|cp|dd|du|id|install|ln|ls|mkdir|mv|readlink|rm|rmdir|tail-2|touch)/[a-zA-Z0-9_.-]*\.(sh|x?pl)' \
    tests/local.mk | sort -u | tr '\n' ' ')
make -k check SUBDIRS=. RUN_EXPENSIVE_TESTS=no TESTS="$scripts" 2>&1 | results
