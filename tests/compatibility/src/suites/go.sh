# Tests of Go's standard library that are about the system. They were compiled beforehand, outside.
root=$(go env GOROOT)
for package in io/fs os os/exec os/signal os/user net syscall internal/poll; do
    program=$PWD/${package//\//_}.test
    [ -x "$program" ] || continue
    (cd "$root/src/$package" && timeout 300 "$program" -test.v -test.short 2>&1) \
        | sed -n "s|^ *--- \([A-Z]*\): \([^ ]*\).*|$package:\2\t\1|p" \
        | sed 's/PASS$/pass/; s/FAIL$/fail/; s/SKIP$/skip/'
    printf '%s\t%s\n' "$package" "$([ "${PIPESTATUS[0]}" = 0 ] && echo pass || echo fail)"
done
