//! `network.registries`: tools by name become the hosts that their own configuration names.

use crate::error::{Problem, Reporter, closest};
use crate::merged::{Direction, NetworkRule, Profile};
use crate::network::{self, NetworkObject};
use crate::source::Located;
use crate::variables::Variables;
use registries::Tool;

/// The rules that the name of a tool stands for.
pub(crate) fn rules(
    tool: &Located<String>,
    variables: &Variables,
    reporter: &mut Reporter,
) -> Vec<NetworkRule> {
    let checked = check(&tool.value, variables);
    if reporter.take(checked, tool.place).is_none() {
        return Vec::new();
    }
    let found = variables.registries.get(&tool.value);
    let endpoints = found.into_iter().flat_map(|found| &found.endpoints);
    // What is no host in the words of a profile is reached by nobody.
    let parsed = endpoints.filter_map(|endpoint| network::parse_endpoints(endpoint).ok());
    parsed
        .map(|endpoints| NetworkRule {
            target: NetworkObject::Ip(endpoints),
            direction: Direction::Connect,
            place: tool.place,
        })
        .collect()
}

fn check(name: &str, variables: &Variables) -> Result<(), Problem> {
    let names = Tool::ALL.map(Tool::name);
    if !names.contains(&name) {
        let help = match closest(name, names.into_iter()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("they are {}; name other hosts in `network.connect`", names.join(", ")),
        };
        return Err(Problem::bad(name, "a tool whose registries are known", help));
    }
    match variables.registries.get(name).and_then(|found| found.problem.as_ref()) {
        Some(problem) => Err(Problem::bad(
            name,
            "a tool whose configuration can be read",
            format!("{problem}; mend that file, or name the hosts in `network.connect`"),
        )),
        None => Ok(()),
    }
}

/// Has the tools that `profile` names told where their registries are, unless it tells them itself.
pub(crate) fn tell(profile: &mut Profile, variables: &Variables) {
    for tool in &profile.registries {
        for (name, value) in variables.registries.get(tool).into_iter().flat_map(|r| &r.variables) {
            profile.environment.set.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
}
