//! The server in a sandbox, under the profile `web`.

#[path = "../../web/tests/common/mod.rs"]
mod common;

use common::{Site, get, gray, image};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

struct Sandbox {
    site: Site,
    dewar: PathBuf,
    profile: PathBuf,
}

impl Sandbox {
    /// `web`, for `port` instead of 8080, and with the programs where this test has them.
    fn new(port: u16) -> Self {
        let site = Site::new();
        let place = site.directory.path();
        let dewar = test_support::install(place, &["dewar", "dewar-serve"]);
        fs::copy(format!("{}/gray.e", common::PLUGINS), site.root().join("gray.e")).unwrap();
        let profile = place.join("site.toml");
        let text = format!(
            "extends = 'web'\n[files]\nexec = ['{}']\n[network]\ninherit = false\nbind = ['127.0.0.1:{port}']\n",
            place.join("dewar-serve").display()
        );
        fs::write(&profile, text).unwrap();
        Self { site, dewar, profile }
    }

    fn serve(&self, port: u16) -> Child {
        let root = self.site.root();
        let mut command = Command::new(&self.dewar);
        command.args(["run", "-p"]).arg(&self.profile).arg("-w").arg(&root).arg("--");
        command.arg(self.dewar.with_file_name("dewar-serve")).arg("serve").arg(&root);
        command.args(["-l", &format!("127.0.0.1:{port}"), "--plugin"]);
        command.arg(format!("gray={}", root.join("gray.e").display()));
        command.current_dir(&root).stderr(Stdio::piped()).spawn().unwrap()
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn the_server_does_its_work_under_its_profile_and_listens_nowhere_else() {
    let port = free_port();
    let sandbox = Sandbox::new(port);
    let mut child = sandbox.serve(port);
    let mut told = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    while !told.contains("listening") {
        assert!(errors.read_line(&mut told).unwrap() > 0, "it does not start: {told}");
    }
    let address = format!("127.0.0.1:{port}").parse().unwrap();
    for _ in 0..10 {
        assert_eq!(get(address, "/numbers.txt").text(), "0123456789");
        assert_eq!(get(address, "/gray/a.ppm").body, gray(&image(60, 50)));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    child.wait().unwrap();
    let other = sandbox.serve(free_port()).wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(!other.status.success() && told.contains("cannot listen"), "{told}");
}
