//! The report in a real browser: it renders, without script errors, and tables sort.

use bench::{
    figure::{Bar, Curve, Drawing, Figure},
    report::{self, Section},
    sheet::{Cell, Sheet},
};
use std::{
    fs,
    path::{Path, PathBuf},
};
use test_support::browse;

fn section() -> Section {
    let mut sheet = Sheet::new("A table", &[("name", 0, false), ("number", 0, true)]);
    for (name, value) in [("ten", 10.0), ("two", 2.0), ("<three>", 3.0)] {
        sheet.push(vec![name.into(), Cell::number(format!("{value} %"), value)]);
    }
    let mut section =
        Section::new("one", "An experiment", "`all` costs 1 %.".to_owned(), vec![sheet]);
    let bar = |name: &str, value: f64| Bar {
        group: String::new(),
        name: name.to_owned(),
        value,
        low: value - 0.01,
        high: value + 0.01,
    };
    let bars = vec![bar("all", 1.05), bar("fast", 1.0)];
    let curve = Curve { name: "it".to_owned(), points: vec![(0.1, 0.0), (1.0, 1.0)] };
    for drawing in [
        Drawing::Bars(bars.clone()),
        Drawing::Waterfall(bars),
        Drawing::Cumulative { axis: "time".to_owned(), curves: vec![curve] },
    ] {
        let (title, description) = ("A figure".to_owned(), "What it shows".to_owned());
        section.figures.push(Figure { title, description, drawing });
    }
    section.raw = "round,wall_s\n1,0.5\n".to_owned();
    section
}

#[test]
fn the_page_renders_sorts_and_has_names_for_everything() {
    let directory = tempfile::tempdir().expect("a directory");
    let page = directory.path().join("report.html");
    let check = "<script>addEventListener('load', () => {
        document.querySelectorAll('[data-sort]')[1].click();
        const rows = [...document.querySelectorAll('tbody tr')].map(row => row.children[0].textContent);
        const named = [...document.querySelectorAll('svg')].every(svg => svg.getAttribute('role') === 'img'
            && svg.getAttribute('aria-labelledby').split(' ').every(id => document.getElementById(id).textContent));
        const drawn = [...document.querySelectorAll('svg')].every(svg => svg.getBoundingClientRect().height > 50);
        const heads = [...document.querySelectorAll('th')].every(head => head.scope);
        document.title = JSON.stringify({ rows, named, drawn, heads, lang: document.documentElement.lang });
    });</script></body>";
    let html = report::html(&[section()]).replace("</body>", check);
    assert!(html.len() < 3 << 20 && !html.contains("http-equiv=\"refresh\""));
    fs::write(&page, html).expect("a file");
    let dom = browse(&page, &["--dump-dom"]);
    let title = dom.split("<title>").nth(1).and_then(|it| it.split("</title>").next());
    let title = title.expect("a title").replace("&lt;", "<").replace("&gt;", ">");
    let want =
        r#"{"rows":["two","<three>","ten"],"named":true,"drawn":true,"heads":true,"lang":"en"}"#;
    assert_eq!(title, want);
}

#[test]
fn the_page_is_drawn_in_light_and_in_dark() {
    let directory = tempfile::tempdir().expect("a directory");
    let page = directory.path().join("report.html");
    fs::write(&page, report::html(&[section()])).expect("a file");
    for (name, flag) in [("light", "--window-size=900,1400"), ("dark", "--force-dark-mode")] {
        let picture = directory.path().join(format!("{name}.png"));
        let into = format!("--screenshot={}", picture.display());
        browse(&page, &[flag, &into]);
        let bytes = fs::read(&picture).expect("a picture").len();
        assert!(bytes > 5000, "{name}: {bytes} bytes are an empty page");
    }
}

/// axe-core, as `scripts/setup axe-core` puts it.
fn axe() -> String {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || Path::new(&std::env::var_os("HOME").expect("HOME is set")).join(".cache");
    let place = cache.unwrap_or_else(home).join("dewar");
    let found = fs::read_dir(&place).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = found
        .map(|path| path.join("node_modules/axe-core/axe.min.js"))
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    let newest = found.pop().unwrap_or_else(|| {
        panic!("no axe-core below {}: `scripts/setup axe-core` fetches it", place.display())
    });
    fs::read_to_string(newest).expect("a script")
}

#[test]
fn a_checker_of_accessibility_finds_nothing_in_light_or_in_dark() {
    let directory = tempfile::tempdir().expect("a directory");
    let check = "<script>addEventListener('load', () => axe.run(document).then(found => {
        const said = it => it.id + ': ' + it.nodes.map(node => node.target.join(' ')).join(', ');
        const checked = new Set(found.passes.map(it => it.id));
        document.title = JSON.stringify({
            violations: found.violations.map(said),
            contrast: checked.has('color-contrast'), names: checked.has('svg-img-alt'),
        });
    }));</script></body>";
    let page = report::html(&[section()]);
    for (name, scheme) in [("dark", 0), ("light", 1)] {
        let file = directory.path().join(format!("{name}.html"));
        let checked = page.replace("</body>", &format!("<script>{}</script>{check}", axe()));
        fs::write(&file, checked).expect("a file");
        let flag = format!("--blink-settings=preferredColorScheme={scheme}");
        let dom = browse(&file, &["--dump-dom", &flag]);
        let title = dom.split("<title>").nth(1).and_then(|it| it.split("</title>").next());
        let want = r#"{"violations":[],"contrast":true,"names":true}"#;
        assert_eq!(title, Some(want), "{name}");
    }
}

#[test]
fn the_page_asks_nobody_for_anything() {
    let html = report::html(&[section()]);
    for word in ["src=\"http", "href=\"http", "@import", "url(http", "<link"] {
        assert!(!html.contains(word), "{word}");
    }
    assert!(html.contains("default-src 'none'"));
}
