//! Kernels through CoD, from which E-code comes, in this process.

use super::{Callable, Implementation, Kernel, gcc};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// CoD, as the Python package `adios2` brings it: in the directory that `DEWAR_COD` names, or where
/// `python3` finds the package.
#[derive(Clone, Copy, Debug)]
pub struct Cod;

impl Implementation for Cod {
    fn name(&self) -> String {
        "CoD".to_owned()
    }

    fn prepare(&self, kernel: &Kernel) -> Result<Box<dyn Callable>, String> {
        let libraries = libraries()?;
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let [source, text, object] =
            ["cod.c", "kernel.inc", "kernel.so"].map(|name| directory.path().join(name));
        let bytes: Vec<String> = body(kernel.text)?.bytes().map(|byte| byte.to_string()).collect();
        fs::write(&source, include_str!("source/cod.c"))
            .and_then(|()| fs::write(&text, bytes.join(",")))
            .map_err(|error| error.to_string())?;
        let mut command = Command::new("gcc");
        command.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&object).arg(&source);
        for library in ["ffs", "dill", "atl"] {
            command.arg(libraries.join(format!("libadios2_{library}.so")));
        }
        command.arg(format!("-Wl,-rpath,{}", libraries.display()));
        gcc::run(&mut command)?;
        let mut made = gcc::open(&object, None)?;
        // What it does not compile returns no length.
        made.fill(&[])?;
        made.run(1)?;
        made.reply().map_err(|_| "it does not compile this kernel".to_owned())?;
        Ok(made)
    }
}

/// Where CoD's library lies.
fn libraries() -> Result<PathBuf, String> {
    let found = env::var_os("DEWAR_COD").map(PathBuf::from).or_else(python_package);
    let found = found.filter(|path| path.join("libadios2_ffs.so").exists());
    found.ok_or_else(|| {
        "not here; `pip install adios2` brings it, or DEWAR_COD names its directory".to_owned()
    })
}

fn python_package() -> Option<PathBuf> {
    let program =
        "import importlib.util as u; print(u.find_spec('adios2').submodule_search_locations[0])";
    let output = Command::new("python3").args(["-c", program]).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| Path::new(path.trim()).to_owned())
}

/// CoD compiles the body of a function: what stands before `handle` goes into it.
fn body(text: &str) -> Result<String, String> {
    let (before, function) = text.split_once("long handle(").ok_or("no `handle`")?;
    let (_, body) = function.split_once('{').ok_or("no body")?;
    if before.contains(")\n{") {
        return Err("CoD has no functions besides the one it compiles".to_owned());
    }
    Ok(format!("{{ {before} {body}"))
}
