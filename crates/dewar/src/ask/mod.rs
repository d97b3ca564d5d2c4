//! `dewar ask`: the questions of a run, and their answers; see docs/ask.md.
//!
//! ```text
//!  monitor ── link ──▶ prompter ──▶ terminal of the run
//!   (in the view)     (outside)──▶ socket ──▶ `dewar ask`, editors, agents
//! ```

mod case;
mod error;
mod grant;
mod modes;
mod prompter;
mod propose;
mod proposed;
mod queue;
mod screen;
mod socket;
mod state;
mod terminal;
mod turn;

use crate::{
    control::{Run, RunArg},
    failure::{Failed, Usage},
    output,
    proposal::kept_back,
    words::{exact, words},
};
use anyhow::{Context as _, bail};
use clap::Args;
use modes::TerminalModes;
use monitor::visible;
use rustix::termios::tcgetwinsize;
use screen::Size;
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, IsTerminal as _, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    time::Duration,
};

const EXAMPLES: &str = "\
Examples:
  dewar run --ask -p ./dewar.toml -- npm ci    asks before something is denied
  dewar ask                                    answers its questions from another terminal
  dewar ask ci --list                          says which are open, and ends
  dewar ask ci --answer 3=run                  gives it to the running sandbox
  dewar ask ci --answer 4=once --named /home/me/.env     a secret, named in full
  dewar ask --json                             events as JSON lines, until it ends

Answers: once (this call), run (until the run ends), profile (from now on), no.

A run asks on its own terminal while it stands still. It asks here alone where its output goes
through a pipe (`| tee log`), a socket or another terminal, which others could write over a
question meanwhile, and where the terminal does not say what it has shown.

Exit status: 0; 1 if an answer could not be carried out; 2 for wrong use, or no such run.";

/// Answer what a run asks: `dewar run --ask`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AskArgs {
    #[command(flatten)]
    run: RunArg,

    /// Say which questions are open, and end
    #[arg(long)]
    list: bool,

    /// Answer one: its number, and `once`, `run`, `profile` or `no`
    #[arg(long, value_name = "N=ANSWER", value_parser = answer)]
    answer: Option<(u64, String)>,

    /// What is asked about, in full: a secret is granted to nobody who does not know its name
    #[arg(long, value_name = "NAME", requires = "answer")]
    named: Option<String>,

    /// Print who it is, and events, as JSON lines
    #[arg(long)]
    json: bool,

    /// What `dewar run --ask` starts
    #[arg(long, hide = true, value_name = "STAGE")]
    prompter: Option<prompter::Stage>,
}

fn answer(text: &str) -> Result<(u64, String), String> {
    let (number, answer) = text.split_once('=').ok_or("write N=ANSWER, as in 3=once")?;
    let number = number.parse().map_err(|_| format!("`{number}` is no number"))?;
    let choice = case::Choice::of(answer).ok_or("write once, run, profile or no")?;
    Ok((number, choice.name().to_owned()))
}

/// Who this is, for the record.
fn user() -> String {
    let id = rustix::process::geteuid().as_raw();
    match std::env::var("USER") {
        Ok(name) if !name.is_empty() => format!("user {} ({id})", visible(&name)),
        _ => format!("user {id}"),
    }
}

/// Carries out `dewar ask`.
pub(crate) fn run(args: &AskArgs) -> anyhow::Result<()> {
    if let Some(stage) = args.prompter {
        return prompter::run(stage);
    }
    let run = Run::find(&args.run)?;
    let id = run.status.id;
    let stream = socket::connect(&socket::path(&id)?);
    let Ok(stream) = stream else {
        bail!(Usage(format!("run {id} asks nobody; it was started without --ask")));
    };
    let mut client = Client { writer: stream.try_clone()?, reader: BufReader::new(stream) };
    let hello = client.next()?.context("the run does not answer")?;
    match &args.answer {
        Some((number, answer)) => client.answer(*number, answer, args.named.as_deref()),
        None if args.list => client.list(args.json),
        None if args.json => {
            output::print(as_line(&hello).as_bytes())?;
            client.copy()
        }
        None if std::io::stdin().is_terminal() => client.converse(),
        None => client.list(false),
    }
}

/// A connection to the socket of a run.
struct Client {
    writer: UnixStream,
    reader: BufReader<UnixStream>,
}

