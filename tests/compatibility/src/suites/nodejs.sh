# Node's own tests of files, connections and child processes, each a file, by the node that is installed.
cd test/parallel || exit 1
for test in test-fs-* test-net-* test-child-process-*; do
    [ -f "$test" ] || continue
    flags=$(sed -n 's|^// Flags: ||p' "$test" | head -1)
    timeout 120 node $flags "$test" > ../output 2>&1
    case $? in
        0) if grep -q '^1\.\.0 # Skipped' ../output; then result=skip; else result=pass; fi ;;
        *) result=fail ;;
    esac
    printf '%s\t%s\n' "$test" $result
    [ $result != fail ] || sed "s/^/# $test: /" ../output | grep -v ': *$' | head -12
done
