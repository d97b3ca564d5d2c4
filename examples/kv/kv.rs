//! A key-value server whose entries are labelled objects: who may read, change or publish one is
//! decided by a policy.
//!
//!     kv SOCKET POLICY [--daemon] UID=CONTEXT...
//!
//! A line is a request, a line its answer: `get KEY`, `put KEY VALUE`, `delete KEY`, `label KEY`,
//! `relabel KEY CONTEXT`, `watch KEY` (every later value, until `revoked`). Processes in
//! `dewar run` have the context that their run vouches for, others the one that is given for their
//! user. The policy's booleans are changed by `dewar policy set`.

use object_manager::{About, Class, Daemon, Hint, Manager, Peer, Question, Sid, peer};
use std::{
    collections::HashMap,
    env, error, fs,
    io::{BufRead as _, BufReader, Write as _},
    os::{
        fd::AsFd as _,
        unix::net::{UnixListener, UnixStream},
    },
    sync::{Arc, Mutex, OnceLock},
    thread,
};

type Failure = Box<dyn error::Error + Send + Sync>;

const PERMISSIONS: [&str; 7] =
    ["create", "get", "put", "delete", "getattr", "relabelfrom", "relabelto"];

/// An object: its label, where its last answer lies, and what it holds.
struct Entry {
    sid: Sid,
    hint: Hint,
    value: String,
}

/// Somebody who is told of an entry, as long as that is granted.
struct Watcher {
    key: String,
    ssid: Sid,
    stream: UnixStream,
}

struct Store {
    manager: Manager,
    class: Class,
    /// Label of the store itself: what new entries are made in.
    sid: Sid,
    users: HashMap<u32, String>,
    entries: Mutex<HashMap<String, Entry>>,
    watchers: Mutex<Vec<Watcher>>,
}

/// Who asks.
struct Subject {
    sid: Sid,
    peer: Peer,
}

impl Store {
    fn subject(&self, stream: &UnixStream) -> Result<Subject, Failure> {
        let peer = peer(stream.as_fd())?;
        let context = peer.context().or(self.users.get(&peer.uid()).map(String::as_str));
        let context = context.ok_or_else(|| format!("user {} is nobody here", peer.uid()))?;
        Ok(Subject { sid: self.manager.sid(context)?, peer })
    }

    fn check(
        &self,
        subject: &Subject,
        (tsid, hint): (Sid, &Hint),
        permission: &str,
        (operation, key): (&str, &str),
    ) -> Result<(), Failure> {
        let requested = self.manager.permission(self.class, permission)?;
        let question = Question { ssid: subject.sid, tsid, tclass: self.class };
        let about = || About::object(key).operation(operation).by(&subject.peer);
        self.manager
            .check(question, requested, hint, about)
            .map_err(|denied| format!("denied {denied}").into())
    }

    fn answer(
        &self,
        subject: &Subject,
        line: &str,
        stream: &UnixStream,
    ) -> Result<String, Failure> {
        let mut words = line.splitn(3, ' ');
        let [word, key, rest] = [(); 3].map(|()| words.next().unwrap_or_default());
        let mut entries = self.entries.lock().unwrap();
        let check = |entry: &Entry, permission| {
            self.check(subject, (entry.sid, &entry.hint), permission, (word, key))
        };
        match (word, entries.get_mut(key)) {
            ("put", None) => {
                let made = Question { ssid: subject.sid, tsid: self.sid, tclass: self.class };
                let sid = self.manager.create(made, Some(key))?;
                let entry = Entry { sid, hint: Hint::default(), value: rest.into() };
                check(&entry, "create")?;
                entries.insert(key.into(), entry);
            }
            (_, None) => return Err("none".into()),
            ("get", Some(entry)) => {
                check(entry, "get")?;
                return Ok(format!("value {}", entry.value));
            }
            ("put", Some(entry)) => {
                check(entry, "put")?;
                entry.value = rest.into();
                self.tell(key, rest);
            }
            ("delete", Some(entry)) => {
                check(entry, "delete")?;
                entries.remove(key);
            }
            ("label", Some(entry)) => {
                check(entry, "getattr")?;
                return Ok(format!("label {}", self.manager.context(entry.sid)?));
            }
            ("relabel", Some(entry)) => {
                let new = self.manager.sid(rest)?;
                check(entry, "relabelfrom")?;
                self.check(subject, (new, &Hint::default()), "relabelto", (word, key))?;
                (entry.sid, entry.hint) = (new, Hint::default());
            }
            ("watch", Some(entry)) => {
                check(entry, "get")?;
                let watcher =
                    Watcher { key: key.into(), ssid: subject.sid, stream: stream.try_clone()? };
                self.watchers.lock().unwrap().push(watcher);
            }
            _ => return Err(format!("error no request `{word}`").into()),
        }
        Ok("ok".into())
    }

