# The lines of automake's and DejaGnu's reports.
results() {
    sed -En 's/^(PASS|XFAIL): (.*[^ ]) *$/\2\tpass/p; s/^(FAIL|ERROR|XPASS): (.*[^ ]) *$/\2\tfail/p
        s/^(SKIP|UNTESTED|UNSUPPORTED|UNRESOLVED): (.*[^ ]) *$/\2\tskip/p'
}
