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
    plantings.note_for(Path::new("/w/x/HEAD"), Why::Repository);
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
    plantings.exchanged(Path::new("/w/c"), Path::new("/w/d"));
    plantings.exchanged(Path::new("/w/x"), Path::new("/w/d/Makefile"));
    plantings.note(Path::new("/w/.vscode/x"), true);
    plantings.note(Path::new("/w/makefile/x"), true);
    plantings.moved(Path::new("/w/a"), Path::new("/w/b"), true);
    plantings.moved(Path::new("/w/.vscode/x"), Path::new("/w/.vscode/y"), false);
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
            plantings.moved(Path::new("/w/a"), Path::new("/w/b"), true);
        }
        Ok(path.into())
    };
    plantings.note_at(place, true).unwrap();
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
            0 => plantings.removed(&path),
            1 => plantings.moved(&path, away, true),
            _ => plantings.moved(&path, Path::new("/w/last/Makefile"), true),
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
        plantings.note_link(|| Ok(top.join(name)))?;
    }
    for (from, to) in [("a/near", "near"), ("b/c", "c")] {
        std::fs::rename(top.join(from), top.join(to))?;
        plantings.moved(&top.join(from), &top.join(to), true);
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
        plantings
            .note_link(|| Ok(std::fs::canonicalize(directory.path()).unwrap().join(name)))
            .unwrap();
    }
    let report = plantings.report().0;
    let found: Vec<_> = report.iter().map(|it| it.path.file_name().unwrap()).collect();
    assert_eq!(found, ["out"], "{report:?}");
}
