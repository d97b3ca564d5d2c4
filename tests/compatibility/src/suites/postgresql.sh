# PostgreSQL's own tests of the server, with one session (regress) and with several (isolation).
# Where it lies was configured before it was copied.
for part in regress isolation; do
    make -C src/test/$part check NO_LOCALE=1 abs_top_builddir="$PWD" abs_top_srcdir="$PWD" 2>&1 |
        sed -En "s/^(test|    ) +([^ ]+) +\\.\\.\\. ok .*/$part: \\2\\tpass/p
            s/^(test|    ) +([^ ]+) +\\.\\.\\. (FAILED|failed).*/$part: \\2\\tfail/p
            /^(make|ERROR|FATAL|pg_regress|#)/s/^/# $part: /p"
    find src/test/$part -name regression.diffs -exec sed -En \
        "/^diff /{ s|.*/([^/]*)\\.out\$|\\1|; h }; /^[-+] ?/{ G; s/(.*)\\n(.*)/# $part: \\2: \\1/p }" {} +
done
