//! `dewar-mcp`: an MCP server over standard input and output, for coding agents.
//!
//! ```text
//!  agent ── MCP ──▶ dewar-mcp ──▶ `dewar explain`, `dewar policy show`
//!                            └──▶ DEWAR_DENIALS, in a sandbox that may propose
//! ```
//!
//! It decides nothing: what it says comes from `dewar`, as a person would be told, and what it
//! proposes goes the way of every proposal (docs/ask.md).

use rmcp::{
    ServerHandler, ServiceExt as _, handler::server::wrapper::Parameters, tool, tool_handler,
    tool_router, transport::stdio,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    env,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

/// The most that an answer of `dewar` may hold; more is no help to an agent.
const MOST_BYTES: usize = 256 << 10;
/// How long a person may take for a proposal.
const PATIENCE: Duration = Duration::from_secs(300);

/// The server.
#[derive(Clone, Debug)]
struct Dewar {
    program: PathBuf,
}

/// A run.
#[derive(Debug, Deserialize, JsonSchema)]
struct RunArgs {
    /// The id or name of a run that has ended; the last one, if left out.
    run: Option<String>,
}

/// A profile.
#[derive(Debug, Deserialize, JsonSchema)]
struct ProfileArgs {
    /// The name of a shipped profile, or a file; `workspace`, if left out.
    profile: Option<String>,
}

/// A proposal.
#[derive(Debug, Deserialize, JsonSchema)]
struct ProposeArgs {
    /// Lines of a profile as TOML: files.read, files.write and network.connect, without patterns.
    lines: String,
}

#[tool_router]
impl Dewar {
    #[tool(
        description = "What a sandboxed run was denied, why, and the line of a profile that would allow it",
        annotations(read_only_hint = true)
    )]
    async fn explain(&self, Parameters(args): Parameters<RunArgs>) -> Result<String, String> {
        if let Ok(socket) = env::var("DEWAR_DENIALS") {
            return say(socket, json!({ "denials": true }), &["end"]).await;
        }
        let mut words = vec!["explain".to_owned()];
        words.extend(args.run.map(|run| plain(&run).map(|()| run)).transpose()?);
        self.dewar(words).await
    }

    #[tool(
        description = "Propose lines of a profile for the running sandbox. Granted at once within the bound that the profile states; else a person is asked. Never for secrets."
    )]
    async fn propose(&self, Parameters(args): Parameters<ProposeArgs>) -> Result<String, String> {
        match env::var("DEWAR_DENIALS") {
            Ok(socket) => {
                let last = &["granted", "answered"];
                say(socket, json!({ "propose": args.lines }), last).await
            }
            Err(_) => Err("this server runs in no sandbox that takes proposals ([propose] in its \
                           profile). A person adds lines to a profile by `dewar allow`, which \
                           says what else they grant."
                .into()),
        }
    }

    #[tool(
        description = "What a profile grants, as a table; the policy that runs are confined by",
        annotations(read_only_hint = true)
    )]
    async fn show_profile(
        &self,
        Parameters(args): Parameters<ProfileArgs>,
    ) -> Result<String, String> {
        let profile = args.profile.unwrap_or_else(|| "workspace".into());
        plain(&profile)?;
        let shown = self.dewar(vec!["policy".into(), "show".into(), profile.clone()]).await;
        // What is wrong with a file is told with lines of it, and it may be any file of the user's.
        shown.map_err(|_| format!("`{profile}` is no profile that can be read"))
    }
}

#[tool_handler(
    name = "dewar",
    version = "0.1.0",
    instructions = "Dewar confines commands by a policy. When a command fails by a denial, call explain; it names the line that would allow it. Propose the smallest line."
)]
impl ServerHandler for Dewar {}

impl Dewar {
    /// What `dewar` says.
    async fn dewar(&self, words: Vec<String>) -> Result<String, String> {
        let program = self.program.clone();
        let mut command = Command::new(&program);
        command.args(words).env("NO_COLOR", "1").stdin(Stdio::null());
        let output = aside(move || {
            let output = command.output();
            output.map_err(|error| format!("cannot start `{}`: {error}", program.display()))
        });
        let output = output.await?;
        let text = |bytes: &[u8]| {
            String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_BYTES)]).into_owned()
        };
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(text(&output.stderr)),
        }
    }
}

/// Does what may take its time, while the server goes on.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(error.to_string()))
}

/// Refuses what `dewar` would take for an option.
fn plain(word: &str) -> Result<(), String> {
    match word.is_empty() || word.starts_with('-') {
        true => Err(format!("`{word}` is no name")),
        false => Ok(()),
    }
}

/// Says a line to the run around this process, and returns what comes back until one of `last`, or
/// a refusal.
async fn say(
    socket: String,
    request: Value,
    last: &'static [&'static str],
) -> Result<String, String> {
    aside(move || {
        let failed = |error: std::io::Error| format!("the run does not answer: {error}");
        let mut stream = UnixStream::connect(socket).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        writeln!(stream, "{request}").map_err(failed)?;
        let mut told = String::new();
        let mut reader = BufReader::new(stream.take(MOST_BYTES as u64));
        loop {
            let start = told.len();
            if reader.read_line(&mut told).map_err(failed)? == 0 {
                return Ok(told);
            }
            let event: Value = serde_json::from_str(&told[start..]).unwrap_or_default();
            if !event["refused"].is_null() || last.iter().any(|key| !event[*key].is_null()) {
                return Ok(told);
            }
        }
    })
    .await
}

fn main() -> ExitCode {
    if !matches!(&*env::args().skip(1).collect::<Vec<_>>(), [] | [_]) {
        eprintln!("dewar-mcp: it is started as `dewar mcp`, and takes no arguments");
        return ExitCode::from(2);
    }
    // Beside this program, and never by `PATH`: what lies there could be anybody's.
    let program = env::current_exe().unwrap_or_default().with_file_name("dewar");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let served = runtime.map_err(|error| error.to_string()).and_then(|runtime| {
        runtime.block_on(async {
            let server = Dewar { program }.serve(stdio()).await;
            let server = server.map_err(|error| error.to_string())?;
            server.waiting().await.map(drop).map_err(|error| error.to_string())
        })
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("dewar-mcp: {why}");
            ExitCode::FAILURE
        }
    }
}
