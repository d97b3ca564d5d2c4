case $1 in quick) modules=$quick ;; *) modules=$all ;; esac
for module in $modules; do
    timeout 600 python3 -m test --junit-xml "$PWD/result.xml" "$module" > output 2>&1
    printf '%s\t%s\n' "$module" "$([ $? = 0 ] && echo pass || echo fail)"
    python3 - <<'END'
import os, xml.etree.ElementTree as tree
if os.path.exists("result.xml"):
    for case in tree.parse("result.xml").iter("testcase"):
        bad = any(it.tag in ("failure", "error") for it in case)
        skipped = any(it.tag == "skipped" for it in case) or case.get("result") == "skipped"
        print(case.get("name"), "fail" if bad else "skip" if skipped else "pass", sep="\t")
END
    rm -rf result.xml output
done
