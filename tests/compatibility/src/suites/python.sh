# Python's own tests (Debian: libpython3.11-testsuite) about files, processes, sockets, and what builds on them.
quick='test_fcntl test_tempfile'
all='test_asyncore test_asynchat test_bz2 test_cmd_line test_concurrent_futures test_dbm test_dbm_dumb test_dbm_gnu test_epoll
test_eintr test_fcntl test_file test_file_eintr test_fileinput test_fileio test_filecmp test_fork1 test_ftplib test_genericpath
test_getpass test_glob test_gzip test_httplib test_httpservers test_imaplib test_import test_io test_ioctl test_kqueue test_largefile
test_lzma test_mailbox test_memoryio test_mmap test_multiprocessing_fork test_multiprocessing_spawn test_multiprocessing_forkserver
test_multiprocessing_main_handling test_netrc test_nntplib test_openpty test_os test_pathlib test_pipes test_pkg test_poll test_popen
test_poplib test_posix test_posixpath test_pty test_pwd test_grp test_resource test_robotparser test_runpy test_sched test_select
test_selectors test_shelve test_shutil test_signal test_smtplib test_socket test_socketserver test_spwd test_sqlite3 test_stat
test_subprocess test_sundry test_support test_syslog test_tarfile test_telnetlib test_tempfile test_thread test_threading
test_threadsignals test_threadedtempfile test_tty test_univnewlines test_unicode_file test_unicode_file_functions test_urllib
test_urllib2_localnet test_urllibnet test_uuid test_venv test_wait3 test_wait4 test_wsgiref test_xmlrpc test_zipapp test_zipfile
test_zipfile64 test_zipimport test_zlib'
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
