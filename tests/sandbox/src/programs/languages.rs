//! Python, node, perl, and the tools that watch programs.

use crate::{Case, cases, stage::Stage};

pub(super) const CASES: &[Case] = cases![
    python_makes_a_virtual_environment,
    python_runs_its_own_kind_of_tests,
    python_multiprocessing_and_asyncio_work,
    node_uses_files_children_and_workers,
    perl_reads_writes_and_forks,
    strace_watches_a_program_inside,
    gdb_stops_a_program_inside,
    sanitizers_find_what_they_look_for,
    a_python_thread_may_run_where_it_may_however_many_files_it_opens,
];

fn python_makes_a_virtual_environment(stage: &Stage) {
    stage
        .same("python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'; . v/bin/activate; python -c 'import os, sys; print(os.path.basename(os.path.dirname(sys.executable)))'; python3 -m venv --symlinks --clear --without-pip v; ls v/bin; python3 -m zipfile -c z.zip v/pyvenv.cfg; python3 -m zipfile -t z.zip; python3 -m compileall -q . ; python3 -m json.tool <<< '{\"a\":1}'")
        .varies(&["z.zip", "pyvenv.cfg"])
        .check();
}

/// LeakSanitizer stops the program by a process that shares its memory, born untraced.
fn sanitizers_find_what_they_look_for(stage: &Stage) {
    stage
        .same(
            "for kind in clean leak overflow; do ./asan $kind 2>&1 | grep -o 'detected memory leaks\\|heap-buffer-overflow\\|fatal error' | sort -u; \
             echo $kind ${PIPESTATUS[0]}; done; ./ubsan 2>&1 | grep -o 'signed integer overflow'",
        )
        .before(
            r"cat > asan.c <<'END'
#include <stdlib.h>
int main(int count, char **arguments) {
    char *p = malloc(10);
    if (arguments[1][0] == 'o') return p[count * 5];
    if (arguments[1][0] == 'c') free(p);
    p = 0;
    return 0;
}
END
printf 'int main(int n, char **a) { n += 0x7fffffff; return n == 5; }' > ubsan.c
gcc -w -g -fsanitize=address -o asan asan.c; gcc -w -g -fsanitize=undefined -o ubsan ubsan.c",
        )
        .varies(&["asan", "ubsan"])
        .check();
}

fn python_runs_its_own_kind_of_tests(stage: &Stage) {
    stage
        .same("python3 test_it.py 2>&1 | sed 's/ in [0-9.]*s//'; exit ${PIPESTATUS[0]}")
        .before(
            r"cat > test_it.py <<'END'
import os, shutil, socket, subprocess, tempfile, threading, unittest
class Files(unittest.TestCase):
    def test_temporary(self):
        with tempfile.TemporaryFile() as f, tempfile.NamedTemporaryFile() as n, tempfile.TemporaryDirectory() as d:
            f.write(b'x'); f.seek(0); self.assertEqual(f.read(), b'x')
            self.assertTrue(os.path.exists(n.name)); shutil.copy(n.name, d); self.assertEqual(len(os.listdir(d)), 1)
    def test_pair(self):
        a, b = socket.socketpair(); a.sendall(b'hi'); self.assertEqual(b.recv(2), b'hi')
        with a, b: socket.send_fds(a, [b'f'], [os.open('test_it.py', os.O_RDONLY)]); _, fds, _, _ = socket.recv_fds(b, 1, 1)
        self.assertTrue(os.read(fds[0], 6) == b'import')
    def test_children(self):
        self.assertEqual(subprocess.run(['sh', '-c', 'cat; exit 5'], input=b'x', capture_output=True).returncode, 5)
        self.assertEqual(subprocess.check_output('echo $((6*7))', shell=True), b'42\n')
        with self.assertRaises(FileNotFoundError): subprocess.run(['no-such-program'])
        os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)[1])
    def test_scandir(self):
        self.assertEqual([e.name for e in os.scandir('.') if e.is_file()], ['test_it.py'])
        for root, dirs, files, fd in os.fwalk('.'): os.stat(files[0], dir_fd=fd)
    def test_threads(self):
        seen = []; ts = [threading.Thread(target=lambda i=i: seen.append(os.stat('.').st_ino)) for i in range(50)]
        [t.start() for t in ts]; [t.join() for t in ts]; self.assertEqual(len(set(seen)), 1)
    def test_atomic_replace(self):
        with tempfile.TemporaryDirectory(dir='.') as d:
            for i in range(50):
                with open(d + '/new', 'w') as f: f.write(str(i)); f.flush(); os.fsync(f.fileno())
                os.replace(d + '/new', d + '/current')
                with open(d + '/current') as f: self.assertEqual(f.read(), str(i))
unittest.main()
END",
        )
        .check();
}

