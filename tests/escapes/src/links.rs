//! Links and paths that lead elsewhere once somebody has looked where they lead.

use crate::{
    Case, cases,
    stage::{SECRET, Stage},
};

pub(crate) const CASES: &[Case] = cases![
    leading_a_link_elsewhere_once_it_is_known,
    leading_elsewhere_what_a_known_path_climbs_from,
];

fn leading_a_link_elsewhere_once_it_is_known(stage: &Stage) {
    let profile = stage.file(
        "strict.toml",
        "extends = \"workspace\"\nhiding = \"strict\"\n[files]\nread = [\"${home}/fixed\"]\n",
    );
    let one = stage.file("fixed/one", "one");
    let link = stage.home().join("fixed/link");
    std::os::unix::fs::symlink(stage.work().join("way"), &link).expect("a link");
    let secret = stage.home().join(".ssh/id_ed25519");
    let [profile, link, one, secret] =
        [&profile, &link, &one, &secret].map(|path| path.to_str().expect("UTF-8"));
    stage.holds(profile, "stale_link", &[link, one, secret]);
}

fn leading_elsewhere_what_a_known_path_climbs_from(stage: &Stage) {
    let fixed = stage.directory("fixed");
    stage.directory(&format!("fixed{}", "/d".repeat(24)));
    stage.file("fixed/etc/hostname", SECRET);
    let profile = stage.file(
        "strict.toml",
        "extends = \"workspace\"\nhiding = \"strict\"\n[files]\nread = [\"${home}/fixed/d\"]\nhide = [\"${home}/fixed/etc\"]\n",
    );
    let [profile, fixed] = [&profile, &fixed].map(|path| path.to_str().expect("UTF-8"));
    stage.holds(profile, "stale_climb", &[fixed]);
}
