# pjdfstest's scripts: each check of a result is a case.
mkdir scratch && cd scratch || exit 1
one() {
    bash "$1" 2> /dev/null | awk -v file="${1#../tests/}" '{ case_ = file ":" (/^not/ ? $3 : $2) }
        /^(not )?ok [0-9]+/ { text = text case_ "\t" (/# TODO/ ? "skip" : /^not/ ? "fail" : "pass") "\n" }
        /^not ok/ { text = text "# " case_ ": " $0 "\n" }
        END { printf "%s", text }'
}
export -f one
find ../tests -name '*.t' | sort | xargs -P 2 -I{} bash -c 'one "$1"' _ {}
