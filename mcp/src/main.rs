//! `dewar-mcp`: an MCP server over standard input and output, for coding agents.
//!
//! ```text
//!  agent ── MCP ──▶ dewar-mcp ──▶ `dewar explain`, `dewar policy show`
//!                            └──▶ DEWAR_DENIALS, in a sandbox that may propose
//! ```
//!
//! It decides nothing: what it says comes from `dewar`, as a person would be told, and what it
//! proposes goes the way of every proposal (docs/ask.md).

mod call;
mod inside;
mod kept;
mod lines;

use call::{Called, Ending, GRACE};
use rmcp::{
    RoleServer, ServerHandler, ServiceExt as _, handler::server::wrapper::Parameters,
    service::RequestContext, tool, tool_handler, tool_router, transport::stdio,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::Signal,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{env, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};
use tokio::{select, sync::Semaphore, time::timeout};

/// Calls at once.
const MOST_CALLS: u32 = 8;
/// How long a call may take, in seconds, if it does not say, and at most.
const SECONDS: u64 = 600;
const MOST_SECONDS: u64 = 3600;

/// The server.
#[derive(Clone, Debug)]
struct Dewar {
    program: PathBuf,
    calls: Arc<Semaphore>,
}

/// A run.
#[derive(Debug, Deserialize, JsonSchema)]
struct RunArgs {
    /// The id or name of a run that has ended; the last one, if left out.
    run: Option<String>,
    #[serde(flatten)]
    limit: Limit,
}

/// A profile.
#[derive(Debug, Deserialize, JsonSchema)]
struct ProfileArgs {
    /// The name of a shipped profile, or a file; `workspace`, if left out.
    profile: Option<String>,
    #[serde(flatten)]
    limit: Limit,
}

/// A proposal.
#[derive(Debug, Deserialize, JsonSchema)]
struct ProposeArgs {
    /// Lines of a profile as TOML: files.read, files.write and network.connect, without patterns.
    lines: String,
    #[serde(flatten)]
    limit: Limit,
}

/// How long a call may take.
#[derive(Debug, Deserialize, JsonSchema)]
struct Limit {
    /// After how many seconds the call is ended, with what was said so far; 600, if left out.
    #[schemars(range(min = 1, max = MOST_SECONDS))]
    seconds: Option<u64>,
}

impl Limit {
    fn time(&self) -> Result<Duration, String> {
        match self.seconds.unwrap_or(SECONDS) {
            seconds @ 1..=MOST_SECONDS => Ok(Duration::from_secs(seconds)),
            seconds => Err(format!("`seconds` is from 1 to {MOST_SECONDS}, not {seconds}")),
        }
    }
}

#[tool_router]
impl Dewar {
    #[tool(
        description = "What a sandboxed run was denied, why, and the line of a profile that would allow it",
        annotations(read_only_hint = true)
    )]
    async fn explain(
        &self,
        Parameters(args): Parameters<RunArgs>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, String> {
        let limit = args.limit.time()?;
        if let Ok(socket) = env::var("DEWAR_DENIALS") {
            let said = (json!({ "denials": true }), &["end"][..]);
            return self.say(socket, said, limit, context).await;
        }
        let mut words = vec!["explain".to_owned()];
        words.extend(args.run.map(|run| plain(&run).map(|()| run)).transpose()?);
        let Called { ending, stdout, stderr } = self.dewar(&words, limit, context).await?;
        match over(&ending) {
            None if matches!(ending, Ending::Exited(status) if status.success()) => Ok(stdout),
            None => Err(stderr),
            Some(why) => Err(format!("`dewar explain` {why}; so far:\n{stdout}{stderr}")),
        }
    }

    #[tool(
        description = "Propose lines of a profile for the running sandbox. Granted at once within the bound that the profile states; else a person is asked. Never for secrets."
    )]
    async fn propose(
        &self,
        Parameters(args): Parameters<ProposeArgs>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, String> {
        let limit = args.limit.time()?;
        match env::var("DEWAR_DENIALS") {
            Ok(socket) => {
                let said = (json!({ "propose": args.lines }), &["granted", "answered"][..]);
                self.say(socket, said, limit, context).await
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
        context: RequestContext<RoleServer>,
    ) -> Result<String, String> {
        let limit = args.limit.time()?;
        let profile = args.profile.unwrap_or_else(|| "workspace".into());
        plain(&profile)?;
        let words = ["policy".into(), "show".into(), profile.clone()];
        let Called { ending, stdout, .. } = self.dewar(&words, limit, context).await?;
        // What is wrong with a file is told with lines of it, and it may be any file of the user's.
        match over(&ending) {
            None if matches!(ending, Ending::Exited(status) if status.success()) => Ok(stdout),
            None => Err(format!("`{profile}` is no profile that can be read")),
            Some(why) => Err(format!("`dewar policy show` {why}; so far:\n{stdout}")),
        }
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
    async fn dewar(
        &self,
        words: &[String],
        limit: Duration,
        context: RequestContext<RoleServer>,
    ) -> Result<Called, String> {
        let _one = self.calls.try_acquire().map_err(|_| busy())?;
        call::call(&self.program, words, limit, context.ct.cancelled()).await
    }

    /// What the run around says.
    async fn say(
        &self,
        socket: String,
        said: (Value, &[&str]),
        limit: Duration,
        context: RequestContext<RoleServer>,
    ) -> Result<String, String> {
        let _one = self.calls.try_acquire().map_err(|_| busy())?;
        inside::say(socket, said, limit, context.ct.cancelled()).await
    }
}

fn busy() -> String {
    format!("{MOST_CALLS} calls are under way; wait for one of them")
}

/// What has ended a call before its time; `None` if nothing has.
fn over(ending: &Ending) -> Option<String> {
    match ending {
        Ending::Exited(_) => None,
        Ending::Limit(limit, signal) => {
            let by = if *signal == Signal::TERM { "SIGTERM" } else { "SIGKILL" };
            Some(format!("was ended at its limit of {} s, by {by}", limit.as_secs()))
        }
        Ending::Cancelled => Some("was cancelled".into()),
    }
}

/// Refuses what `dewar` would take for an option.
fn plain(word: &str) -> Result<(), String> {
    match word.is_empty() || word.starts_with('-') {
        true => Err(format!("`{word}` is no name")),
        false => Ok(()),
    }
}

/// Whether nobody is left who could write to the input.
fn has_left() -> bool {
    let input = std::io::stdin();
    let mut polled = [PollFd::new(&input, PollFlags::RDHUP)];
    let left = PollFlags::HUP | PollFlags::RDHUP | PollFlags::ERR;
    let at_once = Timespec::default();
    poll(&mut polled, Some(&at_once)).is_ok() && polled[0].revents().intersects(left)
}

/// Serves until the end of the input; then what is under way ends.
async fn serve(program: PathBuf) -> Result<(), String> {
    let calls = Arc::new(Semaphore::new(MOST_CALLS as usize));
    let dewar = Dewar { program, calls: Arc::clone(&calls) };
    let (input, output) = stdio();
    let (stream, mut lines) = lines::between((input, has_left), output);
    let served = async {
        let server = dewar.serve(stream).await.map_err(|error| error.to_string())?;
        server.waiting().await.map_err(|error| error.to_string()).map(drop)
    };
    let served = select! {
        served = served => served,
        // The library waits for ever for a client that has gone and takes no answers.
        () = lines.left(4 * GRACE) => Ok(()),
    };
    let _ = timeout(4 * GRACE, calls.acquire_many(MOST_CALLS)).await;
    let _ = timeout(GRACE, lines.end()).await;
    served
}

fn main() -> ExitCode {
    // Beside this program, and never by `PATH`: what lies there could be anybody's.
    let program = env::current_exe().unwrap_or_default().with_file_name("dewar");
    if env::args().nth(1).is_some_and(|word| word == call::CALL) {
        return call::keeper(program);
    }
    if env::args_os().count() > 2 {
        eprintln!("dewar-mcp: it is started as `dewar mcp`, and takes no arguments");
        return ExitCode::from(2);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let served = runtime.map_err(|error| error.to_string()).and_then(|runtime| {
        let served = runtime.block_on(serve(program));
        // Threads of its own read and write, and may do so for ever: they are not waited for.
        runtime.shutdown_background();
        served
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("dewar-mcp: {why}");
            ExitCode::FAILURE
        }
    }
}