fn python_multiprocessing_and_asyncio_work(stage: &Stage) {
    stage
        .same("python3 it.py")
        .before(
            r"cat > it.py <<'END'
import asyncio, concurrent.futures as cf, multiprocessing as mp, multiprocessing.shared_memory as sm, os, sys
def square(x): return x * x
async def run():
    p = await asyncio.create_subprocess_exec('cat', stdin=-1, stdout=-1)
    out, _ = await p.communicate(b'asyncio'); print(out, p.returncode)
    async def answer(r, w): w.write((await r.readline()).upper()); await w.drain(); w.close()
    s = await asyncio.start_unix_server(answer, 'socket'); r, w = await asyncio.open_unix_connection('socket')
    w.write(b'local\n'); print(await r.readline()); w.close(); s.close(); os.unlink('socket')
    print(await asyncio.get_running_loop().run_in_executor(None, square, 7))
if __name__ == '__main__':
    for method in ['fork', 'spawn', 'forkserver']:
        with mp.get_context(method).Pool(2) as pool: print(method, pool.map(square, range(5)))
    with cf.ProcessPoolExecutor(2) as e: print(sum(e.map(square, range(20))))
    q, l, v = mp.Queue(), mp.Lock(), mp.Value('i', 0)
    p = mp.Process(target=q.put, args=('queued',)); p.start(); print(q.get()); p.join()
    m = sm.SharedMemory(create=True, size=64); m.buf[0] = 9; n = sm.SharedMemory(m.name); print(n.buf[0]); n.close(); m.close(); m.unlink()
    with mp.Manager() as manager: d = manager.dict(a=1); print(dict(d))
    asyncio.run(run())
END",
        )
        .check();
}

fn node_uses_files_children_and_workers(stage: &Stage) {
    stage
        .same("node it.js")
        .before(
            r#"cat > it.js <<'END'
const fs = require('fs'), cp = require('child_process'), os = require('os'), net = require('net'), wt = require('worker_threads');
if (wt.isMainThread) main(); else wt.parentPort.postMessage(fs.readFileSync('file', 'utf8') + wt.workerData);
async function main() {
  fs.mkdirSync('d/e', { recursive: true }); fs.writeFileSync('file', 'text'); await fs.promises.copyFile('file', 'd/e/copy');
  fs.symlinkSync('file', 'link'); fs.renameSync('d/e', 'd/f'); fs.utimesSync('file', 1e9, 1e9); fs.chmodSync('link', 0o640);
  console.log(await fs.promises.readdir('.', { recursive: true }), fs.readlinkSync('link'), fs.realpathSync('link').endsWith('work/file'));
  console.log(cp.execSync('echo $((1+1))').toString(), cp.spawnSync('sh', ['-c', 'exit 9']).status);
  const child = cp.fork('child.js'); child.send('ping'); child.on('message', m => console.log(m)); await new Promise(r => child.on('exit', r));
  const worker = new wt.Worker(__filename, { workerData: ' from a worker' }); console.log(await new Promise(r => worker.on('message', r)));
  const watcher = fs.watch('d', () => {}); watcher.close(); fs.appendFileSync('file', '+');
  const server = net.createServer(c => c.end('served')).listen('sock', () => net.connect('sock').on('data', d => { console.log(d.toString()); server.close(() => fs.rmSync('d', { recursive: true })); }));
  try { fs.readFileSync('missing'); } catch (e) { console.log(e.code); }
}
END
            echo "process.on('message', m => { process.send(m + ' pong'); process.disconnect(); });" > child.js"#,
        )
        .does_without(&["/package.json"])
        .check();
}

fn perl_reads_writes_and_forks(stage: &Stage) {
    stage
        .same(
            r#"perl -we 'use strict; use File::Temp "tempfile"; use File::Path; use Fcntl ":flock"; use Cwd;
            open my $f, "+>", "p" or die; flock $f, LOCK_EX; print $f "a\nb\n"; close $f; print scalar(`wc -l < p`);
            my $pid = fork; exit 6 unless $pid; waitpid $pid, 0; print $? >> 8, "\n"; my ($t, $n) = tempfile(DIR => "."); unlink $n;
            mkpath "x/y/z"; opendir my $d, "x" or die; print join(",", sort readdir $d), "\n"; rmtree "x"; system("exit 2"); print $? >> 8, "\n";
            open my $p, "-|", "echo", "piped" or die; print <$p>; utime 1, 2, "p"; print +(stat "p")[9], "\n"; chdir "/etc"; print getcwd, "\n"; kill 0, $$ or die'"#,
        )
        .check();
}

fn strace_watches_a_program_inside(stage: &Stage) {
    stage
        .same("strace -f -e trace=exit_group -o log sh -c '/bin/true; exit 4'; echo $?; grep -c exited log; strace -o /dev/null -c true; strace -qq -e trace=none -e signal=none true; echo $?")
        .varies(&["log"])
        .check();
}

fn gdb_stops_a_program_inside(stage: &Stage) {
    stage
        .same("gdb -q -nx -batch -iex 'set debuginfod enabled off' -ex 'break twice' -ex run -ex 'info args' -ex finish -ex kill ./p 2>&1 | grep -E '^(x =|Value)'")
        // It tries to write memory through a file first.
        .does_without(&["/mem"])
        .before("echo 'int twice(int x) { return 2 * x; } int main(void) { return twice(21); }' > p.c; gcc -g -o p p.c")
        .check();
}

fn a_python_thread_may_run_where_it_may_however_many_files_it_opens(stage: &Stage) {
    let script = r#"echo > file; python3 - <<'END'
import os
before = os.sched_getaffinity(0)
for allowed in [before, {min(before)}, {max(before)}, before]:
    os.sched_setaffinity(0, allowed)
    for _ in range(2000):
        os.close(os.open('file', os.O_RDONLY))
        assert os.sched_getaffinity(0) == allowed, (os.sched_getaffinity(0), allowed)
END"#;
    stage.same(script).check();
}
