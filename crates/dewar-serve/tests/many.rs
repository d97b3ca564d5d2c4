//! Many connections at once, and a server that is a process of its own.

#[path = "../../web/tests/common/mod.rs"]
mod common;

use common::Site;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
};

struct Process(Child, SocketAddr);

impl Process {
    fn start(site: &Site) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dewar-serve"));
        command.arg("serve").arg(&site.config.root).args(["-l", "127.0.0.1:0"]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        errors.read_line(&mut line).unwrap();
        std::thread::spawn(move || errors.bytes().count());
        let address = line.trim().rsplit(' ').next().unwrap().parse();
        Self(child, address.unwrap_or_else(|error| panic!("{error}: {line}")))
    }

    fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

#[test]
fn ten_thousand_idle_connections_take_less_than_a_hundred_mebibytes() {
    const MANY: usize = 10_000;
    let most = getrlimit(Resource::Nofile).maximum;
    assert!(
        most.is_none_or(|most| most > MANY as u64 + 100),
        "this needs {MANY} descriptors; there are {most:?}"
    );
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    let site = Site::new();
    let process = Process::start(&site);
    let mut all = Vec::with_capacity(MANY);
    for _ in 0..MANY {
        let mut stream = TcpStream::connect(process.1).unwrap();
        stream.write_all(b"GET /numbers.txt HTTP/1.1\r\nHost: t\r\n\r\n").unwrap();
        let mut reply = [0; 1024];
        let count = stream.read(&mut reply).unwrap();
        assert!(reply[..count].ends_with(b"0123456789"));
        all.push(stream);
    }
    let resident = process.resident_kib();
    assert!(resident <= 100 << 10, "{resident} KiB");
    for stream in all.iter_mut().step_by(1000) {
        stream.write_all(b"GET /numbers.txt HTTP/1.1\r\nHost: t\r\n\r\n").unwrap();
        let mut reply = [0; 1024];
        assert!(stream.read(&mut reply).unwrap() > 0, "each is still served");
    }
}

#[test]
fn memory_stays_the_same_over_many_requests() {
    let site = Site::new();
    let process = Process::start(&site);
    let request =
        b"GET /numbers.txt HTTP/1.1\r\nHost: t\r\n\r\nGET /none HTTP/1.1\r\nHost: t\r\n\r\n"
            .repeat(50);
    let mut stream = TcpStream::connect(process.1).unwrap();
    let mut turn = |turns: usize| {
        for _ in 0..turns {
            stream.write_all(&request).unwrap();
            let (mut seen, mut tail) = (0, Vec::new());
            while seen < 100 {
                let mut piece = [0; 1 << 16];
                let count = stream.read(&mut piece).unwrap();
                assert!(count > 0);
                tail.extend_from_slice(&piece[..count]);
                seen += tail.windows(9).filter(|it| it == b"HTTP/1.1 ").count();
                tail = tail.split_off(tail.len().saturating_sub(8));
            }
        }
    };
    turn(200);
    let before = process.resident_kib();
    turn(1000);
    let after = process.resident_kib();
    assert!(after <= before + 2048, "{before} KiB, then {after} KiB");
}
