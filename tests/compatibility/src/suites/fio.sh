# fio(1): each engine writes, and verifies what it reads again. CASE is an engine with a way of access.
quick='sync psync mmap'
all='sync psync vsync pvsync pvsync2 mmap libaio posixaio splice ftruncate falloc filecreate filestat filedelete'
case $1 in quick) engines=$quick ;; *) engines=$all ;; esac
for engine in $engines; do
    for way in write randwrite randrw; do
        case $engine in
            ftruncate | falloc | file*) [ $way = write ] || continue; verify= ;;
            *) verify='--verify=crc32c --verify_fatal=1' ;;
        esac
        if timeout 60 fio --name=x --ioengine=$engine --rw=$way --bs=4k --size=512k --thread $verify > /dev/null 2>&1; then
            printf '%s-%s\tpass\n' $engine $way
        else
            printf '%s-%s\tfail\n' $engine $way
        fi
        rm -f x.*
    done
done
