# Redis' own tests, of units and of what they need of the system: servers that listen, fork, save, log and are signalled.
for unit in unit/type/list unit/type/stream unit/expire unit/other unit/multi unit/pubsub unit/acl unit/networking \
    unit/introspection unit/limits unit/shutdown unit/scripting integration/aof integration/aof-multi-part integration/rdb \
    integration/logging integration/redis-cli integration/shutdown integration/replication-3 integration/convert-zipmap-hash-on-load; do
    ./runtest --clients 1 --single $unit 2>&1 | sed -E 's/\x1b\[[0-9;]*m//g' | awk -v unit=$unit '
        /^\[ok\]: / { sub(/^\[ok\]: /, ""); sub(/ \([0-9]+ ms\)$/, ""); print unit ": " $0 "\tpass" }
        /^\[(err|exception)\]: / { line = $0; sub(/^\[[a-z]+\]: /, ""); sub(/ in tests\/.*/, "")
            print unit ": " $0 "\tfail"; print "# " unit ": " $0 ": " line }
        /^\[(skip|ignore)\]: / { sub(/^\[[a-z]+\]: /, ""); print unit ": " $0 "\tskip" }'
done
