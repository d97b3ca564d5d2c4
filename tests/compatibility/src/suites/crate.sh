# A crate's own tests, as they were compiled beforehand: `PROGRAM:TEST`.
for program in programs/*; do
    name=${program##*/}
    timeout 300 "$program" --test-threads 1 2>&1 | awk -v name="${name%-*}" '
        match($0, /^test .* \.\.\. /) { case_ = substr($0, 6, RLENGTH - 10); rest = substr($0, RLENGTH + 1)
            print name ":" case_ "\t" (rest ~ /^ok/ ? "pass" : rest ~ /^ignored/ ? "skip" : "fail") }
        /panicked at|^error/ { print "# " name ": " $0 }'
done
