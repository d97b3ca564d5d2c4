# LTP's tests of system calls, each a program; `NAME:whole` is whether it skipped no part. Four at
# a time: most wait. What fails then is tried again alone.
export LTPROOT=$PWD TMPDIR=$PWD/tmp PATH=$PWD/testcases/bin:$PATH KCONFIG_SKIP_CHECK=y LTP_COLORIZE_OUTPUT=n
mkdir -p "$TMPDIR" out
try() {
    name=${1%%[[:blank:]]*} command=${1#*[[:blank:]]}
    timeout -k 5 60 bash -c "$command" > "out/$name" 2>&1 < /dev/null
    case $? in 0) result=pass ;; 32 | 127) result=skip ;; 124) result=late ;; *) result=fail ;; esac
    whole=$result
    ! grep -q TCONF "out/$name" || whole=skip
    if [ "$2" = beside ] && [ $result = late -o $result = fail ]; then
        echo "$1" >> again
        return
    fi
    # In one piece, as others print as well.
    printf '%s\t%s\n%s:whole\t%s\n%s\n' "$name" $result "$name" $whole \
        "$([ $result != fail ] || grep -E 'TFAIL|TBROK|TWARN' "out/$name" | head -4 | sed "s/^/# $name: /")"
}
export -f try
# Left out: what takes all processes of the machine for a minute.
grep '^[a-z]' runtest/syscalls | grep -v '^msgstress' | xargs -P 4 -d '\n' -I{} bash -c 'try "$1" beside' _ {}
while IFS= read -r line; do try "$line" alone; done < again
