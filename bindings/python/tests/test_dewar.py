"""The wheel, installed: `make wheel` runs this in a fresh environment."""
import gc
import threading
import unittest

import dewar

POLICY = """
(class entry (delete get put)) (classorder (entry))
(user u) (role r) (userrole u r)
(type reader_t) (type writer_t) (type open_t)
(roletype r reader_t) (roletype r writer_t) (roletype object_r open_t)
(boolean published true)
(booleanif published (true (allow reader_t open_t (entry (get)))))
(allow writer_t open_t (entry (get put)))
(auditallow writer_t open_t (entry (put)))
"""
CLASSES = {"entry": ["put", "get", "shred"]}


def avc(**more):
    return dewar.Avc(dewar.Policy.from_text(POLICY), classes=CLASSES, **more)


class Decisions(unittest.TestCase):
    def test_what_is_granted_returns_and_what_is_not_raises_with_its_reasons(self):
        records = []
        it = avc(audit=records.append)
        reader, entry = it.context("u:r:reader_t"), it.context("u:object_r:open_t")
        it.check(reader, entry, "entry", "get")
        self.assertTrue(it.has_perm(reader, entry, "entry", ["get"]))
        self.assertEqual(records, [])
        with self.assertRaises(dewar.Denied) as caught:
            it.check(reader, entry, "entry", ["get", "put"], about="plan", operation="put", pid=1)
        denied = caught.exception
        self.assertEqual(str(denied), "reader_t may not put open_t (entry)")
        self.assertIsInstance(denied, PermissionError)
        self.assertEqual((denied.missing, denied.tclass, denied.answered), (["put"], "entry", True))
        [record] = records
        self.assertEqual((record["object"], record["call"], record["pid"]), ("plan", "put", 1))
        self.assertEqual(record["would_allow"], "(allow reader_t open_t (entry (put)))")
        self.assertEqual(it.explain(reader, entry, "entry", "put")["would_allow"], record["would_allow"])
        for permission in ("shred", []):
            with self.assertRaises(dewar.Denied):
                it.check(reader, entry, "entry", permission)
        self.assertEqual(it.lacking, [("entry", "shred")])

    def test_a_change_of_policy_reaches_every_context_that_is_kept(self):
        states = []
        it = avc(on_change=states.append)
        reader, entry = it.context("u:r:reader_t"), it.context("u:object_r:open_t")
        self.assertTrue(it.has_perm(reader, entry, "entry", "get"))
        self.assertEqual(states, [it.set_boolean("published", False)])
        self.assertFalse(it.has_perm(reader, entry, "entry", "get"))
        it.load(dewar.Policy.from_text(POLICY))
        self.assertTrue(it.has_perm(reader, entry, "entry", "get"))
        self.assertEqual(len(states), 2)
        it.enforcing = False
        it.check(reader, entry, "entry", "put")
        self.assertFalse(it.enforcing)

    def test_mistakes_are_named(self):
        it = avc()
        with self.assertRaisesRegex(dewar.PolicyError, "bad.cil"):
            dewar.Avc(dewar.Policy.from_text("(allow", name="bad.cil"))
        with self.assertRaisesRegex(dewar.PolicyError, "/nowhere"):
            dewar.Avc(dewar.Policy.from_files("/nowhere"))
        for wrong in (lambda: it.context("x"), lambda: it.set_boolean("none", True)):
            self.assertRaises(dewar.PolicyError, wrong)
        entry = it.context("u:object_r:open_t")
        self.assertRaises(dewar.PolicyError, it.check, entry, entry, "entry", "burn")
        self.assertRaises(dewar.PolicyError, it.check, entry, entry, "none", "get")
        with self.assertRaisesRegex(dewar.PolicyError, "another Avc"):
            avc().check(entry, entry, "entry", "get")
        self.assertRaises(OSError, dewar.peer, -1)

    def test_a_callback_that_raises_changes_no_decision(self):
        def audit(_):
            raise RuntimeError("expected: nobody can catch it")

        it = avc(audit=audit)
        reader, entry = it.context("u:r:reader_t"), it.context("u:object_r:open_t")
        with self.assertRaises(dewar.Denied):
            it.check(reader, entry, "entry", "put")

    def test_threads_may_ask_while_the_policy_changes(self):
        it = avc(audit=lambda record: None)
        writer, entry = it.context("u:r:writer_t"), it.context("u:object_r:open_t")
        failed = []

        def ask():
            try:
                for _ in range(2000):
                    it.check(writer, entry, "entry", ["get", "put"])
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for n in range(50):
            it.set_boolean("published", bool(n % 2))
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])
        self.assertGreater(it.stats["hint"], 0)

    def test_contexts_are_values(self):
        it = avc()
        one, two = it.context("u:object_r:open_t"), it.context("u:object_r:open_t")
        self.assertEqual({one: 1}[two], 1)
        self.assertEqual((str(one), one.type, one.sid), ("u:object_r:open_t", "open_t", two.sid))
        self.assertNotEqual(one, "u:object_r:open_t")
        del it
        gc.collect()
        self.assertEqual(str(one), "u:object_r:open_t")


if __name__ == "__main__":
    unittest.main()
