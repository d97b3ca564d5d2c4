//! Every command of `docs/web.md` and the plugins' pages, as a reader would type them.

use std::{
    fmt::Write as _,
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

/// What a page tells to do: files to write, and commands with what they print.
enum Step {
    File(String, String),
    Run(String, Vec<String>),
}

fn steps(page: &str) -> Vec<Step> {
    let (mut steps, mut fence): (Vec<Step>, Option<String>) = (Vec::new(), None);
    for line in page.lines() {
        if let Some(info) = line.strip_prefix("```") {
            let is_file = fence.is_none() && info.starts_with("toml ");
            if let Some(name) = info.strip_prefix("toml ").filter(|_| is_file) {
                steps.push(Step::File(name.to_owned(), String::new()));
            }
            fence = if fence.is_none() { Some(info.to_owned()) } else { None };
        } else if fence.as_deref() == Some("console") {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(Step::Run(command.to_owned(), Vec::new())),
                (None, Some(Step::Run(_, printed))) => printed.push(line.to_owned()),
                _ => panic!("{line} is printed by nothing"),
            }
        } else if fence.as_ref().is_some_and(|info| info.starts_with("toml "))
            && let Some(Step::File(_, text)) = steps.last_mut()
        {
            text.push_str(line);
            text.push('\n');
        }
    }
    steps
}

/// Follows a page in a directory of its own, at ports that are free.
fn follow(path: &Path) {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("here");
    fs::create_dir(&directory).unwrap();
    let dewar = test_support::install(place.path(), &["dewar", "dewar-serve", "dewar-plugin"]);
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugins");
    for entry in fs::read_dir(examples).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), directory.join(entry.file_name())).unwrap();
    }
    let mut page = fs::read_to_string(path).unwrap();
    // All at once, so that they differ.
    let ports = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    for (port, free) in ["8080", "8443", "9180"].iter().zip(&ports) {
        let free = free.local_addr().unwrap().port().to_string();
        page = page.replace(&format!("127.0.0.1:{port}"), &format!("127.0.0.1:{free}"));
        page = page.replace(&format!("localhost:{port}"), &format!("localhost:{free}"));
        if *port == "8080" {
            page =
                page.replace("dewar serve site", &format!("dewar serve site -l 127.0.0.1:{free}"));
        }
    }
    let bin = dewar.parent().unwrap().display().to_string();
    page = page.replace("/usr/local/bin", &bin);
    drop(ports);
    // What servers say on standard error is looked at, not shown.
    let mut script = String::from(
        "exec 2>said\nsays() { for _ in $(seq 600); do [ $(grep -c -e 'listening at' -e reloaded said) -ge $1 ] && return; \
         sleep 0.05; done; echo 'it never says so' >&2; exit 1; }\ntrap 'kill $! 2>/dev/null || true; wait' EXIT\n",
    );
    let (steps, mut heard) = (steps(&page), 0);
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::File(name, text) => fs::write(directory.join(name), text).unwrap(),
            Step::Run(command, _) => {
                writeln!(script, "echo '@@{number}'\n{command}").unwrap();
                if command.ends_with('&') {
                    let with_tls = usize::from(command.contains("--config"));
                    heard += 1 + with_tls;
                    writeln!(script, "says {heard}").unwrap();
                } else if command.starts_with("kill -HUP") {
                    heard += 1;
                    writeln!(script, "says {heard}").unwrap();
                }
            }
        }
    }
    let path_variable = std::env::var("PATH").unwrap();
    let path_variable = format!("{}:{path_variable}", dewar.parent().unwrap().display());
    let mut bash = Command::new("bash");
    let output = bash.args(["-e", "-c", &script]).env("PATH", path_variable);
    let output = output.current_dir(&directory).output().unwrap();
    let said = fs::read_to_string(directory.join("said")).unwrap_or_default();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}: {printed}{said}", path.display());
    for (number, step) in steps.iter().enumerate() {
        let Step::Run(command, expected) = step else { continue };
        let own = printed.split(&format!("@@{number}\n")).nth(1).unwrap_or_default();
        let own: Vec<&str> = own.lines().take_while(|line| !line.starts_with("@@")).collect();
        if !expected.is_empty() {
            assert_eq!(own, *expected, "{}: {command}: {said}", path.display());
        }
    }
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

#[test]
fn whoever_follows_the_page_about_the_web_server_sees_what_it_says() {
    follow(&docs().join("web.md"));
}

#[test]
fn whoever_follows_a_plugin_s_page_sees_what_it_says() {
    let mut pages = 0;
    for entry in fs::read_dir(docs().join("plugins")).unwrap().map(Result::unwrap) {
        follow(&entry.path());
        pages += 1;
    }
    assert_eq!(pages, 6, "one for each shipped plugin");
}
