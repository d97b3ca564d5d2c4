use super::*;

fn plantings() -> Plantings {
    Plantings::new(Some(Watch {
        trees: Names::new([".vscode"]),
        files: Names::new(["Makefile"]),
        packages: Names::new(["node_modules"]),
        path: vec!["/w/bin".into()],
        inside: "/w".into(),
        private: vec!["/tmp".into()],
        led: HashMap::from([
            ("/w/rules".into(), "/w/Makefile".into()),
            ("/w/editor".into(), "/w/.vscode".into()),
            ("/w/plain".into(), "/w/other".into()),
        ]),
    }))
}

#[test]
fn what_a_link_of_such_a_name_leads_to_matters_like_it() {
    let plantings = plantings();
    for path in ["/w/rules", "/w/editor/tasks.json", "/w/plain", "/w/rules.bak", "/w/a/rules"] {
        plantings.note(Path::new(path), false);
    }
    let report = plantings.report().0;
    let found = report.iter().map(|it| (it.path.to_str().unwrap(), it.why)).collect::<Vec<_>>();
    assert_eq!(found, [("/w/editor/tasks.json", Why::Tree(0)), ("/w/rules", Why::File(0))]);
}

#[test]
fn many_of_one_kind_hide_none_of_another() {
    let plantings = plantings();
    let many = (0..2 * MOST).map(|number| format!("/w/{number}/Makefile"));
    many.for_each(|path| plantings.note(Path::new(&path), true));
    plantings.note(Path::new("/w/.vscode/tasks.json"), true);
    plantings.note_for(|| Ok("/w/x/HEAD".into()), Why::Repository);
    let report = plantings.report();
    assert_eq!((report.0.len(), report.1), (MOST + 2, MOST as u64));
}

#[test]
fn what_matters_is_kept_once_and_found_where_it_was_moved_to() {
    let plantings = plantings();
    plantings.note(Path::new("/w/a/Makefile"), false);
    plantings.note(Path::new("/w/a/Makefile"), true);
    plantings.note(Path::new("/w/bin/tool"), true);
    plantings.note(Path::new("/w/main.c"), true);
    plantings.note(Path::new("/tmp/Makefile"), true);
    plantings.note(Path::new("/w/c/Makefile"), true);
    plantings.exchanged(Some(Path::new("/w/c")), Some(Path::new("/w/d")));
    plantings.exchanged(Some(Path::new("/w/x")), Some(Path::new("/w/d/Makefile")));
    plantings.note(Path::new("/w/.vscode/x"), true);
    plantings.note(Path::new("/w/makefile/x"), true);
    plantings.moved(Some(Path::new("/w/a")), Some(Path::new("/w/b")), true);
    plantings.moved(Some(Path::new("/w/.vscode/x")), Some(Path::new("/w/.vscode/y")), false);
    let (planted, more) = plantings.report();
    let planted: Vec<_> =
        planted.iter().map(|it| (it.path.to_str().unwrap(), it.is_new, it.why)).collect();
    assert_eq!(
        planted,
        [
            ("/w/.vscode/y", false, Why::Tree(0)),
            ("/w/b/Makefile", true, Why::File(0)),
            ("/w/bin/tool", true, Why::Path),
            ("/w/d/Makefile", false, Why::File(0))
        ]
    );
    assert_eq!(more, 0);
}

#[test]
fn what_is_moved_meanwhile_is_noted_where_it_is() {
    let plantings = plantings();
    let asked = std::cell::Cell::new(0);
    let place = || {
        asked.set(asked.get() + 1);
        let path = if asked.get() == 1 { "/w/a/Makefile" } else { "/w/b/Makefile" };
        if asked.get() == 1 {
            plantings.moved(Some(Path::new("/w/a")), Some(Path::new("/w/b")), true);
        }
        Ok(path.into())
    };
    plantings.note_at(place, true);
    let paths = plantings.report().0.into_iter().map(|planted| planted.path);
    assert!(paths.collect::<Vec<_>>().contains(&"/w/b/Makefile".into()));
}

#[test]
fn a_flood_is_counted_and_not_kept() {
    let plantings = plantings();
    for number in 0..MOST + 5 {
        plantings.note(&PathBuf::from(format!("/w/{number}/Makefile")), true);
    }
    let (planted, more) = plantings.report();
    assert_eq!((planted.len(), more), (MOST, 5));
}

