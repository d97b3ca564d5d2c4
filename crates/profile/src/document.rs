//! One profile file as written: strings with their places, not yet looked into.

use crate::error::{Problem, Reporter, closest};
use crate::misplaced::misplaced;
use crate::source::{Located, TextSpan};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Also to find what a misplaced key was meant to be.
const KEYS: &[&str] = &[
    "description",
    "extends",
    "mode",
    "hiding",
    "propose.within",
    "capabilities",
    "exec",
    "files.list",
    "files.read",
    "files.write",
    "files.exec",
    "files.readonly",
    "files.deny",
    "files.hide",
    "files.guard",
    "files.guard_action",
    "files.unguarded",
    "network.connect",
    "network.bind",
    "network.registries",
    "network.netlink",
    "network.loopback",
    "network.inherit",
    "env.pass",
    "env.drop",
    "env.set",
    "limits.memory",
    "limits.processes",
    "limits.cpu",
    "limits.time",
    "limits.files",
    "limits.file_size",
    "domains.NAME.exec",
    "domains.NAME.from",
    "domains.NAME.noatsecure",
    "domains.NAME.serves",
    "domains.NAME.inherit",
    "domains.NAME.capabilities",
];

/// Every key of a profile, with the tables that it stands in. `domains.NAME` takes those of `files`
/// and `network`, too.
#[must_use]
pub fn keys() -> &'static [&'static str] {
    KEYS
}

/// The protocol of netlink that tells of interfaces and routes.
pub(crate) const ROUTE: &str = "route";

/// What a person wrote into one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Document {
    pub(crate) description: Option<Located<String>>,
    pub(crate) extends: Option<Located<String>>,
    pub(crate) mode: Option<Located<String>>,
    pub(crate) hiding: Option<Located<String>>,
    /// `[propose]`, and the profile that it names.
    pub(crate) propose: Option<Option<Located<String>>>,
    pub(crate) env: EnvironmentLists,
    pub(crate) limits: LimitTexts,
    /// The base domain.
    pub(crate) main: DomainLists,
    pub(crate) domains: Vec<(Located<String>, DomainLists)>,
}

/// Rights of one domain.
#[derive(Clone, Debug, Default)]
pub(crate) struct DomainLists {
    pub(crate) exec: Vec<Located<String>>,
    pub(crate) from: Option<Vec<Located<String>>>,
    pub(crate) noatsecure: Vec<Located<String>>,
    pub(crate) serves: Vec<Located<String>>,
    pub(crate) inherit: Option<Located<bool>>,
    pub(crate) capabilities: Vec<Located<String>>,
    pub(crate) files: FileLists,
    pub(crate) network: NetworkLists,
}

/// `[files]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileLists {
    pub(crate) list: Vec<Located<String>>,
    pub(crate) read: Vec<Located<String>>,
    pub(crate) write: Vec<Located<String>>,
    pub(crate) exec: Vec<Located<String>>,
    pub(crate) readonly: Vec<Located<String>>,
    pub(crate) deny: Vec<Located<String>>,
    pub(crate) hide: Vec<Located<String>>,
    pub(crate) guard: Option<Located<String>>,
    pub(crate) guard_action: Option<Located<String>>,
    pub(crate) unguarded: Vec<Located<String>>,
}

/// `[network]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkLists {
    pub(crate) connect: Vec<Located<String>>,
    pub(crate) bind: Vec<Located<String>>,
    /// Names of tools.
    pub(crate) registries: Vec<Located<String>>,
    /// Names of protocols; `true` is [`ROUTE`], `false` none.
    pub(crate) netlink: Option<Located<Vec<String>>>,
    pub(crate) loopback: Option<Located<String>>,
    pub(crate) inherit: Option<Located<bool>>,
}

/// `[env]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct EnvironmentLists {
    pub(crate) pass: Vec<Located<String>>,
    pub(crate) drop: Vec<Located<String>>,
    pub(crate) set: Vec<(Located<String>, Located<String>)>,
}

/// `[limits]`, integers as text.
#[derive(Clone, Debug, Default)]
pub(crate) struct LimitTexts {
    pub(crate) memory: Option<Located<String>>,
    pub(crate) processes: Option<Located<String>>,
    pub(crate) cpu: Option<Located<String>>,
    pub(crate) time: Option<Located<String>>,
    pub(crate) files: Option<Located<String>>,
    pub(crate) file_size: Option<Located<String>>,
}

