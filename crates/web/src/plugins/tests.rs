use super::*;
use crate::config::Config;
use flask::{
    AccessVector, Decision, Explanation, LabelError, LabelRules, Question, Seqno, Unreachable,
};
use security_server::Server;
use std::{
    sync::{
        atomic::AtomicBool,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Duration,
};

/// So long nothing of this takes: what has not come by then is held up.
const PATIENCE: Duration = Duration::from_secs(20);
const SLOW: &str = "dewar_u:dewar_r:slow_t";

/// A security server at which one compilation waits: that which asks for `SLOW` first.
struct Gate {
    server: Arc<Server>,
    is_open: AtomicBool,
    reached: Sender<()>,
    opened: Mutex<Receiver<()>>,
}

impl SecurityServer for Gate {
    fn context_to_sid(&self, context: &str) -> Result<Sid, LabelError> {
        if context == SLOW && !self.is_open.swap(true, Relaxed) {
            self.reached.send(()).unwrap();
            self.opened.lock().unwrap().recv().unwrap();
        }
        self.server.context_to_sid(context)
    }

    fn seqno(&self) -> Result<Seqno, Unreachable> {
        self.server.seqno()
    }

    fn compute_av(&self, q: Question) -> Result<Decision, Unreachable> {
        self.server.compute_av(q)
    }

    fn compute_create(&self, q: Question, name: Option<&str>) -> Result<Sid, LabelError> {
        self.server.compute_create(q, name)
    }

    fn compute_member(&self, q: Question) -> Result<Sid, LabelError> {
        self.server.compute_member(q)
    }

    fn sid_to_context(&self, sid: Sid) -> Result<String, LabelError> {
        self.server.sid_to_context(sid)
    }

    fn label_rules(&self) -> Result<LabelRules, Unreachable> {
        self.server.label_rules()
    }

    fn explain(&self, q: Question, wanted: AccessVector) -> Result<Explanation, Unreachable> {
        self.server.explain(q, wanted)
    }
}

/// Plugins, their policy, and the other ends of its gate, which is open until it is shut.
struct Scene {
    plugins: Plugins,
    gate: Arc<Gate>,
    reached: Receiver<()>,
    open: Sender<()>,
}

impl Scene {
    fn new() -> Self {
        let rules = "(type slow_t) (roletype dewar_r slow_t)\n\
            (allow host_t slow_t (plugin (load call)))\n\
            (allow slow_t self (plugin (read_request write_reply)))";
        let policy = [crate::manager::policy(Path::new("/nowhere"), &[]), rules.to_owned()];
        let server = Server::from_cil(&policy.map(|text| ("cil".to_owned(), text)));
        let manager = Arc::new(Manager::new(Arc::new(server.unwrap())).unwrap());
        let ((reached_by, reached), (open, opened)) = (channel(), channel());
        let gate = Arc::new(Gate {
            server: Arc::clone(&manager.server),
            is_open: AtomicBool::new(true),
            reached: reached_by,
            opened: Mutex::new(opened),
        });
        let own = manager.sid(HOST_CONTEXT).unwrap();
        let host = PluginHost::new(Arc::clone(&gate) as Arc<dyn SecurityServer>, own).unwrap();
        let plugins = Plugins {
            host,
            manager,
            all: ArcSwap::default(),
            generation: AtomicU64::new(1),
            changes: Mutex::default(),
            workers: 1,
        };
        Self { plugins, gate, reached, open }
    }

    /// Does `compiles`, and `meanwhile` once that is about to compile what has the label `SLOW`;
    /// what came of both. The latter must not wait for the former.
    fn meanwhile<C: Send, M: Send>(
        &self,
        compiles: impl FnOnce() -> C + Send,
        meanwhile: impl FnOnce() -> M + Send,
    ) -> (C, M) {
        self.gate.is_open.store(false, Relaxed);
        thread::scope(|scope| {
            let compiles = scope.spawn(compiles);
            self.reached.recv().unwrap();
            let (done, is_done) = channel();
            scope.spawn(move || done.send(meanwhile()).unwrap());
            let first = is_done.recv_timeout(PATIENCE);
            self.open.send(()).unwrap();
            (compiles.join().unwrap(), first.expect("it waits for the compiler"))
        })
    }
}

fn labelled(label: Option<&str>, route: &str) -> PluginConfig {
    let (route, label) = (Some(route.to_owned()), label.map(str::to_owned));
    PluginConfig { route, label, ..PluginConfig::default() }
}

fn says(letter: char) -> String {
    format!(
        "long handle(const char *in, long n, char *out, long room) {{ out[0] = '{letter}'; return 1; }}"
    )
}

#[test]
fn a_plugin_is_unloaded_while_another_is_compiled() {
    let scene = Scene::new();
    let plugins = &scene.plugins;
    let slow = labelled(Some(SLOW), "/slow/");
    for replace in [false, true] {
        plugins.put("other", &labelled(None, "/other/"), says('o').as_bytes(), None).unwrap();
        let (put, removed) = scene.meanwhile(
            || plugins.put("slow", &slow, says('s').as_bytes(), Some(replace)),
            || plugins.remove("other"),
        );
        put.unwrap();
        assert!(removed && plugins.host.call("other", b"").is_err());
        assert_eq!(plugins.host.call("slow", b"").unwrap(), b"s");
    }
}

#[test]
fn a_plugin_is_unloaded_while_those_of_a_new_configuration_are_compiled() {
    let scene = Scene::new();
    let plugins = &scene.plugins;
    plugins.put("other", &labelled(None, "/other/"), says('o').as_bytes(), None).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("slow.e");
    fs::write(&file, says('s')).unwrap();
    let before = Config::new(directory.path().to_owned());
    let mut config = before.clone();
    let slow = PluginConfig { file, ..labelled(Some(SLOW), "/slow/") };
    config.plugins.insert("slow".to_owned(), slow);
    let policy = Arc::clone(&scene.gate) as Arc<dyn SecurityServer>;
    let (compiled, removed) =
        scene.meanwhile(|| plugins.compiled(&config, &policy), || plugins.remove("other"));
    assert!(removed);
    plugins.following(compiled.unwrap(), &before).unwrap().install();
    let names: Vec<_> = plugins.all().iter().map(|plugin| plugin.name.clone()).collect();
    assert_eq!(names, ["slow"], "what was unloaded meanwhile is not brought back");
}

#[test]
fn of_two_that_replace_a_plugin_at_once_the_later_stays() {
    let scene = Scene::new();
    let plugins = &scene.plugins;
    let config = |route| labelled(Some(SLOW), route);
    plugins.put("it", &config("/a/"), says('1').as_bytes(), None).unwrap();
    let (earlier, later) = scene.meanwhile(
        || plugins.put("it", &config("/a/"), says('2').as_bytes(), Some(true)),
        || plugins.put("it", &config("/b/"), says('3').as_bytes(), Some(true)),
    );
    later.unwrap();
    let why = earlier.expect_err("another came later").to_string();
    assert!(why.contains("came later"), "{why}");
    assert_eq!(plugins.host.call("it", b"").unwrap(), b"3");
    let infos: Vec<_> = plugins.host.list().into_iter().map(|it| (it.name, it.version)).collect();
    assert_eq!(infos, [("it".to_owned(), 2)]);
    assert_eq!(plugins.all()[0].config.route.as_deref(), Some("/b/"));
    // Of two that load it, one does.
    plugins.remove("it");
    let (earlier, later) = scene.meanwhile(
        || plugins.put("it", &config("/a/"), says('4').as_bytes(), Some(false)),
        || plugins.put("it", &config("/b/"), says('5').as_bytes(), Some(false)),
    );
    later.unwrap();
    let why = earlier.expect_err("there is one").to_string();
    assert!(why.contains("already a plugin"), "{why}");
    assert_eq!(plugins.host.call("it", b"").unwrap(), b"5");
}
