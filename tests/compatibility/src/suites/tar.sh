# GNU tar's own tests, of Autotest.
make -k -C tests check 2>&1 | sed -En 's/^ *([0-9]+: .*[^ ]) +ok$/\1\tpass/p; s/^ *([0-9]+: .*[^ ]) +expected failure.*/\1\tpass/p
    s/^ *([0-9]+: .*[^ ]) +skipped.*/\1\tskip/p; s/^ *([0-9]+: .*[^ ]) +FAILED.*/\1\tfail/p'
