# SQLite's own tests: the whole `veryquick`, a quarter of a million cases of databases, locks and failing calls.
./testfixture test/veryquick.test 2>&1 | awk '
    /\.\.\. Ok$/ { sub(/\.\.\. Ok$/, ""); print $0 "\tpass"; next }
    /\.\.\.$/ { name = $0; sub(/\.\.\.$/, "", name); next }
    /^! [^ ]+ expected:/ { print $2 "\tfail"; print "# " $2 ": " $0; next }
    /^! [^ ]+ got:/ { print "# " $2 ": " $0; next }
    /^Error: / { print name "\tfail"; print "# " name ": " $0 }'