/// Reads the text of source `file`. What is wrong goes to `reporter`; the rest is returned.
pub(crate) fn parse(text: &str, file: usize, reporter: &mut Reporter) -> Document {
    let (table, errors) = DeTable::parse_recoverable(text);
    let broken = !errors.is_empty();
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let place = TextSpan::new(file, span);
        let message = error.message().to_owned();
        reporter.report(Problem::Syntax { message }, Some(place));
    }
    if broken {
        // Half a table would only bring errors that follow from the first.
        return Document::default();
    }
    let mut top = Section::new(String::new(), table.get_ref(), file, reporter);
    read_document(&mut top)
}

fn read_document(top: &mut Section<'_, '_>) -> Document {
    let mut document = Document {
        description: top.string("description"),
        extends: top.string("extends"),
        mode: top.string("mode"),
        hiding: top.string("hiding"),
        ..Document::default()
    };
    document.main.capabilities = top.strings("capabilities");
    document.main.exec = top.strings("exec");
    top.section("files", |files| document.main.files = read_files(files));
    top.section("network", |network| document.main.network = read_network(network, true));
    top.section("env", |env| {
        document.env = EnvironmentLists {
            pass: env.strings("pass"),
            drop: env.strings("drop"),
            set: env.pairs("set"),
        };
    });
    top.section("propose", |propose| document.propose = Some(propose.string("within")));
    top.section("limits", |limits| document.limits = read_limits(limits));
    top.section("domains", |domains| {
        for name in domains.names() {
            let text = name.value.clone();
            domains.section(&text, |domain| document.domains.push((name, read_domain(domain))));
        }
    });
    top.finish();
    document
}

fn read_domain(domain: &mut Section<'_, '_>) -> DomainLists {
    let mut lists = DomainLists {
        exec: domain.strings("exec"),
        from: domain.has("from").then_some(domain.strings("from")),
        noatsecure: domain.strings("noatsecure"),
        serves: domain.strings("serves"),
        inherit: domain.boolean("inherit"),
        capabilities: domain.strings("capabilities"),
        ..DomainLists::default()
    };
    domain.section("files", |files| lists.files = read_files(files));
    domain.section("network", |network| lists.network = read_network(network, false));
    lists
}

fn read_files(files: &mut Section<'_, '_>) -> FileLists {
    FileLists {
        list: files.strings("list"),
        read: files.strings("read"),
        write: files.strings("write"),
        exec: files.strings("exec"),
        readonly: files.strings("readonly"),
        deny: files.strings("deny"),
        hide: files.strings("hide"),
        guard: files.string("guard"),
        guard_action: files.string("guard_action"),
        unguarded: files.strings("unguarded"),
    }
}

fn read_network(network: &mut Section<'_, '_>, may_inherit: bool) -> NetworkLists {
    NetworkLists {
        connect: network.strings("connect"),
        bind: network.strings("bind"),
        registries: network.strings("registries"),
        netlink: network.protocols("netlink"),
        loopback: if may_inherit { network.string("loopback") } else { None },
        inherit: if may_inherit { network.boolean("inherit") } else { None },
    }
}

fn read_limits(limits: &mut Section<'_, '_>) -> LimitTexts {
    LimitTexts {
        memory: limits.scalar("memory"),
        processes: limits.scalar("processes"),
        cpu: limits.scalar("cpu"),
        time: limits.scalar("time"),
        files: limits.scalar("files"),
        file_size: limits.scalar("file_size"),
    }
}

/// A table that is being read: every key asked for is known, every other is an error.
struct Section<'a, 'r> {
    /// Names of the tables that it stands in, each followed by a dot.
    path: String,
    table: &'a DeTable<'a>,
    known: Vec<String>,
    file: usize,
    reporter: &'r mut Reporter,
}

impl<'a, 'r> Section<'a, 'r> {
    fn new(path: String, table: &'a DeTable<'a>, file: usize, reporter: &'r mut Reporter) -> Self {
        Self { path, table, known: Vec::new(), file, reporter }
    }

    fn has(&self, key: &str) -> bool {
        self.table.iter().any(|(name, _)| name.get_ref().as_ref() == key)
    }

    fn get(&mut self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.known.push(key.to_owned());
        self.table.iter().find(|(name, _)| name.get_ref().as_ref() == key).map(|(_, value)| value)
    }

    fn place<T>(&self, spanned: &Spanned<T>) -> TextSpan {
        TextSpan::new(self.file, spanned.span())
    }

    fn wrong_type(&mut self, key: &str, expected: &'static str, value: &Spanned<DeValue<'_>>) {
        let found = value.get_ref().type_str();
        let wrong = || Problem::WrongType { key: format!("{}{key}", self.path), expected, found };
        let problem = misplaced(&self.path, key, value).unwrap_or_else(wrong);
        let place = self.place(value);
        self.reporter.report(problem, Some(place));
    }

