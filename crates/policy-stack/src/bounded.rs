//! What a run inside is granted is never more than what the run around it is: for random profiles
//! of both, and whatever is asked.

use super::{Compound, LabelView, Layer, Stack};
use flask::{AccessVector, Class, FileKind, InitialSid, Question, SecurityServer, Sid, perm};
use inode_labels::Labels;
use labelling::{Networks, PathRules};
use profile::{Source, Variables};
use proptest::prelude::*;
use security_server::Server;
use std::{path::Path, sync::Arc};

/// The names of which paths consist, so that patterns and paths meet.
const NAMES: [&str; 4] = ["a", "b", "c", ".x"];

fn pattern() -> impl Strategy<Value = String> {
    let component = prop_oneof![
        6 => prop::sample::select(NAMES.to_vec()),
        2 => prop::sample::select(vec!["*", "**", "?", "[ab]"]),
    ];
    prop::collection::vec(component, 1..4).prop_map(|parts| format!("/{}", parts.join("/")))
}

fn list(name: &str, items: &[String]) -> String {
    let quoted: Vec<String> = items.iter().map(|item| format!("'{item}'")).collect();
    format!("{name} = [{}]\n", quoted.join(", "))
}

prop_compose! {
    fn files()(lists in prop::collection::vec(prop::collection::vec(pattern(), 0..4), 7)) -> String {
        let names = ["list", "read", "write", "exec", "readonly", "deny", "hide"];
        names.iter().zip(&lists).map(|(name, items)| list(&format!("files.{name}"), items)).collect()
    }
}

prop_compose! {
    /// The policy of a profile with two domains, one of which may be permissive.
    fn policy()(
        main in files(), own in files(), inherit: bool, permissive in prop::bool::weighted(0.1),
        ports in prop::collection::vec(prop::sample::select(vec!["*:*", "*:80", "10.0.0.0/8:1-99", "10.1.2.3:7/udp"]), 0..3),
        programs in prop::collection::vec(pattern(), 1..3),
    ) -> String {
        let ports: Vec<String> = ports.into_iter().map(str::to_owned).collect();
        let connect = list("network.connect", &ports);
        let exec = list("exec", &programs);
        let text = format!("{main}{connect}[domains.git]\n{exec}inherit = {inherit}\n{own}");
        let source = Source::Text { name: "random".into(), text, directory: "/".into() };
        let variables = Variables {
            workspace: "/a".into(), home: "/b".into(), tmp: "/c".into(), ..Variables::default()
        };
        let compiled = profile::load(&source, &variables, &mut profile::unresolved).unwrap();
        compiled.cil + if permissive { "(typepermissive git_t)\n" } else { "" }
    }
}

/// A policy with its labels.
struct Made {
    server: Arc<Server>,
    labels: Labels,
}

fn made(cil: &str) -> Made {
    let server = Server::from_cil(&[("random", cil)]).unwrap();
    let labels = Labels::new(PathRules::new(&server.label_rules().unwrap().files).unwrap());
    Made { server: Arc::new(server), labels }
}

/// The policy of a run, and those of runs inside of each other.
struct Runs {
    outer: Made,
    servers: Vec<Arc<Server>>,
    stack: Stack,
}

impl Runs {
    fn new(policies: &[String]) -> Self {
        let outer = made(&policies[0]);
        let stack = Stack::new(outer.server.clone());
        let mut servers = Vec::new();
        for (number, cil) in (1..).zip(&policies[1..]) {
            let Made { server, labels } = made(cil);
            servers.push(server.clone());
            let networks = Networks::new(&server.label_rules().unwrap());
            let name = "random".to_owned();
            stack.add(Arc::new(Layer { number, name, server, labels, networks, bytes: 0 }));
        }
        Self { outer, servers, stack }
    }

    /// Every subject of the run inside of `depth` others.
    fn subjects(&self, depth: usize) -> Vec<Sid> {
        let of = |server: &Server| {
            ["main_t", "git_t"]
                .map(|name| server.context_to_sid(&format!("dewar_u:dewar_r:{name}")).unwrap())
        };
        let mut all: Vec<Compound> = of(&self.outer.server).map(Compound::plain).to_vec();
        for (number, server) in (1..).zip(&self.servers[..depth]) {
            // As who has just asked, and after.
            let sids = [of(server).to_vec(), vec![InitialSid::Init.into()]].concat();
            let below = |it: &Compound, sid: Sid| Compound {
                outer: it.outer,
                also: Vec::new(),
                inner: [it.inner.clone(), vec![(number, sid)]].concat(),
            };
            all = all.iter().flat_map(|it| sids.iter().map(|sid| below(it, *sid))).collect();
        }
        all.into_iter().map(|it| self.stack.compose(it).unwrap()).collect()
    }

    /// The same subject or object, as the run around the innermost one of `depth` has it.
    fn around(&self, sid: Sid, depth: usize) -> Sid {
        let mut parts = self.stack.parts(sid).unwrap();
        parts.inner.retain(|(number, _)| (*number as usize) < depth);
        self.stack.compose(parts).unwrap()
    }

    /// A path as a subject sees it.
    fn file(&self, ssid: Sid, path: &str, kind: FileKind) -> Sid {
        LabelView::new(&self.outer.labels, &self.stack, ssid).of_path(Path::new(path), kind)
    }

