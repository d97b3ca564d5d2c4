# jq's own tests: its scripts, each of which has hundreds of programs.
make -k check 2>&1 | results
