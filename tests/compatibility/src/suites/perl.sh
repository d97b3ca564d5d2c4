# perl's own tests of files, processes and sockets, by the perl that is installed: case by case.
cd t || exit 1
of() { for name in "$@"; do echo "op/$name.t"; done; }
prove --verbose --exec ./perl io/*.t $(of alarm chdir dbm die_exit exec fh filehandle filetest filetest_stack_ok filetest_t fork \
    getpid glob grent groups inccode kill0 lfs magic mkdir print pwent read readdir readline require_37033 rt119311 select \
    setpgrpstack sigdispatch sigsystem sleep sselect stat stat_errors sysio threads threads-dirh time unlink waitpid write) 2>&1 |
awk 'match($0, /^[a-z]+\/[a-z0-9_-]+\.t /) { file = substr($0, 1, RLENGTH - 1) }
    /^not ok [0-9]+/ { print file ":" $3 "\t" (/# TODO/ ? "skip" : "fail"); next }
    /^ok [0-9]+/ { print file ":" $2 "\t" (/# (skip|TODO)/ ? "skip" : "pass") }'