    /// The keys of a table whose keys are names that the writer chose.
    fn names(&self) -> Vec<Located<String>> {
        let names = self.table.keys();
        names.map(|k| Located { value: k.get_ref().to_string(), place: self.place(k) }).collect()
    }

    fn string(&mut self, key: &str) -> Option<Located<String>> {
        let value = self.get(key)?;
        let Some(text) = value.get_ref().as_str() else {
            self.wrong_type(key, "a string", value);
            return None;
        };
        Some(Located { value: text.to_owned(), place: self.place(value) })
    }

    fn boolean(&mut self, key: &str) -> Option<Located<bool>> {
        let value = self.get(key)?;
        let Some(boolean) = value.get_ref().as_bool() else {
            self.wrong_type(key, "`true` or `false`", value);
            return None;
        };
        Some(Located { value: boolean, place: self.place(value) })
    }

    /// A list of strings; `true` stands for [`ROUTE`] alone, `false` for none.
    fn protocols(&mut self, key: &str) -> Option<Located<Vec<String>>> {
        let value = self.get(key)?;
        let text = |item: &Spanned<DeValue<'_>>| item.get_ref().as_str().map(str::to_owned);
        let protocols = match value.get_ref() {
            DeValue::Boolean(false) => Some(Vec::new()),
            DeValue::Boolean(true) => Some(vec![ROUTE.to_owned()]),
            DeValue::Array(items) => items.iter().map(text).collect(),
            _ => None,
        };
        let Some(protocols) = protocols else {
            self.wrong_type(key, "`true`, `false` or a list of names of protocols", value);
            return None;
        };
        Some(Located { value: protocols, place: self.place(value) })
    }

    /// A string, or a number as text.
    fn scalar(&mut self, key: &str) -> Option<Located<String>> {
        let value = self.get(key)?;
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().to_owned(),
            // What it stands for says what to write instead.
            DeValue::Float(float) => float.as_str().to_owned(),
            _ => {
                self.wrong_type(key, "a string or a decimal number", value);
                return None;
            }
        };
        Some(Located { value: text, place: self.place(value) })
    }

    fn strings(&mut self, key: &str) -> Vec<Located<String>> {
        const EXPECTED: &str = "a list of strings";
        let Some(value) = self.get(key) else { return Vec::new() };
        let Some(array) = value.get_ref().as_array() else {
            self.wrong_type(key, EXPECTED, value);
            return Vec::new();
        };
        let mut strings = Vec::new();
        for item in array.iter() {
            match item.get_ref().as_str() {
                Some(text) => {
                    strings.push(Located { value: text.to_owned(), place: self.place(item) });
                }
                None => self.wrong_type(key, EXPECTED, item),
            }
        }
        strings
    }

    fn pairs(&mut self, key: &str) -> Vec<(Located<String>, Located<String>)> {
        let mut pairs = Vec::new();
        self.section(key, |table| {
            for name in table.names() {
                if let Some(value) = table.string(&name.value) {
                    pairs.push((name, value));
                }
            }
        });
        pairs
    }

    /// Reads the table `key`, if it is there, and reports what nobody asked for in it.
    fn section(&mut self, key: &str, read: impl FnOnce(&mut Section<'a, '_>)) {
        let Some(value) = self.get(key) else { return };
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type(key, "a table", value);
            return;
        };
        let path = format!("{}{key}.", self.path);
        let mut section = Section::new(path, table, self.file, self.reporter);
        read(&mut section);
        section.finish();
    }

    fn finish(&mut self) {
        for (name, value) in self.table.iter() {
            let key = name.get_ref().as_ref();
            if !self.known.iter().any(|known| known == key) {
                let unknown = || Problem::UnknownKey {
                    key: format!("{}{key}", self.path),
                    meant: self.meant(key),
                    known: self.known.join(", "),
                };
                let problem = misplaced(&self.path, key, value).unwrap_or_else(unknown);
                let place = self.place(name);
                self.reporter.report(problem, Some(place));
            }
        }
    }

    /// The key that `key` may have been meant to be: one of this table, or one of that name
    /// elsewhere.
    fn meant(&self, key: &str) -> Option<String> {
        let here = closest(key, self.known.iter().map(String::as_str));
        let last = |full: &&&str| full.rsplit('.').next() == Some(key);
        here.map(|known| format!("{}{known}", self.path))
            .or_else(|| KEYS.iter().find(last).map(|full| (*full).to_owned()))
    }
}
