# Python's own tests (Debian: libpython3.11-testsuite) about processes and threads, which take long.
quick=
all='test_concurrent_futures test_multiprocessing_fork test_multiprocessing_spawn test_multiprocessing_forkserver
test_multiprocessing_main_handling test_venv test_threading test_subprocess test_signal test_eintr test_thread
test_threadsignals'
