//! Kinds of programs: what people run, in its shortest form.

/// A script, which says the same natively each time. `PORT`, `OUTSIDE` and `IN_HOME` stand for
/// what the stage has: a profile may keep back `HOME`.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) script: &'static str,
}

pub(crate) const PROGRAMS: &[Program] = &[
    Program { name: "reads here", script: "cat given; ls -d . given" },
    Program {
        name: "writes here",
        script: "echo a > made && cat made && mkdir d && mv made d && rm -r d",
    },
    Program {
        name: "runs what it built",
        script: "printf '#!/bin/sh\\necho built\\n' > p && chmod +x p && ./p",
    },
    Program {
        name: "git",
        script: "git init -q . && git add given && git commit -qm x && git log --format=%s",
    },
    Program {
        name: "python",
        script: "python3 -c 'import json, subprocess; print(json.dumps(subprocess.getoutput(\"echo x\")))'",
    },
    Program { name: "temporary file", script: "f=$(mktemp) && echo x > $f && cat $f && rm $f" },
    Program {
        name: "unix server inside",
        script: "python3 -c 'import multiprocessing as m; print(m.Manager().list([1]))'",
    },
    Program {
        name: "TCP server inside",
        script: "python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 0)); c = socket.create_connection(s.getsockname()); print(s.accept()[0].send(b\"x\"))'",
    },
    Program {
        name: "TCP server outside",
        script: "python3 -c 'import socket; print(socket.create_connection((\"127.0.0.1\", PORT)).fileno() > 0)'",
    },
    Program { name: "reads the home", script: "cat IN_HOME/notes" },
    Program { name: "reads a key", script: "cat IN_HOME/.ssh/id_ed25519" },
    Program {
        name: "writes the home",
        script: "echo x > IN_HOME/new && rm IN_HOME/new && echo done",
    },
    Program {
        name: "writes the system",
        script: "test -w /etc/hosts; f=/var/tmp/dewar-$RANDOM$RANDOM; echo x 2> /dev/null > $f && rm $f && echo done",
    },
    Program { name: "signals outside", script: "kill -0 OUTSIDE && echo there" },
];
