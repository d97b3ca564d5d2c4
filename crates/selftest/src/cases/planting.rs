//! Files in the workspace that a trusted program outside executes later.

use crate::{
    case::{Case, Judge, Severity},
    outside::look::{has, holds_word, is_there},
    scene::plant,
    stage::Stage,
};
use std::{fs, io, os::unix::fs::PermissionsExt as _};

const MCP: &str = "CVE-2025-54135 (Cursor, mcp.json); docs of agents";
const HOOKS: &str = "githooks(5); CVE-2024-32002 (Git, a hook by a link)";

/// What is planted, with the mark in it.
fn command(mark: &str) -> String {
    format!("#!/bin/sh\n# {mark}\necho planted\n")
}

/// The judge looks for the mark in that file of the workspace.
fn in_file(stage: &mut Stage, name: &str, what: &'static str) -> io::Result<Judge> {
    let mark = stage.mark();
    Ok(holds_word(stage.workspace().join(name), mark, what))
}

/// A configuration that lets Git start something at `git status`.
fn configuration(mark: &str) -> String {
    format!("[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = \"echo {mark}; false\"\n")
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "git-hook",
        severity: Severity::Critical,
        claim: "Makes a hook that Git runs outside at the next commit.",
        source: HOOKS,
        outside: |stage| in_file(stage, ".git/hooks/pre-commit", "a hook is in .git/hooks"),
        attack: |scene| {
            let text = command(scene.get("mark"));
            plant(".git/hooks/pre-commit".as_ref(), &text)?;
            fs::set_permissions(".git/hooks/pre-commit", fs::Permissions::from_mode(0o755))
        },
    },
    Case {
        name: "git-config",
        severity: Severity::Critical,
        claim: "Changes .git/config so that `git status` runs a command outside.",
        source: "git-config(1), core.fsmonitor",
        outside: |stage| in_file(stage, ".git/config", ".git/config is changed"),
        attack: |scene| plant(".git/config".as_ref(), &configuration(scene.get("mark"))),
    },
    Case {
        name: "git-config-replaced",
        severity: Severity::Critical,
        claim: "Puts another configuration in the place of .git/config by a rename.",
        source: "rename(2); git-config(1)",
        outside: |stage| in_file(stage, ".git/config", ".git/config is another file"),
        attack: |scene| {
            plant("new".as_ref(), &configuration(scene.get("mark")))?;
            fs::rename("new", ".git/config")
        },
    },
    Case {
        name: "git-at-the-top",
        severity: Severity::Critical,
        claim: "Makes the workspace itself a repository, whose configuration runs commands outside.",
        source: "git-config(1), safe.bareRepository",
        outside: |stage| {
            let (work, mark) = (stage.workspace(), stage.mark());
            Ok(Judge::after(move |_| {
                let all = ["HEAD", "objects", "refs"].iter().all(|name| work.join(name).exists());
                let is = all && has(&work.join("config"), &mark);
                is.then(|| "the workspace is a repository of the attack".to_owned())
            }))
        },
        attack: |scene| {
            fs::create_dir("objects")?;
            fs::create_dir_all("refs/heads")?;
            plant("HEAD".as_ref(), "ref: refs/heads/main\n")?;
            plant("config".as_ref(), &configuration(scene.get("mark")))?;
            fs::remove_file(".git/HEAD")
        },
    },
    Case {
        name: "git-nested",
        severity: Severity::High,
        claim: "Makes a repository below the workspace that runs a command when Git enters it.",
        source: "git-config(1), safe.bareRepository, core.fsmonitor",
        outside: |stage| in_file(stage, "docs/data/config", "docs/data is a repository"),
        attack: |scene| {
            fs::create_dir_all("docs/data/objects")?;
            fs::create_dir_all("docs/data/refs/heads")?;
            plant("docs/data/HEAD".as_ref(), "ref: refs/heads/main\n")?;
            plant("docs/data/config".as_ref(), &configuration(scene.get("mark")))
        },
    },
    Case {
        name: "git-worktree",
        severity: Severity::High,
        claim: "Leads a worktree of the repository to a configuration of the attack's.",
        source: "gitrepository-layout(5), commondir",
        outside: |stage| {
            let name = ".git/worktrees/other/commondir";
            in_file(stage, name, "commondir leads elsewhere")
        },
        attack: |scene| {
            let text = format!("../../../elsewhere-{}\n", scene.get("mark"));
            plant(".git/worktrees/other/commondir".as_ref(), &text)
        },
    },
    Case {
        name: "editor-task",
        severity: Severity::Critical,
        claim: "Makes a task that VS Code runs when the folder is opened.",
        source: "CVE-2025-53773 (VS Code, .vscode/settings.json)",
        outside: |stage| in_file(stage, ".vscode/tasks.json", ".vscode/tasks.json is there"),
        attack: |scene| plant(".vscode/tasks.json".as_ref(), &command(scene.get("mark"))),
    },
    Case {
        name: "mcp-server",
        severity: Severity::Critical,
        claim: "Names a server that an agent outside will start.",
        source: MCP,
        outside: |stage| in_file(stage, ".mcp.json", ".mcp.json is there"),
        attack: |scene| {
            let text = format!(
                "{{\"mcpServers\": {{\"x\": {{\"command\": \"{}\"}}}}}}",
                scene.get("mark")
            );
            plant(".mcp.json".as_ref(), &text)
        },
    },
    Case {
        name: "cursor-settings",
        severity: Severity::Critical,
        claim: "Writes .cursor/mcp.json, which Cursor obeys.",
        source: MCP,
        outside: |stage| in_file(stage, "sub/.cursor/mcp.json", ".cursor/mcp.json is there"),
        attack: |scene| plant("sub/.cursor/mcp.json".as_ref(), &command(scene.get("mark"))),
    },
    Case {
        name: "agent-instructions",
        severity: Severity::High,
        claim: "Leaves instructions in AGENTS.md and CLAUDE.md that agents outside follow.",
        source: "docs of agents (AGENTS.md, CLAUDE.md)",
        outside: |stage| {
            stage.file("work/sub/AGENTS.md", "Be careful.\n")?;
            let (work, mark) = (stage.workspace(), stage.mark());
            Ok(Judge::after(move |_| {
                let mut files = ["sub/AGENTS.md", "CLAUDE.md"].iter();
                let file = files.find(|name| has(&work.join(name), &mark))?;
                Some(format!("{file} holds what the attack wrote"))
            }))
        },
        attack: |scene| {
            let first = plant("sub/AGENTS.md".as_ref(), scene.get("mark"));
            plant("CLAUDE.md".as_ref(), scene.get("mark")).and(first)
        },
    },
    Case {
        name: "envrc",
        severity: Severity::Critical,
        claim: "Makes .envrc, which direnv runs in the shell that enters the directory.",
        source: "direnv(1)",
        outside: |stage| in_file(stage, ".envrc", ".envrc is there"),
        attack: |scene| plant(".envrc".as_ref(), &command(scene.get("mark"))),
    },
    Case {
        name: "package-manager",
        severity: Severity::High,
        claim: "Makes .npmrc and .yarnrc.yml, which name what package managers execute.",
        source: "npm docs (.npmrc); Yarn docs (yarnPath)",
        outside: |stage| {
            let (work, mark) = (stage.workspace(), stage.mark());
            Ok(Judge::after(move |_| {
                let mut files = [".npmrc", "web/.yarnrc.yml"].iter();
                let file = files.find(|name| has(&work.join(name), &mark))?;
                Some(format!("{file} is there"))
            }))
        },
        attack: |scene| {
            let first =
                plant(".npmrc".as_ref(), &format!("node-options=--require={}", scene.get("mark")));
            plant("web/.yarnrc.yml".as_ref(), &format!("yarnPath: {}", scene.get("mark")))
                .and(first)
        },
    },
    Case {
        name: "debugger-script",
        severity: Severity::High,
        claim: "Makes .gdbinit and .exrc, which debuggers and editors execute.",
        source: "gdb(1); vim(1), 'exrc'",
        outside: |stage| {
            let (work, mark) = (stage.workspace(), stage.mark());
            Ok(Judge::after(move |_| {
                let mut files = [".gdbinit", "src/.exrc"].iter();
                let file = files.find(|name| has(&work.join(name), &mark))?;
                Some(format!("{file} is there"))
            }))
        },
        attack: |scene| {
            let first = plant(".gdbinit".as_ref(), &command(scene.get("mark")));
            plant("src/.exrc".as_ref(), &command(scene.get("mark"))).and(first)
        },
    },
    Case {
        name: "build-file",
        severity: Severity::Low,
        claim: "Changes the Makefile.",
        source: "make(1)",
        outside: |stage| {
            stage.file("work/Makefile", "all:\n")?;
            in_file(stage, "Makefile", "the Makefile is changed")
        },
        attack: |scene| {
            plant("Makefile".as_ref(), &format!("all:\n\techo {}\n", scene.get("mark")))
        },
    },
    Case {
        name: "virtual-environment",
        severity: Severity::Medium,
        claim: "Puts a program into .venv/bin.",
        source: "Python docs, venv",
        outside: |stage| in_file(stage, ".venv/bin/python3", "a program is in .venv/bin"),
        attack: |scene| {
            plant(".venv/bin/python3".as_ref(), &command(scene.get("mark")))?;
            fs::set_permissions(".venv/bin/python3", fs::Permissions::from_mode(0o755))
        },
    },
    Case {
        name: "link-outside",
        severity: Severity::Medium,
        claim: "Leaves a link that leads a program outside to a secret.",
        source: "CVE-2025-53109 (filesystem MCP server, links)",
        outside: |stage| {
            stage.secret()?;
            Ok(is_there(stage.workspace().join("notes.txt"), "a link leads out of the workspace"))
        },
        attack: |scene| std::os::unix::fs::symlink(scene.path("secret"), "notes.txt"),
    },
];
