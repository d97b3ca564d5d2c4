//! What Dewar keeps for itself: out of every run's reach wherever links lead to it.

use crate::{Said, trust::Home};
use std::{
    fs,
    os::unix::fs::{MetadataExt as _, symlink},
};

/// Calls Dewar where all that it keeps lies in the home, under a profile that writes `data` there.
fn say(home: &Home, args: &[&str]) -> Said {
    let output = assert_cmd::Command::new(test_support::dewar())
        .args(args)
        .current_dir(home.path("repo"))
        .env("NO_COLOR", "1")
        .env("HOME", home.path(""))
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_CACHE_HOME")
        .env("XDG_RUNTIME_DIR", home.path("no-runtime"))
        .output()
        .unwrap();
    Said {
        status: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs a shell in `data`.
fn run(home: &Home, script: &str) -> Said {
    home.write("mine.toml", "extends = 'workspace'\nfiles.write = ['${home}/data']\n");
    let script = format!("umask 077; cd ~/data && {script}");
    say(home, &["run", "--no-daemon", "-p", "../mine.toml", "--", "sh", "-c", &script])
}

#[test]
fn links_on_the_way_to_what_dewar_keeps_lead_where_they_led() {
    for way in ["current", "in/current"] {
        let home = Home::new();
        for directory in ["data/in", "data/real/cache", "data/real/state", ".local"] {
            fs::create_dir_all(home.path(directory)).unwrap();
        }
        symlink(home.path("data/real"), home.path("data").join(way)).unwrap();
        symlink(format!("data/{way}/cache"), home.path(".cache")).unwrap();
        symlink(format!("../data/{way}/state"), home.path(".local/state")).unwrap();
        let plant = "mkdir -p evil/cache/dewar/plugins evil/state/dewar/trust";
        let swap = format!("{plant}; rm {way}; ln -s $PWD/evil {way}; mv -T evil {way}");
        run(&home, &swap);
        run(&home, &format!("{swap}; mv in in2; mkdir in; ln -s $PWD/evil {way}"));
        run(&home, &format!("rm in2/current; ln -s $PWD/evil in2/current; mv in2 in; {swap}"));
        for planted in [".cache/dewar/plugins", ".local/state/dewar/trust"] {
            assert!(!home.path(planted).exists(), "{way}: {planted}");
        }
    }
}

#[test]
fn where_a_link_leads_nowhere_nothing_of_dewars_is_made() {
    let home = Home::new();
    for directory in ["data/cache/some", ".local"] {
        fs::create_dir_all(home.path(directory)).unwrap();
    }
    symlink("data/cache", home.path(".cache")).unwrap();
    symlink("../data/state", home.path(".local/state")).unwrap();
    run(&home, "mkdir -p state/dewar/trust cache/dewar/plugins; mv cache c2");
    run(&home, "mkdir -p state/dewar/trust; mv c2 cache; mkdir -p cache/dewar/plugins");
    run(&home, "mkdir -p c3/dewar/plugins; mv c3 cache; mv c3 state; ln -s c3 cache");
    for planted in ["data/state/dewar/trust", ".cache/dewar/plugins"] {
        assert!(!home.path(planted).exists(), "{planted}");
    }
    // What is no store of Dewar's is made all the same.
    run(&home, "mkdir -p state/other");
    assert!(home.path("data/state/other").exists());
}

#[test]
fn what_another_user_s_home_holds_is_not_believed() {
    let home = Home::new();
    let (file, changes) = (home.path("repo/x.toml"), home.path(".local/state/dewar/changes"));
    fs::create_dir_all(&changes).unwrap();
    fs::write(&file, "after").unwrap();
    let change = serde_json::json!({
        "path": file, "before": "before", "after": "after", "by": "Allow",
        "from": home.path("repo"),
    });
    let planted = changes.join("99999999999999999999-1.json");
    fs::write(&planted, change.to_string()).unwrap();
    let undo = ["allow", "--undo"];
    if fs::metadata(&changes).unwrap().uid() != 0 {
        // Nobody else gives files away.
        assert_eq!(say(&home, &undo).status, 0);
        return;
    }
    let give = |path| std::os::unix::fs::chown(path, Some(65534), None).unwrap();
    give(&planted);
    assert_eq!(say(&home, &undo).status, 2, "one file is another's");
    give(&changes);
    let said = say(&home, &undo);
    assert!(said.status != 0 && said.err.contains("belongs to user 65534"), "{}", said.err);
    assert_eq!(fs::read_to_string(&file).unwrap(), "after");
}