#[test]
fn what_is_gone_gives_its_place_back() {
    let plantings = plantings();
    let away = Path::new("/w/away");
    for number in 0..MOST {
        let path = PathBuf::from(format!("/w/{number}/Makefile"));
        plantings.note(&path, true);
        match number % 3 {
            0 => plantings.removed(&path, || true),
            1 => plantings.moved(Some(&path), Some(away), true),
            _ => plantings.moved(Some(&path), Some(Path::new("/w/last/Makefile")), true),
        }
    }
    (1..MOST)
        .for_each(|number| plantings.note(&PathBuf::from(format!("/w/{number}/Makefile")), true));
    assert_eq!((plantings.report().0.len(), plantings.report().1), (MOST, 0));
}

#[test]
fn links_matter_by_where_they_lead_from_where_they_lie() -> std::io::Result<()> {
    let directory = tempfile::tempdir()?;
    let top = directory.path().canonicalize()?.join("w");
    let plantings = Plantings::new(Some(Watch {
        files: Names::new(["gradle/wrapper.properties"]),
        packages: Names::new(["node_modules"]),
        path: vec![top.join("bin")],
        inside: top.clone(),
        ..Watch::default()
    }));
    for name in ["a", "b/c", "node_modules/x"] {
        std::fs::create_dir_all(top.join(name))?;
    }
    for (target, name) in [
        ("a/../b", "in"),
        ("../etc", "out"),
        ("node_modules/x", "sub"),
        ("../y", "node_modules/x/y"),
        ("a", "bin"),
        ("a", "gradle"),
        ("../notes", "a/near"),
        ("../../other", "b/c/deep"),
    ] {
        std::os::unix::fs::symlink(target, top.join(name))?;
        plantings.note_link(|| Ok(top.join(name)));
    }
    for (from, to) in [("a/near", "near"), ("b/c", "c")] {
        std::fs::rename(top.join(from), top.join(to))?;
        plantings.moved(Some(&top.join(from)), Some(&top.join(to)), true);
    }
    let planted = plantings.report().0.into_iter();
    let told = planted.map(|it| (it.path.strip_prefix(&top).unwrap().to_owned(), it.why));
    let links = ["bin", "c/deep", "gradle", "near", "out", "sub"];
    assert_eq!(told.collect::<Vec<_>>(), links.map(|name| (name.into(), Why::Link)));
    Ok(())
}

#[test]
fn a_link_that_climbs_from_another_link_leads_where_it_is_followed() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let plantings = Plantings::new(Some(Watch {
        inside: std::fs::canonicalize(directory.path()).unwrap(),
        ..Watch::default()
    }));
    for (name, target) in [("here", "."), ("out", "here/here/../../x"), ("in", "here/x")] {
        std::os::unix::fs::symlink(target, at(name)).unwrap();
        plantings.note_link(|| Ok(std::fs::canonicalize(directory.path()).unwrap().join(name)));
    }
    let report = plantings.report().0;
    let found: Vec<_> = report.iter().map(|it| it.path.file_name().unwrap()).collect();
    assert_eq!(found, ["out"], "{report:?}");
}

#[test]
fn what_has_no_path_that_anybody_can_tell_is_counted() {
    let plantings = plantings();
    let unknown = || Err(rustix::io::Errno::NAMETOOLONG);
    plantings.note_at(unknown, true);
    plantings.note_link(unknown);
    plantings.note_for(unknown, Why::Repository);
    assert_eq!(plantings.report(), (Vec::new(), 3));
}

#[test]
fn a_place_that_is_told_at_last_is_noted() {
    let plantings = plantings();
    let asked = std::cell::Cell::new(0);
    let place = || {
        asked.set(asked.get() + 1);
        if asked.get() < 3 { Err(rustix::io::Errno::NAMETOOLONG) } else { Ok("/w/Makefile".into()) }
    };
    plantings.note_at(place, true);
    let (planted, more) = plantings.report();
    assert_eq!((planted.len(), more), (1, 0));
}

