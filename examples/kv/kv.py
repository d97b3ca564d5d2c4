"""A key-value server whose entries are labelled objects, in Python: kv.rs says what it does (but for `watch`).

    python3 kv.py SOCKET POLICY [--daemon] UID=CONTEXT...
"""
import os
import socketserver
import sys
import threading

import dewar

PERMISSIONS = ["create", "get", "put", "delete", "getattr", "relabelfrom", "relabelto"]


class Store:
    def __init__(self, policy, daemon, users):
        self.avc = dewar.Avc(
            dewar.Policy.from_files(policy), classes={"entry": PERMISSIONS}, name="kv", daemon=daemon, audit=self.audit
        )
        self.users = users
        self.label = self.avc.context("dewar_u:object_r:store_t")
        self.entries = {}
        self.lock = threading.Lock()

    @staticmethod
    def audit(record):
        verdict = "granted" if record["granted"] else "denied"
        print(f"kv: {verdict} {record['requested']} {record['object']}: {record['would_allow']}", file=sys.stderr, flush=True)

    def subject(self, peer):
        """Who asks: as its run says, or by its user."""
        context = peer.context or self.users.get(peer.uid)
        if context is None:
            raise PermissionError(f"user {peer.uid} is nobody here")
        return self.avc.context(context)

    def answer(self, subject, peer, line):
        word, key, rest = (line.split(" ", 2) + ["", ""])[:3]

        def check(label, permission):
            self.avc.check(subject, label, "entry", permission, about=key, operation=word, pid=peer.pid)

        with self.lock:
            found = self.entries.get(key)
            if found is None and word == "put":
                label = self.avc.create(subject, self.label, "entry", key)
                check(label, "create")
                self.entries[key] = (label, rest)
                return "ok"
            if found is None:
                return "none"
            label, value = found
            if word == "get":
                check(label, "get")
                return f"value {value}"
            if word == "put":
                check(label, "put")
                self.entries[key] = (label, rest)
            elif word == "delete":
                check(label, "delete")
                del self.entries[key]
            elif word == "label":
                check(label, "getattr")
                return f"label {label}"
            elif word == "relabel":
                new = self.avc.context(rest)
                check(label, "relabelfrom")
                check(new, "relabelto")
                self.entries[key] = (new, value)
            else:
                return f"error no request `{word}`"
            return "ok"


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        store = self.server.store
        try:
            peer = dewar.peer(self.request)
            subject = store.subject(peer)
            for line in self.rfile:
                if not peer.is_current:
                    peer = dewar.peer(self.request)
                    subject = store.subject(peer)
                self.say(self.answer(subject, peer, line.decode().rstrip("\n")))
        except (OSError, ValueError) as error:
            self.say(f"refused {error}")

    def answer(self, subject, peer, line):
        try:
            return self.server.store.answer(subject, peer, line)
        except dewar.Denied as denied:
            return f"denied {denied}"
        except dewar.PolicyError as error:
            return str(error)

    def say(self, line):
        self.wfile.write(f"{line}\n".encode())


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: kv.py SOCKET POLICY [--daemon] UID=CONTEXT...")
    path, policy, *words = sys.argv[1:]
    users = {int(uid): context for uid, context in (word.split("=", 1) for word in words if "=" in word)}
    store = Store(policy, "--daemon" in words, users)
    if os.path.exists(path):
        os.unlink(path)
    with Server(path, Handler) as server:
        server.store = store
        run = f" as run {store.avc.run}" if store.avc.run else ""
        print(f"ready{run}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
