# coreutils' own tests, each a script: those of programs that make, change, tell about, follow and
# remove files.
scripts=$(grep -oE 'tests/(chgrp|chmod|cp|dd|du|id|install|ln|ls|mkdir|mv|readlink|rm|rmdir|tail-2|touch)/[a-zA-Z0-9_.-]*\.(sh|x?pl)' \
    tests/local.mk | sort -u | tr '\n' ' ')
# Where it lies was configured before it was copied.
make -k check SUBDIRS=. RUN_EXPENSIVE_TESTS=no abs_srcdir="$PWD" abs_builddir="$PWD" abs_top_srcdir="$PWD" abs_top_builddir="$PWD" \
    TESTS="$scripts" 2>&1 | results
