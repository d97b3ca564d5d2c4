//! A run has a `/tmp` of its own, and in it what its profile names of the machine's.

use super::learn::Home;
use std::{fs, os::unix::fs::PermissionsExt as _};

#[test]
fn a_socket_of_the_machines_tmp_is_connected_to_and_not_changed() {
    let home = Home::new();
    let place = tempfile::Builder::new().prefix("dewar-").tempdir_in("/tmp").unwrap();
    let socket = place.path().join("agent.1");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    fs::write(place.path().join("token"), "secret").unwrap();
    let mode = || fs::metadata(&socket).unwrap().permissions().mode() & 0o777;
    let before = mode();
    let script = format!(
        "import os, socket\n\
         socket.socket(socket.AF_UNIX).connect('{0}')\n\
         for change in (lambda: os.chmod('{0}', 0o666), lambda: os.utime('{0}', (1, 1)), lambda: os.unlink('{0}'),\n\
         \x20       lambda: open('{1}/token').read()):\n\
         \x20   try: print('changed', change())\n\
         \x20   except OSError as error: print(error.errno)\n",
        socket.display(),
        place.path().display(),
    );
    let profile =
        format!("extends = 'workspace'\nnetwork.connect = ['unix:{}']\n", socket.display());
    fs::write(home.work().join("own.toml"), profile).unwrap();
    for mode in ["all", "fast"] {
        let run = ["run", "--no-daemon", "--mode", mode, "-p", "./own.toml", "--"];
        let said = home.say(&[&run[..], &["/usr/bin/python3", "-c", &script]].concat());
        let is_denied = said.out.lines().all(|line| ["13", "2"].contains(&line));
        assert!(said.status == 0 && is_denied, "{mode}: {}{}", said.out, said.err);
        assert_eq!(said.out.lines().count(), 4, "{}", said.out);
    }
    assert!(socket.exists() && mode() == before);
}
