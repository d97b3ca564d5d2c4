# A crate's own tests, as they were compiled beforehand: `PROGRAM:TEST`. One at a time: what a test
# prints stands before its result.
for program in programs/*; do
    name=${program##*/}
    timeout 300 "$program" --test-threads 1 2>&1 | awk -v name="${name%-*}" '
        function say(result) { print name ":" case_ "\t" result; case_ = "" }
        function judge(text) {
            if (text ~ /ok$/) say("pass"); else if (text ~ /FAILED$/) say("fail"); else if (text ~ /^ignored/) say("skip")
        }
        match($0, /^test .* \.\.\. /) {
            if (case_) say("fail")
            case_ = substr($0, 6, RLENGTH - 10)
            judge(substr($0, RLENGTH + 1))
            next
        }
        case_ { judge($0) }
        END { if (case_) say("fail") }
        /panicked at|^error/ { print "# " name ": " $0 }'
done