#[test]
fn what_is_there_is_kept_where_its_name_was_removed_and_made_anew() {
    let plantings = plantings();
    plantings.note(Path::new("/w/Makefile"), true);
    plantings.removed(Path::new("/w/Makefile"), || false);
    assert_eq!(plantings.report().0.len(), 1);
}

/// A directory that is the workspace, and what is told of it, by the names below.
fn looked_at(
    prepare: impl FnOnce(&Path),
    note: impl FnOnce(&Plantings, &Path),
) -> Vec<(PathBuf, Why)> {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().canonicalize().unwrap();
    prepare(&top);
    let files = Names::new(["Makefile"]);
    let watch = Watch { files, inside: top.clone(), ..Watch::default() };
    let plantings = Plantings::new(Some(watch));
    note(&plantings, &top);
    let planted = plantings.report().0.into_iter();
    planted.map(|it| (it.path.strip_prefix(&top).unwrap().to_owned(), it.why)).collect()
}

/// A Makefile and a link that leads out of the workspace from `c`, both in `a/b`.
fn brought(top: &Path) {
    std::fs::create_dir_all(top.join("a/b")).unwrap();
    std::fs::write(top.join("a/b/Makefile"), "").unwrap();
    std::os::unix::fs::symlink("../../out", top.join("a/b/link")).unwrap();
}

fn moves(top: &Path, from: &str, to: &str) -> [PathBuf; 2] {
    std::fs::rename(top.join(from), top.join(to)).unwrap();
    [from, to].map(|name| top.join(name))
}

#[test]
fn links_that_were_there_matter_where_their_directory_comes_to_lie() {
    let told = looked_at(brought, |plantings, top| {
        let [from, to] = moves(top, "a/b", "c");
        plantings.moved(Some(&from), Some(&to), true);
    });
    assert_eq!(told, [("c/link".into(), Why::Link)]);
    let told = looked_at(brought, |plantings, top| {
        let [from, to] = moves(top, "a/b", "a/c");
        plantings.moved(Some(&from), Some(&to), true);
    });
    assert!(told.is_empty(), "{told:?}");
}

#[test]
fn what_could_not_be_seen_before_is_looked_at_where_it_comes_to_lie() {
    let all = [("c/Makefile".into(), Why::File(0)), ("c/link".into(), Why::Link)];
    let told = looked_at(brought, |plantings, top| {
        let [_, to] = moves(top, "a/b", "c");
        plantings.moved(None, Some(&to), true);
    });
    assert_eq!(told, all);
    let told = looked_at(brought, |plantings, top| {
        plantings.opened(|| Ok(top.join("a/b")));
        let [from, to] = moves(top, "a/b", "c");
        plantings.moved(Some(&from), Some(&to), true);
    });
    assert_eq!(told, all);
}

#[test]
fn what_cannot_be_looked_at_is_not_gone() {
    let long = Path::new("/w").join("x/".repeat(3000));
    let missing = std::fs::symlink_metadata("/nonexistent/x").unwrap_err();
    assert!(is_gone(&missing) && !is_gone(&std::fs::symlink_metadata(&long).unwrap_err()));
    let plantings = plantings();
    plantings.note_link(|| Ok(long.join("link")));
    plantings.opened(|| Ok(long.clone()));
    let told = plantings.report().0.into_iter().map(|it| it.why);
    assert_eq!(told.collect::<Vec<_>>(), [Why::Unseen, Why::Link]);
}

#[test]
fn links_matter_by_what_they_lead_to_for_who_is_outside() {
    let told = looked_at(
        |_| {},
        |plantings, top| {
            let inside = top.display();
            for (name, target) in [
                ("cwd", "/proc/self/cwd/x".to_owned()),
                ("in", format!("{inside}/x")),
                ("proc", format!("/proc/self/root{inside}/x")),
                ("through", format!("/tmp/x/../..{inside}/x")),
                ("tmp", "/tmp/x".into()),
            ] {
                std::os::unix::fs::symlink(target, top.join(name)).unwrap();
                plantings.note_link(|| Ok(top.join(name)));
            }
        },
    );
    let names: Vec<_> = told.iter().map(|(path, _)| path.to_str().unwrap()).collect();
    assert_eq!(names, ["cwd", "proc", "through", "tmp"]);
}
