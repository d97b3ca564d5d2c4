//! `dewar policy av`, `transition`, `member`, `change`.

use super::load::PolicySource;
use crate::failure::Usage;
use crate::output;
use clap::Args;
use cli::look::did_you_mean;
use security_server::explain::Most;
use security_server::policy::{Context, Policy, TypeRuleKind};
use security_server::{AvDecision, ClassId, Engine};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, BufRead, BufWriter, Write};

const AV_EXAMPLES: &str = "\
Examples:
  dewar policy av -f policy.33 system_u:system_r:sshd_t:s0 \\
      system_u:object_r:shadow_t:s0 file
  dewar policy av -f agent -p write dewar_u:dewar_r:main_t dewar_u:object_r:usr_t file
  dewar policy av -f policy.33 --batch < questions
                                one `SOURCE TARGET CLASS` a line, one JSON answer a line

Exit status: 0, also for a denial; 2 for wrong use, a mistake in the policy, or a context or
class that it lacks. With --batch, answers say so, and the status is 0.";

/// Ask what a subject may do to an object, and why.
#[derive(Debug, Args)]
#[command(after_help = AV_EXAMPLES)]
pub(super) struct AvArgs {
    #[command(flatten)]
    question: QuestionArgs,

    /// Explain this permission (repeat for several) [default: all of the class]
    #[arg(short, long, value_name = "PERMISSION")]
    permission: Vec<String>,
}

const LABEL_STATUS: &str = "\
Exit status: 0; 2 for wrong use, a mistake in the policy, a context or class that it lacks, or a
computed context that is not valid in it. With --batch, answers say so, and the status is 0.";

/// A question about a label.
#[derive(Debug, Args)]
#[command(after_help = LABEL_STATUS)]
pub(super) struct LabelArgs {
    #[command(flatten)]
    question: QuestionArgs,

    /// Name of the new object, for rules that name it
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

#[derive(Debug, Args)]
struct QuestionArgs {
    #[command(flatten)]
    policy: PolicySource,

    /// Context of the subject
    #[arg(value_name = "SOURCE", required_unless_present = "batch")]
    source: Option<String>,

    /// Context of the object
    #[arg(value_name = "TARGET", required_unless_present = "batch")]
    target: Option<String>,

    /// Class of the object
    #[arg(value_name = "CLASS", required_unless_present = "batch")]
    class: Option<String>,

