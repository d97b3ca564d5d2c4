//! SELinux's own programs, and what they make.

use anyhow::{Context as _, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{LazyLock, OnceLock};
use test_support::KeptDirectory;

const HELP: &str = "install the packages that tests/conformance/packages.txt lists";

/// Runs a command and gives what it prints.
pub(crate) fn run(command: &mut Command) -> Result<Vec<u8>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run `{name}`: {HELP}"))?;
    ensure!(
        output.status.success(),
        "`{name}` failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.stdout)
}

/// A directory for what tests make, one for each process.
fn scratch() -> &'static Path {
    static SCRATCH: LazyLock<KeptDirectory> =
        LazyLock::new(|| KeptDirectory::new("dewar-conformance-"));
    SCRATCH.path()
}

/// libsepol, asked through a small C program.
#[derive(Clone, Debug)]
pub struct Oracle(PathBuf);

impl Oracle {
    /// The program at `path`.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Builds the program, once for each process.
    ///
    /// # Errors
    ///
    /// When there is no C compiler or no static libsepol.
    pub fn build() -> Result<Self> {
        static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        let built = BUILT.get_or_init(|| compile_oracle().map_err(|error| format!("{error:#}")));
        built.clone().map(Self).map_err(anyhow::Error::msg)
    }

    /// Random questions with libsepol's answers, as lines.
    ///
    /// # Errors
    ///
    /// When the program fails.
    pub fn sample(&self, policy: &Path, count: usize, seed: u32, flip: bool) -> Result<String> {
        let (count, seed, flip) = (count.to_string(), seed.to_string(), u8::from(flip).to_string());
        self.run(policy, &["sample", &count, &seed, &flip])
    }

    /// libsepol's answers to questions, one a line.
    ///
    /// # Errors
    ///
    /// When the program fails.
    pub fn ask(&self, policy: &Path, questions: &str) -> Result<String> {
        let input = scratch().join("questions");
        fs::write(&input, questions)?;
        let input = fs::File::open(input)?;
        let mut command = Command::new(&self.0);
        let output = run(command.arg(policy).arg("ask").stdin(Stdio::from(input)))?;
        Ok(String::from_utf8(output)?)
    }

    /// Runs the program with other arguments.
    ///
    /// # Errors
    ///
    /// When the program fails.
    pub fn run(&self, policy: &Path, arguments: &[&str]) -> Result<String> {
        let output = run(Command::new(&self.0).arg(policy).args(arguments))?;
        Ok(String::from_utf8(output)?)
    }
}

fn compile_oracle() -> Result<PathBuf> {
    let archive = ["/usr/lib/x86_64-linux-gnu/libsepol.a", "/usr/lib/aarch64-linux-gnu/libsepol.a"]
        .into_iter()
        .chain(["/usr/lib/libsepol.a", "/usr/lib64/libsepol.a"])
        .find(|path| Path::new(path).exists());
    let Some(archive) = archive else { bail!("there is no libsepol.a: {HELP}") };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle/oracle.c");
    let program = scratch().join("oracle");
    run(Command::new("cc").args(["-O2", "-o"]).arg(&program).arg(source).arg(archive))?;
    Ok(program)
}

/// The compiled policy that Debian's package leaves.
///
/// # Errors
///
/// When it is not installed.
pub fn debian_policy() -> Result<PathBuf> {
    let directory = Path::new("/etc/selinux/default/policy");
    let entries = fs::read_dir(directory)
        .with_context(|| format!("there is no {}: {HELP}", directory.display()))?;
    let mut policies: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    policies.sort();
    policies.pop().with_context(|| format!("{} is empty: {HELP}", directory.display()))
}

/// A module of Debian's policy, as CIL.
#[derive(Clone, Debug)]
pub struct Module {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Whether the compiled policy was made with it.
    pub enabled: bool,
}

/// The modules that come with Debian's policy.
///
/// # Errors
///
/// When they are not installed or cannot be unpacked.
pub fn debian_modules() -> Result<Vec<Module>> {
    let root = Path::new("/var/lib/selinux/default/active/modules/100");
    let entries =
        fs::read_dir(root).with_context(|| format!("there is no {}: {HELP}", root.display()))?;
    let modules = entries.flatten().map(|entry| module(&entry.path()));
    let mut modules = modules.collect::<Result<Vec<Module>>>()?;
    modules.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(modules)
}

/// Modules that are in use are kept as CIL, too; others only as the package brought them.
fn module(directory: &Path) -> Result<Module> {
    let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (cil, packed) = (directory.join("cil"), directory.join("hll"));
    let enabled = cil.exists();
    let text = if enabled { unpack(&cil)? } else { translate(&unpack(&packed)?)? };
    Ok(Module { name, text: String::from_utf8(text)?, enabled })
}

fn unpack(path: &Path) -> Result<Vec<u8>> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    if bytes.starts_with(b"BZh") {
        run(Command::new("bzip2").arg("-dc").arg(path))
    } else {
        Ok(bytes)
    }
}

/// A policy package as CIL.
fn translate(package: &[u8]) -> Result<Vec<u8>> {
    let input = scratch().join("module.pp");
    fs::write(&input, package)?;
    run(Command::new("/usr/libexec/selinux/hll/pp").arg(input))
}

/// Compiles CIL text with `secilc`.
///
/// # Errors
///
/// When `secilc` refuses it.
pub fn secilc(name: &str, text: &str, options: &[&str]) -> Result<PathBuf> {
    let directory = scratch();
    let (source, policy) = (directory.join(format!("{name}.cil")), directory.join(name));
    fs::write(&source, text)?;
    let mut command = Command::new("secilc");
    command.args(options).arg("-f").arg("/dev/null").arg("-o").arg(&policy).arg(&source);
    run(&mut command).with_context(|| name.to_owned())?;
    Ok(policy)
}

/// A binary policy as one CIL file, by `checkpolicy`.
///
/// # Errors
///
/// When `checkpolicy` fails.
pub fn decompile(policy: &Path) -> Result<String> {
    let output = scratch().join("decompiled.cil");
    run(Command::new("checkpolicy").args(["-M", "-b", "-C", "-o"]).arg(&output).arg(policy))?;
    Ok(fs::read_to_string(output)?)
}

/// What a program of setools prints about policies.
///
/// # Errors
///
/// When it fails.
pub fn setools(program: &str, arguments: &[&str], policies: &[&Path]) -> Result<String> {
    let output = run(Command::new(program).args(arguments).args(policies))?;
    Ok(String::from_utf8(output)?)
}
