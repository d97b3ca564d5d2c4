//! From a denial, or from nothing, to a profile that fits: `explain --toml`, `allow`, `learn`.

use assert_cmd::Command;
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::TempDir;
use test_support::copy_program;

/// A home with a project and secrets in it. Not below `/tmp`, of which each run has its own.
pub(crate) struct Home {
    directory: TempDir,
}

/// What a call came to.
pub(crate) struct Said {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self::new_in(env!("CARGO_TARGET_TMPDIR"))
    }

    /// A home in a directory.
    pub(crate) fn new_in(directory: &str) -> Self {
        let home = Self { directory: TempDir::new_in(directory).unwrap() };
        for (path, text) in [
            (".ssh/id_ed25519", "key"),
            (".config/foo/settings", "colour"),
            (".config/bar/api_token", "token"),
            (".config/bar/settings", "size"),
            ("my-passwords.txt", "secret"),
            ("notes.txt", "notes"),
            ("work/input", "input"),
        ] {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        home
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path().join("work")
    }

    pub(crate) fn profile(&self) -> String {
        fs::read_to_string(self.work().join("dewar.toml")).unwrap()
    }

    pub(crate) fn say(&self, args: &[&str]) -> Said {
        self.say_with(args, &[])
    }

    /// The same, with variables set.
    pub(crate) fn say_with(&self, args: &[&str], variables: &[(&str, &Path)]) -> Said {
        let output = Command::new(test_support::dewar())
            .args(args)
            .envs(variables.iter().copied())
            .current_dir(self.work())
            .env("NO_COLOR", "1")
            .env_remove("CARGO_HOME")
            .env_remove("CARGO_TARGET_DIR")
            // Of the tests' own, by cargo.
            .env_remove("LD_LIBRARY_PATH")
            .env("HOME", self.path())
            .env("XDG_STATE_HOME", self.path().join("state"))
            .env("XDG_CACHE_HOME", self.path().join("cache"))
            .output()
            .unwrap();
        Said {
            status: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// How many denials the last run recorded.
    pub(crate) fn denials(&self) -> usize {
        let said = self.say(&["explain", "--json"]);
        let record: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        record["denials"].as_array().unwrap().len()
    }
}

/// Every entry of every list of a profile, with the key that it stands under.
pub(crate) fn entries(profile: &str) -> Vec<(String, String)> {
    fn collect(key: &str, value: &toml::Value, found: &mut Vec<(String, String)>) {
        match value {
            toml::Value::Table(table) => {
                let below = |name: &String| [key, name].join(".").trim_matches('.').to_owned();
                table.iter().for_each(|(name, value)| collect(&below(name), value, found));
            }
            toml::Value::Array(list) => list.iter().for_each(|value| collect(key, value, found)),
            value => found.extend(value.as_str().map(|value| (key.to_owned(), value.to_owned()))),
        }
    }
    let mut found = Vec::new();
    collect("", &toml::Value::Table(profile.parse().expect(profile)), &mut found);
    found
}

/// Uses files of all kinds, and a secret or two if it can.
const BUSY: &str = "cat ~/.config/foo/settings ~/.config/bar/settings ~/notes.txt input; \
    mkdir -p ~/.cache/busy/v1; echo x > ~/.cache/busy/v1/$$; echo x > ~/.busy.log; ls ~ >/dev/null";

const CURIOUS: &str = "cat ~/.ssh/id_ed25519 ~/my-passwords.txt ~/.config/bar/api_token; true";

#[test]
fn a_learned_profile_denies_a_replay_nothing_and_has_no_line_too_many() {
    let home = Home::new();
    let said = home.say(&["learn", "--", "sh", "-c", BUSY]);
    assert_eq!(said.status, 0, "{}", said.err);
    let learned = home.profile();
    let replay = home.say(&["run", "--no-daemon", "-p", "./dewar.toml", "--", "sh", "-c", BUSY]);
    assert_eq!((replay.status, replay.err.as_str()), (0, ""), "{learned}");
    assert_eq!(home.denials(), 0, "{learned}");

    let said = home.say(&["learn", "-o", "again.toml", "--", "sh", "-c", BUSY]);
    let again = fs::read_to_string(home.work().join("again.toml")).unwrap();
    assert_eq!(again, learned, "{}", said.err);

    let entries: Vec<&str> = learned.lines().filter(|line| line.starts_with("    \"")).collect();
    assert!(entries.len() >= 4, "{learned}");
    for entry in entries {
        let less = learned.replace(&format!("{entry}\n"), "");
        fs::write(home.work().join("less.toml"), less).unwrap();
        home.say(&["run", "--no-daemon", "-p", "./less.toml", "--", "sh", "-c", BUSY]);
        assert!(home.denials() > 0, "{entry} is not needed: {learned}");
    }
}

#[test]
fn what_is_secret_stays_denied_while_a_profile_is_learned_and_is_never_in_it() {
    let home = Home::new();
    let said = home.say(&["learn", "--", "sh", "-c", &format!("{BUSY}; {CURIOUS}")]);
    for secret in ["secret", "token", "key"] {
        assert!(!said.out.contains(secret), "{}", said.out);
    }
    let learned = home.profile();
    // Which names the home holds may be listed; nothing in it may be granted with it.
    let granted = entries(&learned);
    for (key, value) in &granted {
        let is_whole =
            ["${home}", "${home}/.config", "${home}/.config/bar", "/"].contains(&&**value);
        assert!(!is_whole || key == "files.list", "{key}: {learned}");
    }
    for name in [".ssh", "passwords", "token"] {
        assert!(granted.iter().all(|(_, value)| !value.contains(name)), "{name}: {learned}");
    }
    assert!(said.err.contains("stays denied: cat may not"), "{}", said.err);
}

#[test]
fn a_pattern_is_neither_learned_nor_allowed_where_it_would_stand_for_a_secret() {
    let home = Home::new();
    for path in ["Documents/.env", "Documents/client-password.txt", "notes-password.txt"] {
        let path = home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "SECRET").unwrap();
    }
    fs::create_dir_all(home.path().join("logs")).unwrap();
    for (path, text) in [("notes-1234", "notes"), ("logs/2025", "old"), ("logs/2026", "new")] {
        fs::write(home.path().join(path), text).unwrap();
    }
    let read = |command: &str| {
        home.say(&["run", "--no-daemon", "-p", "./dewar.toml", "--", "sh", "-c", command]).out
    };
    let steal = "cat ../Documents/.env ../Documents/client-password.txt ../notes-password.txt";

    let command = "echo hi > ../Documents/9999; cat ../notes-1234 ../logs/2026";
    let said = home.say(&["learn", "--", "sh", "-c", command]);
    let learned = home.profile();
    assert!(learned.contains("\"${home}/Documents/9999\"") && !learned.contains("/Documents/*"));
    assert!(learned.contains("\"${home}/notes-1234\""), "{learned}");
    assert_eq!(read(steal), "", "{learned}");
    assert_eq!(read("cat ../notes-1234"), "notes", "{learned}");
    // Where there is none, what is another each time is a pattern, and it is said what that grants.
    assert!(learned.contains("\"${home}/logs/*\""), "{learned}");
    let told = "files.read = [\"${home}/logs/*\"]: also 1 file that is there already";
    assert!(said.err.contains(told), "{}", said.err);

    fs::remove_file(home.work().join("dewar.toml")).unwrap();
    home.say(&["run", "--no-daemon", "--", "sh", "-c", "echo hi > ../Documents/9999"]);
    let said = home.say(&["allow", "1", "--write", "dewar.toml"]);
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    assert!(!said.out.contains("SECRET"), "{}", said.out);
    assert_eq!(read(steal), "", "{}", home.profile());

    // What is named in full is granted alone.
    fs::remove_file(home.work().join("dewar.toml")).unwrap();
    home.say(&["run", "--no-daemon", "--", "cat", "../notes-1234", "../notes-password.txt"]);
    let named = home.path().join("notes-1234").display().to_string();
    let said = home.say(&["allow", &named, "--write", "dewar.toml"]);
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    assert_eq!(read(steal), "", "{}", home.profile());
}

#[test]
fn what_there_is_in_a_profile_stays_when_more_is_learned() {
    let home = Home::new();
    let mine = "# mine\nextends = \"workspace\"\n\n[files]\nread = [\n    \"${home}/notes.txt\",  # my notes\n]\n";
    fs::write(home.work().join("dewar.toml"), mine).unwrap();
    let said = home.say(&["learn", "--", "true"]);
    assert_eq!(said.status, 2);
    assert!(said.err.contains("--merge adds to it"), "{}", said.err);
    assert_eq!(home.say(&["trust", "--yes"]).status, 0);
    let command = "cat ~/notes.txt ~/.config/foo/settings; echo mode > dewar.toml; true";
    let said = home.say(&["learn", "--merge", "--", "sh", "-c", command]);
    let reported = home.say(&["report"]).out;
    assert!(reported.contains("` under dewar learn: exit status 0"), "{reported}");
    let merged = home.profile();
    assert!(merged.starts_with(&mine[..mine.len() - 2]), "{merged}\n{}", said.err);
    assert!(merged.contains("\"${home}/.config/foo\",  # "), "{merged}");
    home.say(&["allow", "--undo"]);
    assert_eq!(home.profile(), mine);
}

#[test]
fn what_was_denied_is_allowed_by_its_number_and_taken_back() {
    let home = Home::new();
    home.say(&[
        "run",
        "--no-daemon",
        "--",
        "cat",
        &home.path().join("notes.txt").display().to_string(),
    ]);
    let said = home.say(&["explain"]);
    assert!(said.out.contains("[1] cat may not read or open"), "{}", said.out);
    let said = home.say(&["explain", "--toml"]);
    assert!(said.out.starts_with("[files]\nread = [\n    \"${home}/notes.txt\","), "{}", said.out);
    let said = home.say(&["allow", "1"]);
    assert!(said.status == 1 && said.err.contains("nothing was changed"), "{}", said.err);
    assert!(said.out.contains("files.read = [\"${home}/notes.txt\"]"), "{}", said.out);
    assert!(said.out.contains("dewar allow 1 --write dewar.toml"), "{}", said.out);
    let said = home.say(&["allow", "1", "--write", "dewar.toml"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let notes = home.path().join("notes.txt").display().to_string();
    let said = home.say(&["run", "--no-daemon", "-p", "./dewar.toml", "--", "cat", &notes]);
    assert_eq!((said.out.as_str(), said.err.as_str()), ("notes", ""));
    let said = home.say(&["allow", "--undo"]);
    assert!(said.out.contains("is gone, as it was before"), "{}{}", said.out, said.err);
    assert!(!home.work().join("dewar.toml").exists());
    let said = home.say(&["allow", "--undo"]);
    assert!(said.status == 2 && said.err.contains("no change"), "{}", said.err);
}

#[test]
fn secrets_are_allowed_by_their_full_name_only() {
    let home = Home::new();
    let secrets = "cat ~/my-passwords.txt ~/.ssh/id_ed25519; cat ~/notes.txt";
    home.say(&["run", "--no-daemon", "--", "sh", "-c", secrets]);
    let said = home.say(&["allow", "--all", "--write", "dewar.toml"]);
    assert_eq!(said.status, 1, "{}", said.err);
    assert!(said.out.contains("to allow it, name it in full"), "{}", said.out);
    let written = home.profile();
    assert!(written.contains("notes.txt") && !written.contains("passwords"), "{written}");
    let path = home.path().join("my-passwords.txt").display().to_string();
    let said = home.say(&["allow", &path, "--write", "dewar.toml"]);
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    assert!(home.profile().contains("\"${home}/my-passwords.txt\""));
}

#[test]
fn a_name_that_a_program_has_chosen_brings_nothing_into_a_profile() {
    let home = Home::new();
    // Names of programs stand in comments; TOML spells `/` as `\u002f`, too.
    let config = home.path().join(".config").display().to_string().replace('/', "\\u002f");
    let name = format!("cat\n\"{config}\", #");
    copy_program(Path::new("/bin/cat"), &home.work().join(&name));
    let command = "./cat* ~/notes.txt; cat ~/.config/foo/settings; echo x > ~/.4711; cat ~/4711; \
        /usr/bin/python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"\\0*\")'";
    home.say(&["run", "--no-daemon", "--", "sh", "-c", command]);
    let record = home.say(&["explain", "--json"]).out;
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let denials = record["denials"].as_array().unwrap();
    for (index, denial) in denials.iter().enumerate() {
        if denial["object"].as_str().is_some_and(|object| !object.ends_with("settings")) {
            home.say(&["allow", &(index + 1).to_string(), "--write", "dewar.toml"]);
        }
    }
    let run = ["run", "--no-daemon", "-p", "./dewar.toml", "--", "sh", "-c"];
    let read = |command| home.say(&[&run[..], &[command]].concat()).out;
    assert_eq!(read("cat ~/notes.txt"), "notes", "{}", home.profile());
    assert_eq!(read("cat ~/.config/foo/settings"), "", "{}", home.profile());
    // Nor is it all that is called somehow like this.
    let granted = home.profile();
    let granted: Vec<&str> = granted.lines().filter(|line| line.starts_with("    \"")).collect();
    assert!(granted.iter().all(|line| !line.contains('*')), "{granted:?}");
    home.say(&["learn", "--force", "--", "sh", "-c", "echo x > ~/4711; rm ~/4711; echo > ~/.4711"]);
    assert!(!home.profile().contains("*\""), "{}", home.profile());
}

#[test]
fn a_file_that_the_run_could_have_written_is_not_believed() {
    let home = Home::new();
    let plant = "printf 'extends=\"open\"\\n' > mine.toml; cat ~/notes.txt";
    home.say(&["run", "--no-daemon", "--", "sh", "-c", plant]);
    let said = home.say(&["allow", "--all", "--write", "mine.toml"]);
    assert!(said.status == 2 && said.err.contains("could have written"), "{}", said.err);
}

#[test]
fn mistakes_in_what_to_allow_are_named() {
    let home = Home::new();
    let said = home.say(&["allow", "1"]);
    assert!(said.err.contains("no run has been recorded yet"), "{}", said.err);
    home.say(&["run", "--no-daemon", "--", "cat", "/root/x", "/etc/shadow"]);
    for (args, part) in [
        (&["allow"][..], "which denials?"),
        (&["allow", "7"], "there is no denial 7"),
        (&["allow", "1", "x"], "neither the number"),
        (&["allow", "nosuch", "1"], "no finished run is called `nosuch`"),
        (&["allow", "/no/such"], "was not denied"),
        (&["allow", "1", "--once"], "nothing runs"),
        (&["allow", "--undo", "1"], "cannot be used with"),
        (&["allow", "--all", "--write", "x"], "does not end in `.toml`"),
    ] {
        let said = home.say(args);
        assert!(said.err.contains(part) && said.status != 0, "{args:?}: {}", said.err);
    }
    let exists = |path: &str| Path::new(path).exists();
    assert!(!exists("x") && !home.work().join("x").exists());
}

#[test]
fn a_profile_learned_from_a_build_is_short_and_denies_a_replay_nothing() {
    let home = Home::new();
    for number in 0..20 {
        let text = format!("int f{number}(void) {{ return {number}; }}\n");
        fs::write(home.work().join(format!("f{number}.c")), text).unwrap();
    }
    let makefile =
        "all: $(patsubst %.c,%.o,$(wildcard *.c))\n\tcat ../notes.txt\nclean:\n\trm -f *.o\n";
    fs::write(home.work().join("Makefile"), makefile).unwrap();
    let said = home.say(&["run", "--learn", "--", "make"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let learned = home.profile();
    assert!(learned.lines().count() <= 40, "{learned}");
    let replay = ["run", "--no-daemon", "-p", "./dewar.toml", "--", "make", "clean", "all"];
    let said = home.say(&replay);
    assert_eq!(said.status, 0, "{}", said.err);
    assert_eq!(home.denials(), 0, "{learned}");
    // A second run adds, and changes nothing that is there.
    let said = home.say(&["run", "--learn", "--", "cat", "../.config/foo/settings"]);
    assert_eq!(said.status, 0, "{}", said.err);
    for value in ["\"${home}/notes.txt\"", "\"${home}/.config/foo\""] {
        assert!(home.profile().contains(value), "{value}: {}", home.profile());
    }
}

#[test]
fn a_profile_learned_from_a_cargo_project_is_short_and_names_its_registry() {
    let (home, standin) = (Home::new(), crate::standin::Standin::start());
    let index = standin.url("/cargo/");
    let config = format!(
        "[source.crates-io]\nreplace-with = 's'\n[source.s]\nregistry = 'sparse+{index}'\n"
    );
    fs::create_dir_all(home.path().join(".cargo")).unwrap();
    fs::write(home.path().join(".cargo/config.toml"), config).unwrap();
    let manifest = "[package]\nname = \"p\"\nversion = \"1.0.0\"\nedition = \"2021\"\n[workspace]\n[dependencies]\nleft = \"1\"\n";
    fs::write(home.work().join("Cargo.toml"), manifest).unwrap();
    fs::create_dir_all(home.work().join("src")).unwrap();
    let test = "#[test]\nfn value() { assert_eq!(left::VALUE, 42); }\n";
    fs::write(home.work().join("src/lib.rs"), test).unwrap();
    // The toolchain itself: what rustup would start, which looks for settings in the home.
    let cargo = std::process::Command::new("rustup").args(["which", "cargo"]).output();
    let cargo = cargo.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let cargo = cargo.map_or("cargo".into(), |text| String::from_utf8(text).unwrap());
    let cargo = cargo.trim();
    let bin = Path::new(cargo).parent().map(|bin| bin.display().to_string()).unwrap_or_default();
    let command = format!("PATH={bin}:$PATH exec {cargo} test");
    let said = home.say(&["learn", "--", "sh", "-c", &command]);
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    let learned = home.profile();
    assert!(learned.lines().count() <= 60, "{learned}");
    assert!(
        learned.contains(&format!("127.0.0.1:{}", standin.port()))
            || learned.contains("127.0.0.1:*"),
        "{learned}"
    );
    let replay = ["run", "--no-daemon", "-p", "./dewar.toml", "--", "sh", "-c", &command];
    let said = home.say(&replay);
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    assert_eq!(home.denials(), 0, "{learned}");
}