    /// Read one question a line, write one JSON answer a line
    #[arg(long, conflicts_with = "source")]
    batch: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl QuestionArgs {
    fn single(&self, engine: &Engine) -> anyhow::Result<(Context, Context, ClassId)> {
        let policy = engine.policy();
        let context = |text: &Option<String>| {
            let text = text.as_deref().unwrap_or_default();
            let parsed = policy.parse_context(text);
            parsed
                .map_err(|error| Usage(format!("`{text}`: {error}{}", meant_context(policy, text))))
        };
        let name = self.class.as_deref().unwrap_or_default();
        let class = policy.class(name);
        let class = class.ok_or_else(|| Usage(no_class(policy, name)))?;
        Ok((context(&self.source)?, context(&self.target)?, class))
    }
}

fn no_class(policy: &Policy, name: &str) -> String {
    let meant = did_you_mean(name, policy.classes.keys().map(|it| &**it));
    format!("the policy has no class `{name}`{meant}")
}

/// What may have been meant by the first part of a context that the policy lacks.
fn meant_context(policy: &Policy, text: &str) -> String {
    let mut parts = text.split(':');
    let [user, role, kind] = [(); 3].map(|()| parts.next().unwrap_or_default());
    if !policy.users.contains_key(user) {
        did_you_mean(user, policy.users.keys().map(|it| &**it))
    } else if !policy.roles.contains_key(role) {
        did_you_mean(role, policy.roles.keys().map(|it| &**it))
    } else if !policy.types.contains_key(kind) {
        did_you_mean(kind, policy.types.keys().map(|it| &**it))
    } else {
        String::new()
    }
}

/// Carries out `dewar policy av`.
pub(super) fn av(args: &AvArgs) -> anyhow::Result<()> {
    let engine = args.question.policy.engine()?;
    if args.question.batch {
        return batch(&engine, |asked, _| av_json(&engine, asked));
    }
    let (source, target, class) = args.question.single(&engine)?;
    let entry = &engine.policy().classes[class.index()];
    let bit = |name: &String| {
        let class = engine.policy().class_name(class);
        let bit = entry.permission(name);
        let meant = did_you_mean(name, entry.permissions.keys().map(|it| &**it));
        bit.ok_or_else(|| Usage(format!("class `{class}` has no permission `{name}`{meant}")))
    };
    let perms = args.permission.iter().map(bit).collect::<Result<Vec<u32>, Usage>>()?;
    let perms = if perms.is_empty() { entry.all_permissions() } else { perms.iter().sum() };
    let reasons = engine.explain(&source, &target, class, perms);
    let reasons = reasons.into_words_within(engine.policy(), Most::OF_A_LIST);
    let decision = engine.compute_av(&source, &target, class);
    if args.question.json {
        let mut value = decision_json(engine.policy(), class, decision);
        value["rules"] = json!(reasons.rules);
        value["reason"] = json!(reasons.reason);
        value["would_allow"] = json!(reasons.would_allow);
        return Ok(output::print(format!("{value}\n").as_bytes())?);
    }
    let mut text = String::new();
    for (word, av) in [("allowed", decision.allowed), ("auditallow", decision.auditallow)] {
        text += &format!("{word:12}{}\n", names(engine.policy(), class, av).join(" "));
    }
    let silent = !decision.auditdeny & !decision.allowed & entry.all_permissions();
    text += &format!("{:12}{}\n", "dontaudit", names(engine.policy(), class, silent).join(" "));
    if decision.permissive {
        text += "the domain is permissive: denials are recorded, not enforced\n";
    }
    for rule in reasons.rules {
        text += &format!("  {rule}\n");
    }
    if !reasons.reason.is_empty() {
        text += &format!("denied: {}\n", reasons.reason);
    }
    if let Some(rule) = reasons.would_allow {
        text += &format!("would allow: {rule}\n");
    }
    Ok(output::print(text.as_bytes())?)
}

/// Carries out `dewar policy transition`, `member` and `change`.
pub(super) fn label(args: &LabelArgs, kind: TypeRuleKind) -> anyhow::Result<()> {
    let engine = args.question.policy.engine()?;
    let policy = engine.policy();
    let answer = |(source, target, class): (&Context, &Context, ClassId), name: Option<&str>| {
        let label = engine.compute_label(kind, source, target, class, name);
        label.map(|label| policy.format_context(&label))
    };
    if args.question.batch {
        return batch(&engine, |asked, name| match answer(asked, name) {
            Ok(label) => json!({"context": label}),
            Err(label) => json!({"error": format!("`{label}` is not valid")}),
        });
    }
    let (source, target, class) = args.question.single(&engine)?;
    let label = answer((&source, &target, class), args.name.as_deref());
    let label = label.map_err(|label| {
        Usage(format!("the computed context `{label}` is not valid in this policy"))
    })?;
    let text =
        if args.question.json { format!("{}\n", json!({"context": label})) } else { label + "\n" };
    Ok(output::print(text.as_bytes())?)
}

/// Answers questions of standard input, `SOURCE TARGET CLASS [NAME]` a line, one JSON object a
/// line.
fn batch(
    engine: &Engine,
    answer: impl Fn((&Context, &Context, ClassId), Option<&str>) -> Value,
) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut contexts = Contexts { policy: engine.policy(), known: HashMap::new() };
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let value = match contexts.question(&words) {
            Ok(asked) => answer((asked.0, asked.1, asked.2), words.get(3).copied()),
            Err(error) => json!({"error": error}),
        };
        match writeln!(out, "{value}") {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
    Ok(out.flush()?)
}

/// The most contexts that are kept: questions come from outside.
const MOST_CONTEXTS: usize = 100_000;

/// Contexts of earlier questions.
struct Contexts<'a> {
    policy: &'a Policy,
    known: HashMap<String, Context>,
}

impl Contexts<'_> {
    fn question(&mut self, words: &[&str]) -> Result<(&Context, &Context, ClassId), String> {
        let [source, target, class, ..] = words else {
            return Err("a question reads `SOURCE TARGET CLASS`".to_owned());
        };
        if self.known.len() > MOST_CONTEXTS {
            self.known.clear();
        }
        for text in [source, target] {
            if !self.known.contains_key(*text) {
                let parsed = self.policy.parse_context(text);
                let parsed = parsed.map_err(|error| format!("`{text}`: {error}"))?;
                self.known.insert((*text).to_owned(), parsed);
            }
        }
        let id = self.policy.class(class);
        let id = id.ok_or_else(|| no_class(self.policy, class))?;
        Ok((&self.known[*source], &self.known[*target], id))
    }
}

fn names(policy: &Policy, class: ClassId, av: u32) -> Vec<&str> {
    let class = policy.classes.get_index(class.index());
    class.into_iter().flat_map(|(_, class)| class.names_of(av)).collect()
}

fn av_json(engine: &Engine, (source, target, class): (&Context, &Context, ClassId)) -> Value {
    decision_json(engine.policy(), class, engine.compute_av(source, target, class))
}

fn decision_json(policy: &Policy, class: ClassId, decision: AvDecision) -> Value {
    json!({
        "allowed": names(policy, class, decision.allowed),
        "auditallow": names(policy, class, decision.auditallow),
        "auditdeny": names(policy, class, decision.auditdeny),
        "permissive": decision.permissive,
    })
}