    /// What one policy of `depth` grants by itself; 0 is that of the run.
    fn alone(&self, q: Question, number: usize) -> AccessVector {
        let part = |sid: Sid, absent: InitialSid| {
            let parts = self.stack.parts(sid).unwrap();
            match number {
                0 => parts.outer,
                _ => parts.part(u32::try_from(number).unwrap()).unwrap_or(absent.into()),
            }
        };
        let absent = match q.tclass {
            Class::Process => InitialSid::Kernel,
            _ => InitialSid::Unlabeled,
        };
        let q = Question { ssid: part(q.ssid, absent), tsid: part(q.tsid, absent), ..q };
        let server = number.checked_sub(1).map_or(&self.outer.server, |at| &self.servers[at]);
        let decision = server.compute_av(q).unwrap();
        if decision.permissive {
            return AccessVector::ALL;
        }
        decision.allowed | harmless(q, decision.allowed)
    }

    /// Nobody is granted more than every policy grants by itself, or than the run around is.
    fn check(&self, q: Question, depth: usize) -> Result<(), TestCaseError> {
        let granted = self.stack.compute_av(q).unwrap();
        if depth == 0 {
            let plain = Question { tsid: self.stack.parts(q.tsid).unwrap().outer, ..q };
            prop_assert_eq!(granted, self.outer.server.compute_av(plain).unwrap(), "{:?}", q);
            return Ok(());
        }
        let each = (0..=depth).map(|number| self.alone(q, number));
        let all = each.fold(AccessVector::ALL, |all, one| all & one);
        prop_assert_eq!(granted.allowed, all, "{:?} by all {} policies", q, depth + 1);
        prop_assert!(!granted.permissive, "{q:?}");
        let around =
            Question { ssid: self.around(q.ssid, depth), tsid: self.around(q.tsid, depth), ..q };
        let before = self.stack.compute_av(around).unwrap();
        let may = match before.permissive {
            true => AccessVector::ALL,
            false => before.allowed | harmless(around, before.allowed),
        };
        prop_assert!(may.contains(granted.allowed), "{q:?}: {granted:?} is more than {before:?}");
        Ok(())
    }

    /// What is made, or entered, has the label that each policy gives it, in the same layers.
    fn check_new(&self, q: Question, depth: usize) -> Result<(), TestCaseError> {
        let Ok(new) = self.stack.compute_create(q, None) else { return Ok(()) };
        let (of, from) = (self.stack.parts(new).unwrap(), self.stack.parts(q.ssid).unwrap());
        let numbers =
            |it: &Compound| it.inner.iter().map(|(number, _)| *number).collect::<Vec<_>>();
        prop_assert_eq!(numbers(&of), numbers(&from), "{:?}", q);
        let around =
            Question { ssid: self.around(q.ssid, depth), tsid: self.around(q.tsid, depth), ..q };
        let before = self.stack.compute_create(around, None).unwrap();
        prop_assert_eq!(self.around(new, depth), before, "{:?}", q);
        Ok(())
    }
}

/// What is granted to who stays in its domain, where a policy says nothing of it: to go on in it,
/// and to begin in it by a program that it may run.
fn harmless(q: Question, allowed: AccessVector) -> AccessVector {
    if q.tclass == Class::Process && q.ssid == q.tsid {
        return perm::process::TRANSITION;
    }
    let runs = q.tclass == Class::File && allowed.contains(perm::file::EXECUTE_NO_TRANS);
    if runs { perm::file::ENTRYPOINT } else { AccessVector::NONE }
}

fn path() -> impl Strategy<Value = String> {
    let names = prop::sample::select(NAMES.to_vec());
    prop::collection::vec(names, 0..5).prop_map(|parts| format!("/{}", parts.join("/")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_run_inside_is_never_granted_more_than_the_run_around_it(
        policies in prop::collection::vec(policy(), 2..4),
        paths in prop::collection::vec(path(), 1..12),
    ) {
        let depth = policies.len() - 1;
        let runs = Runs::new(&policies);
        let kinds = [
            (FileKind::File, Class::File), (FileKind::Dir, Class::Dir),
            (FileKind::Symlink, Class::LnkFile), (FileKind::Socket, Class::SockFile),
            (FileKind::Pipe, Class::FifoFile), (FileKind::Char, Class::ChrFile),
            (FileKind::Block, Class::BlkFile),
        ];
        // Processes of the run around, and of all that is inside of it.
        let all: Vec<(usize, Sid)> = (0..=depth)
            .flat_map(|depth| runs.subjects(depth).into_iter().map(move |sid| (depth, sid)))
            .collect();
        for (depth, ssid) in all.iter().copied() {
            for path in &paths {
                for (kind, tclass) in kinds {
                    let tsid = runs.file(ssid, path, kind);
                    runs.check(Question { ssid, tsid, tclass }, depth)?;
                    runs.check_new(Question { ssid, tsid, tclass }, depth)?;
                }
                let tsid = runs.file(ssid, path, FileKind::File);
                runs.check_new(Question { ssid, tsid, tclass: Class::Process }, depth)?;
            }
            for (_, tsid) in all.iter().copied() {
                for tclass in Class::all() {
                    runs.check(Question { ssid, tsid, tclass }, depth)?;
                }
            }
        }
        // Of a run that is forgotten, nobody may do anything.
        runs.stack.keep(&|number| number as usize != depth);
        for (ssid, tclass) in all.iter().flat_map(|it| Class::all().map(|tclass| (it.1, tclass))) {
            let q = Question { ssid, tsid: ssid, tclass };
            let is_gone = runs.stack.parts(ssid).is_none();
            let granted = runs.stack.compute_av(q).unwrap().allowed;
            prop_assert!(!is_gone || granted == AccessVector::NONE, "{:?}", q);
        }
    }
}