    fn tell(&self, key: &str, value: &str) {
        let mut watchers = self.watchers.lock().unwrap();
        // Whoever does not read is told no more.
        watchers.retain(|it| it.key != key || writeln!(&it.stream, "changed {value}").is_ok());
    }

    /// Another policy is in force: what it does not grant any more is taken back.
    fn revoke(&self) {
        let entries = self.entries.lock().unwrap();
        let granted = |watcher: &Watcher| {
            let Some(entry) = entries.get(&watcher.key) else { return false };
            let question = Question { ssid: watcher.ssid, tsid: entry.sid, tclass: self.class };
            let get = self.manager.permission(self.class, "get").expect("it is ours");
            let about = || About::object(watcher.key.as_str()).operation("watch");
            self.manager.check(question, get, &entry.hint, about).is_ok()
        };
        self.watchers.lock().unwrap().retain(|watcher| {
            let keep = granted(watcher);
            if !keep {
                let _ = writeln!(&watcher.stream, "revoked");
            }
            keep
        });
    }

    fn serve(&self, stream: &UnixStream) -> Result<(), Failure> {
        let mut subject = self.subject(stream)?;
        for line in BufReader::new(stream).lines() {
            if !subject.peer.is_current() {
                subject = self.subject(stream)?;
            }
            let answer = self.answer(&subject, &line?, stream);
            writeln!(&*stream, "{}", answer.unwrap_or_else(|error| error.to_string()))?;
        }
        Ok(())
    }
}

fn main() -> Result<(), Failure> {
    let mut words = env::args().skip(1);
    let (Some(socket), Some(policy)) = (words.next(), words.next()) else {
        return Err("usage: kv SOCKET POLICY [--daemon] UID=CONTEXT...".into());
    };
    let (mut daemon, mut users) = (Daemon::No, HashMap::new());
    for word in words {
        match word.split_once('=') {
            None if word == "--daemon" => daemon = Daemon::Insist,
            Some((uid, context)) => drop(users.insert(uid.parse()?, context.to_owned())),
            None => return Err(format!("`{word}` is no UID=CONTEXT").into()),
        }
    }
    let store: Arc<OnceLock<Arc<Store>>> = Arc::default();
    let changed = Arc::clone(&store);
    let manager = Manager::builder("kv")
        .policy_file(policy)
        .class("entry", PERMISSIONS)
        .daemon(daemon)
        .on_audit(|record| eprintln!("kv: {record}"))
        .on_change(move |_| changed.get().into_iter().for_each(|store| store.revoke()))
        .open()?;
    for (class, permission) in manager.lacking() {
        eprintln!("kv: the policy has no `{permission}` of class `{class}`");
    }
    let (class, sid) = (manager.class("entry")?, manager.sid("dewar_u:object_r:store_t")?);
    let run = manager.run().map(|run| format!(" as run {run}")).unwrap_or_default();
    let (entries, watchers) = Default::default();
    let opened = Arc::new(Store { manager, class, sid, users, entries, watchers });
    let _ = store.set(Arc::clone(&opened));
    // Left over from the last one.
    let _ = fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket)?;
    println!("ready{run}");
    for stream in listener.incoming() {
        let (stream, store) = (stream?, Arc::clone(&opened));
        thread::spawn(move || {
            if let Err(error) = store.serve(&stream) {
                let _ = writeln!(&stream, "refused {error}");
            }
        });
    }
    Ok(())
}
