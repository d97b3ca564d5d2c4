# stress-ng(1) --verify: CASE is a stressor. Those that this machine or this user cannot run are left out.
quick='access chdir dup eventfd fcntl flock link mq pipe sem sockpair symlink'
# Left out: what takes the machine down for a while, or is about its devices, mounts and network interfaces.
left_out=' softlockup netdev bind-mount binderfs rawpkt icmp-flood udp-flood sockmany zombie forkheavy dirmany race-sched '
if [ "$1" = quick ]; then
    stressors=$quick
else
    stressors=$(for class in filesystem network scheduler pipe; do
        stress-ng --class "$class?" 2>&1 | sed 's/.*stressors://'
    done | tr ' ' '\n' | sort -u)
fi
for stressor in $stressors; do
    case $left_out in *" $stressor "*) continue ;; esac
    # The signal that ends a stressor may end its last call by EINTR (docs/decisions/signals.md).
    for _ in 1 2 3; do
        timeout 30 stress-ng --"$stressor" 1 --"$stressor"-ops 200 --timeout 1 --verify --oomable --temp-path . > output 2>&1
        status=$?
        if [ $status != 2 ] || ! grep -q 'errno=4 ' output; then break; fi
    done
    case $status in
        0) if grep -q 'skipped: 1' output; then result=skip; else result=pass; fi ;;
        3 | 4) result=skip ;;
        *) result=fail ;;
    esac
    printf '%s\t%s\n' "$stressor" $result
    [ $result != fail ] || sed "s/^/# $stressor: /" output | grep -v 'info:' | tail -4
    rm -rf output tmp-stress-ng-*
done
