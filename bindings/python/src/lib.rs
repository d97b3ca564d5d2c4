//! `import dewar`: see `dewar.pyi`. The lock of the interpreter is let go while anything is
//! decided: callbacks take it.
#![deny(unsafe_code)]

mod sys;

use object_manager::{
    About, AccessVector, ChangeError, Class, Daemon, Hint, Manager, OpenError, Question, Record, Sid,
};
use pyo3::{
    create_exception,
    exceptions::{PyConnectionError, PyOSError, PyPermissionError, PyValueError},
    prelude::*,
    types::{PyDict, PyTuple},
};
use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash as _, Hasher as _},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

create_exception!(dewar, Denied, PyPermissionError, "The policy, or the lack of an answer, denies it.");
create_exception!(dewar, PolicyError, PyValueError, "A policy, class, context or name that cannot be used.");
create_exception!(dewar, DaemonError, PyConnectionError, "The daemon does not answer, or says no.");

fn wrong(error: impl std::fmt::Display) -> PyErr {
    PolicyError::new_err(error.to_string())
}

fn not_opened(error: &OpenError) -> PyErr {
    match error {
        OpenError::Policy(_) | OpenError::Classes(_) => wrong(error),
        OpenError::Io(_) => PyOSError::new_err(error.to_string()),
        _ => DaemonError::new_err(error.to_string()),
    }
}

fn not_changed(error: &ChangeError) -> PyErr {
    match error {
        ChangeError::Policy(_) | ChangeError::Boolean(_) => wrong(error),
        _ => DaemonError::new_err(error.to_string()),
    }
}

#[derive(Clone)]
enum Written {
    Files(Vec<PathBuf>),
    Text(String, String),
}

#[pyclass(frozen, module = "dewar")]
struct Policy(Written);

#[pymethods]
impl Policy {
    #[staticmethod]
    #[pyo3(signature = (*paths))]
    fn from_files(paths: &Bound<'_, PyTuple>) -> PyResult<Self> {
        Ok(Self(Written::Files(paths.extract()?)))
    }

    #[staticmethod]
    #[pyo3(signature = (text, name = "policy.cil".to_owned()))]
    fn from_text(text: String, name: String) -> Self {
        Self(Written::Text(name, text))
    }
}

#[pyclass(frozen, module = "dewar")]
struct Context {
    sid: Sid,
    text: String,
    hint: Hint,
    /// Of which Avc.
    owner: u64,
}

#[pymethods]
impl Context {
    #[getter]
    fn r#type(&self) -> &str {
        self.text.split(':').nth(2).unwrap_or_default()
    }

    #[getter]
    fn sid(&self) -> u32 {
        self.sid.get()
    }

    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("<dewar.Context {}>", self.text)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().text == self.text)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.text.hash(&mut hasher);
        hasher.finish()
    }
}

#[pyclass(frozen, module = "dewar")]
struct Peer(object_manager::Peer);

#[pymethods]
impl Peer {
    #[getter]
    fn pid(&self) -> u32 {
        self.0.pid()
    }

    #[getter]
    fn uid(&self) -> u32 {
        self.0.uid()
    }

    #[getter]
    fn context(&self) -> Option<&str> {
        self.0.context()
    }

    #[getter]
    fn is_current(&self) -> bool {
        self.0.is_current()
    }
}

/// One permission or several.
#[derive(FromPyObject)]
enum Permissions {
    One(String),
    Many(Vec<String>),
}

#[pyclass(frozen, module = "dewar")]
struct Avc {
    manager: Arc<Manager>,
    id: u64,
}

impl Avc {
    fn question(
        &self,
        (subject, object): (&Context, &Context),
        tclass: &str,
        permissions: &Permissions,
    ) -> PyResult<(Question, AccessVector)> {
        if subject.owner != self.id || object.owner != self.id {
            return Err(wrong("the context is another Avc's: ask this one for it"));
        }
        let class = self.manager.class(tclass).map_err(wrong)?;
        let names = match permissions {
            Permissions::One(name) => std::slice::from_ref(name),
            Permissions::Many(names) => names,
        };
        let requested = self.requested(class, names)?;
        Ok((Question { ssid: subject.sid, tsid: object.sid, tclass: class }, requested))
    }

