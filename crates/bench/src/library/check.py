"""Checks again and again, as it is told: a line `PLACE TIMES` is answered by nanoseconds of processor time."""

import sys
from time import thread_time_ns

import dewar

POLICY, OBJECTS, ONE = sys.argv[1], int(sys.argv[2]), 50


class Stage:
    def __init__(self, entries):
        policy = dewar.Policy.from_files(POLICY)
        self.avc = dewar.Avc(policy, classes={"entry": ["get", "put"]}, entries=entries)
        self.subject = self.avc.context("u:r:subject_t")
        self.objects = [f"u:object_r:o{n}_t" for n in range(OBJECTS)]
        # A hint belongs to a context object: another one for the same label has none.
        self.contexts = [self.avc.context(text) for text in self.objects]


def loop(stage, times):
    subject, one = stage.subject, stage.contexts[ONE]
    begin = thread_time_ns()
    for _ in range(times):
        (subject, one, "entry", "get")
    return thread_time_ns() - begin


def hint(stage, times):
    check, subject, one = stage.avc.check, stage.subject, stage.contexts[ONE]
    begin = thread_time_ns()
    for _ in range(times):
        check(subject, one, "entry", "get")
    return thread_time_ns() - begin


def anew(stage, times):
    """Every object in turn, each time by a context without a hint."""
    check, subject, took = stage.avc.check, stage.subject, 0
    while times > 0:
        some = min(times, OBJECTS)
        contexts = [stage.avc.context(stage.objects[n * 7 % OBJECTS]) for n in range(some)]
        begin = thread_time_ns()
        for context in contexts:
            check(subject, context, "entry", "get")
        took += thread_time_ns() - begin
        times -= some
    return took


full, small = Stage(OBJECTS), Stage(1)
print("ready", flush=True)
for line in sys.stdin:
    place, times = line.split()
    ask = {"loop": loop, "hint": hint}.get(place, anew)
    print(ask(small if place == "server" else full, int(times)), flush=True)
