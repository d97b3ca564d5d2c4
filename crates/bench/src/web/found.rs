//! All servers that this machine has.

use super::{
    IMAGES, Programs, Server, WebError,
    client::fetch,
    own::TARGETS,
    peers::{FLAGS, start_apache, start_nginx},
    server::directory,
    write_images,
};
use std::path::Path;

/// The server that all others are compared with, if it is there.
const REFERENCE: &str = "nginx -O3 native";

/// Servers that run, and why others do not.
#[derive(Debug, Default)]
pub struct RunningServers {
    /// Those that run; the first is what the others are compared with.
    pub servers: Vec<Server>,
    /// The names of all that are known.
    pub names: Vec<String>,
    /// Those that do not: name and reason.
    pub missing: Vec<(String, String)>,
}

/// Builds and starts every server that this machine has, in directories below `scratch`; only those
/// that are `wanted`. Says before each which it is.
///
/// # Errors
///
/// [`WebError`] when `scratch` cannot be used, or two servers do not answer with the same bytes.
pub fn found(
    programs: &Programs,
    scratch: &Path,
    wanted: &dyn Fn(&str) -> bool,
    progress: &mut dyn FnMut(&str),
) -> Result<RunningServers, WebError> {
    let root = directory(scratch, "root")?;
    write_images(&root)?;
    let mut found = RunningServers::default();
    let mut add = |name: &str, start: &dyn Fn() -> Result<Server, WebError>| {
        found.names.push(name.to_owned());
        if name != REFERENCE && !wanted(name) {
            return;
        }
        progress(&format!("starting {name}"));
        match start() {
            Ok(server) => found.servers.push(server),
            Err(error) => found.missing.push((name.to_owned(), error.to_string())),
        }
    };
    for flags in FLAGS.into_iter().rev() {
        add(&format!("nginx {}", flags.0), &|| start_nginx(scratch, &root, flags));
    }
    for flags in FLAGS {
        add(&format!("Apache {}", flags.0), &|| start_apache(scratch, &root, Some(flags)));
    }
    add("Apache mod_lua", &|| start_apache(scratch, &root, None));
    for target in TARGETS {
        add(&format!("dewar {}", target.0), &|| programs.start(scratch, &root, target));
    }
    add("dewar in its sandbox", &|| programs.start_sandboxed(scratch, &root));
    add("out of process", &|| programs.start_behind(scratch, &root));
    same_bytes(&found.servers)?;
    Ok(found)
}

fn same_bytes(servers: &[Server]) -> Result<(), WebError> {
    for (image, ..) in IMAGES {
        for gray in [false, true] {
            let mut first: Option<(&str, Vec<u8>)> = None;
            for server in servers {
                let body = fetch(server, &server.path(image, gray))?;
                let Some((name, bytes)) = &first else {
                    first = Some((&server.name, body));
                    continue;
                };
                if *bytes != body {
                    let (own, others) = (body.len(), bytes.len());
                    let what = format!(
                        "{image}, gray: {gray}: other bytes ({own}) than {name}'s ({others})"
                    );
                    return Err(WebError::Server { name: server.name.clone(), what });
                }
            }
        }
    }
    Ok(())
}