impl Client {
    /// The next event; `None` at the end of the run.
    fn next(&mut self) -> anyhow::Result<Option<Value>> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(serde_json::from_str(&line).context("no event")?)),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn send(&mut self, number: u64, answer: &str, named: Option<&str>) -> anyhow::Result<()> {
        let said = json!({ "answer": { "id": number, "answer": answer, "named": named } });
        Ok(writeln!(self.writer, "{said}")?)
    }

    /// What came of an answer.
    fn outcome(&mut self, number: u64) -> anyhow::Result<()> {
        while let Some(event) = self.next()? {
            if event["done"]["id"] == number {
                return Ok(());
            }
            if event["error"]["id"] == number {
                let why = event["error"]["why"].as_str().unwrap_or_default();
                bail!(Failed(format!("not done: {}", visible(why))));
            }
        }
        bail!(Failed("the run has ended".into()))
    }

    fn answer(&mut self, number: u64, answer: &str, named: Option<&str>) -> anyhow::Result<()> {
        self.send(number, answer, named)?;
        self.outcome(number)?;
        Ok(output::print(format!("question {number}: {answer}\n").as_bytes())?)
    }

    /// What is open now: it comes at once.
    fn list(&mut self, json: bool) -> anyhow::Result<()> {
        self.reader.get_ref().set_read_timeout(Some(Duration::from_millis(300)))?;
        let mut any = false;
        while let Ok(Some(event)) = self.next() {
            let question = &event["question"];
            if question.is_null() {
                continue;
            }
            any = true;
            let text = if json { as_line(&event) } else { tell(question) };
            output::print(text.as_bytes())?;
        }
        if !any && !json {
            output::print(b"no question is open\n")?;
        }
        Ok(())
    }

    fn copy(&mut self) -> anyhow::Result<()> {
        while let Some(event) = self.next()? {
            output::print(as_line(&event).as_bytes())?;
        }
        Ok(())
    }

    /// Puts every question to the terminal, until the run ends.
    fn converse(&mut self) -> anyhow::Result<()> {
        let tty = std::io::stdin().as_fd().try_clone_to_owned().context("no terminal")?;
        let modes = TerminalModes::default();
        output::print(b"waiting for questions; Ctrl-C ends this\n")?;
        while let Some(event) = self.next()? {
            let question = &event["question"];
            let Some(number) = question["id"].as_u64() else { continue };
            modes.set(&tty).context("this terminal does not take the usual modes")?;
            let plain = if std::io::stdout().is_terminal() { terminal::plain() } else { "" };
            let mut pages = size(&tty).pages(&tell(question));
            let last = pages.pop().unwrap_or_default();
            output::print(plain.as_bytes())?;
            for page in pages {
                output::print(page.as_bytes())?;
                if typed(&modes, "  Enter shows the rest: ")?.is_none() {
                    return Ok(());
                }
            }
            output::print(last.as_bytes())?;
            let Some((choice, named)) = ask(&modes)? else { return Ok(()) };
            self.send(number, choice.name(), named.as_deref())?;
            if let Err(error) = self.outcome(number) {
                output::print(format!("  {error}\n").as_bytes())?;
            }
            modes.restore();
        }
        Ok(())
    }
}

/// The size of this terminal, to which no sandbox writes.
fn size(tty: &OwnedFd) -> Size {
    let found = tcgetwinsize(tty).ok().filter(|it| it.ws_row > 0 && it.ws_col > 0);
    let (rows, columns) = found.map_or((24, 80), |it| (it.ws_row, it.ws_col));
    Size { rows: rows.into(), columns: columns.into() }
}

/// The answer; `None` at the end of the input.
fn ask(modes: &TerminalModes) -> anyhow::Result<Option<(case::Choice, Option<String>)>> {
    loop {
        let Some(line) = typed(modes, "  answer (Enter means no): ")? else { return Ok(None) };
        if let Some(answer) = terminal::parse(&line) {
            return Ok(Some(answer));
        }
    }
}

/// What is typed once what was printed has been there for a moment; `None` at the end of the input.
fn typed(modes: &TerminalModes, prompt: &str) -> anyhow::Result<Option<String>> {
    std::thread::sleep(terminal::NOTICE);
    // What was typed before is no answer to this.
    modes.begin_line().context("this terminal does not take the usual modes")?;
    output::print(prompt.as_bytes())?;
    std::io::stdout().flush()?;
    let mut line = String::new();
    if std::io::stdin().read_line(&mut line)? == 0 {
        return Ok(None);
    }
    if !modes.hold() {
        bail!(Failed("the terminal has been changed meanwhile; this is not answered".into()));
    }
    Ok(Some(line))
}

/// An event as a line of JSON, in which nothing steers a terminal.
fn as_line(event: &Value) -> String {
    flask::visible_json(&event.to_string()) + "\n"
}

/// A question for people.
fn tell(question: &Value) -> String {
    use flask::visible_name as visible;
    let text = |key: &str| visible(question[key].as_str().unwrap_or_default());
    let list = |key: &str| {
        let all = question[key].as_array().cloned().unwrap_or_default();
        let words = all.iter().filter_map(|word| word.as_str()).map(visible);
        words.collect::<Vec<_>>()
    };
    let does = match question["proposed"] == true {
        true => "proposes:".to_owned(),
        false => {
            let wants = list("wants");
            format!("may not {} ({})", words(&wants), exact(&text("class"), &wants))
        }
    };
    let (number, program, pid) = (&question["id"], text("program"), &question["pid"]);
    let mut out = format!("{number}: {program} [{pid}] {does}\n");
    if !text("object").is_empty() {
        out.push_str(&format!("  {}\n", text("object")));
    }
    for line in list("lines") {
        out.push_str(&format!("  {line}\n"));
    }
    for taken in list("taken") {
        out.push_str(&format!("  TAKEN while it ran: {taken}\n"));
    }
    if question["also_files"].as_u64().is_some_and(|files| files > 0) {
        out.push_str(&format!("  also {} files that are there\n", question["also_files"]));
    }
    if let Some(path) = list("also_secrets").first() {
        out.push_str(&format!("  {}\n", kept_back(path.as_ref())));
    }
    let gives = text("gives_outside");
    if !gives.is_empty() {
        out.push_str(&format!("  GIVES whoever connects {gives}\n"));
    }
    if question["secret"] == true {
        let what = if gives.is_empty() { "SECRET: " } else { "" };
        out.push_str(&format!(
            "  {what}--named has to name it in full, or write it behind the answer\n"
        ));
    }
    out.push_str(&format!(
        "  answers: {}; {} s left\n",
        list("answers").join(", "),
        question["seconds"]
    ));
    out
}