    fn requested(&self, class: Class, names: &[String]) -> PyResult<AccessVector> {
        names.iter().try_fold(AccessVector::NONE, |all, name| {
            Ok(all | self.manager.permission(class, name).map_err(wrong)?)
        })
    }

    fn labelled(&self, sid: Sid) -> PyResult<Context> {
        let text = self.manager.context(sid).map_err(wrong)?;
        Ok(Context { sid, text, hint: Hint::default(), owner: self.id })
    }
}

/// A record as a dictionary.
fn told<'py>(py: Python<'py>, record: &Record) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (record.to_json(),))
}

/// Calls back; what the callback raises is told where nobody can catch it.
fn call(callback: &Py<PyAny>, argument: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>) {
    Python::attach(|py| {
        let called = argument(py).and_then(|argument| callback.call1(py, (argument,)));
        if let Err(error) = called {
            error.write_unraisable(py, Some(callback.bind(py)));
        }
    });
}

#[pymethods]
impl Avc {
    #[new]
    #[pyo3(signature = (policy, *, classes = None, name = "python".to_owned(), daemon = Some(false), entries = None,
        permissive = false, audit = None, on_change = None))]
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        py: Python<'_>,
        policy: &Bound<'_, Policy>,
        classes: Option<&Bound<'_, PyDict>>,
        name: String,
        daemon: Option<bool>,
        entries: Option<usize>,
        permissive: bool,
        audit: Option<Py<PyAny>>,
        on_change: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let mut builder = Manager::builder(&name);
        match policy.get().0.clone() {
            Written::Files(paths) => {
                builder = paths.into_iter().fold(builder, |builder, path| builder.policy_file(path));
            }
            Written::Text(name, text) => builder = builder.policy_text(&name, &text),
        }
        for (name, permissions) in classes.into_iter().flatten() {
            let permissions: Vec<String> = permissions.extract()?;
            builder = builder.class(&name.extract::<String>()?, permissions);
        }
        builder = builder.daemon(match daemon {
            Some(false) => Daemon::No,
            Some(true) => Daemon::Insist,
            None => Daemon::IfThere,
        });
        if let Some(entries) = entries {
            builder = builder.entries(entries);
        }
        if permissive {
            builder = builder.permissive();
        }
        if let Some(audit) = audit {
            builder = builder.on_audit(move |record| {
                call(&audit, |py| Ok(told(py, record)?.unbind()));
            });
        }
        if let Some(change) = on_change {
            builder = builder.on_change(move |seqno| {
                call(&change, |py| Ok(seqno.0.into_pyobject(py)?.into_any().unbind()));
            });
        }
        let manager = py.detach(|| builder.open()).map_err(|error| not_opened(&error))?;
        Ok(Self { manager: Arc::new(manager), id: NEXT.fetch_add(1, Ordering::Relaxed) })
    }

    fn context(&self, py: Python<'_>, context: &str) -> PyResult<Context> {
        let sid = py.detach(|| self.manager.sid(context)).map_err(wrong)?;
        self.labelled(sid)
    }

    #[pyo3(signature = (subject, object, tclass, permissions, *, about = "", operation = "", pid = None))]
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn check(
        &self,
        py: Python<'_>,
        subject: &Bound<'_, Context>,
        object: &Bound<'_, Context>,
        tclass: &str,
        permissions: Permissions,
        about: &str,
        operation: &str,
        pid: Option<u32>,
    ) -> PyResult<()> {
        let (subject, object) = (subject.get(), object.get());
        let (q, requested) = self.question((subject, object), tclass, &permissions)?;
        let described = || {
            let described = About::object(about).operation(operation);
            pid.map_or_else(|| described.clone(), |pid| described.clone().by_process(pid))
        };
        let checked = py.detach(|| self.manager.check(q, requested, &object.hint, described));
        checked.map_err(|denied| {
            let error = Denied::new_err(denied.to_string());
            let value = error.value(py);
            let set = |name: &str, it: Py<PyAny>| value.setattr(name, it);
            let filled = || -> PyResult<()> {
                set("scontext", denied.scontext.into_pyobject(py)?.into_any().unbind())?;
                set("tcontext", denied.tcontext.into_pyobject(py)?.into_any().unbind())?;
                set("tclass", denied.tclass.into_pyobject(py)?.into_any().unbind())?;
                set("missing", denied.missing.into_pyobject(py)?.into_any().unbind())?;
                value.setattr("answered", denied.answered)
            };
            filled().err().unwrap_or(error)
        })
    }

    fn has_perm(
        &self,
        py: Python<'_>,
        subject: &Bound<'_, Context>,
        object: &Bound<'_, Context>,
        tclass: &str,
        permissions: Permissions,
    ) -> PyResult<bool> {
        let (subject, object) = (subject.get(), object.get());
        let (q, requested) = self.question((subject, object), tclass, &permissions)?;
        let verdict = py.detach(|| self.manager.has_perm(q, requested, &object.hint));
        Ok(!requested.is_empty() && verdict.is_ok_and(|verdict| verdict.granted()))
    }

    #[pyo3(signature = (subject, parent, tclass, name = None))]
    fn create(
        &self,
        py: Python<'_>,
        subject: &Bound<'_, Context>,
        parent: &Bound<'_, Context>,
        tclass: &str,
        name: Option<&str>,
    ) -> PyResult<Context> {
        let none = Permissions::Many(Vec::new());
        let (q, _) = self.question((subject.get(), parent.get()), tclass, &none)?;
        let sid = py.detach(|| self.manager.create(q, name)).map_err(wrong)?;
        self.labelled(sid)
    }

    fn explain<'py>(
        &self,
        py: Python<'py>,
        subject: &Bound<'_, Context>,
        object: &Bound<'_, Context>,
        tclass: &str,
        permissions: Permissions,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (q, requested) = self.question((subject.get(), object.get()), tclass, &permissions)?;
        let explained = py.detach(|| self.manager.explain(q, requested));
        let explained = explained.map_err(|error| DaemonError::new_err(error.to_string()))?;
        let words = PyDict::new(py);
        words.set_item("rules", explained.rules)?;
        words.set_item("reason", explained.reason)?;
        words.set_item("would_allow", explained.would_allow)?;
        Ok(words)
    }

    fn load(&self, py: Python<'_>, policy: &Bound<'_, Policy>) -> PyResult<u32> {
        let written = policy.get().0.clone();
        let loaded = py.detach(|| match &written {
            Written::Files(paths) => self.manager.load(paths),
            Written::Text(name, text) => self.manager.load_text(&[(name, text)]),
        });
        loaded.map(|seqno| seqno.0).map_err(|error| not_changed(&error))
    }

    fn set_boolean(&self, py: Python<'_>, name: &str, value: bool) -> PyResult<u32> {
        let set = py.detach(|| self.manager.set_booleans(&[(name, value)]));
        set.map(|seqno| seqno.0).map_err(|error| not_changed(&error))
    }

    #[getter]
    fn enforcing(&self) -> bool {
        self.manager.status().enforcing()
    }

    #[setter]
    fn set_enforcing(&self, value: bool) {
        self.manager.set_enforcing(value);
    }

    #[getter]
    fn seqno(&self) -> u32 {
        self.manager.seqno().0
    }

    #[getter]
    fn run(&self) -> Option<&str> {
        self.manager.run()
    }

    #[getter]
    fn lacking(&self) -> Vec<(String, String)> {
        self.manager.lacking().to_vec()
    }

    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.manager.stats();
        let counts = PyDict::new(py);
        counts.set_item("hint", stats.hint)?;
        counts.set_item("cache", stats.cache)?;
        counts.set_item("server", stats.server)?;
        Ok(counts)
    }
}

/// Who connected a socket.
#[pyfunction]
fn peer(py: Python<'_>, socket: &Bound<'_, PyAny>) -> PyResult<Peer> {
    let number: i32 = match socket.extract() {
        Ok(number) => number,
        Err(_) => socket.call_method0("fileno")?.extract()?,
    };
    let fd = sys::borrowed(number)?;
    // Another thread may close it meanwhile: then the system calls on it fail, or name another
    // peer, as they would in Python.
    let found = py.detach(|| object_manager::peer(fd));
    found.map(Peer).map_err(|error| PyOSError::new_err(error.to_string()))
}

#[pymodule]
fn dewar(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Denied", py.get_type::<Denied>())?;
    module.add("PolicyError", py.get_type::<PolicyError>())?;
    module.add("DaemonError", py.get_type::<DaemonError>())?;
    module.add_class::<Policy>()?;
    module.add_class::<Context>()?;
    module.add_class::<Peer>()?;
    module.add_class::<Avc>()?;
    module.add_function(wrap_pyfunction!(peer, module)?)
}
