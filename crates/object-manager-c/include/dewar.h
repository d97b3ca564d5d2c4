/* Access decisions about a program's own objects, by a policy in the language of SELinux and
 * without its kernel: contexts, decisions, a cache with hints, a status page, a callback for
 * records. Also has what dewar_port.h declares.
 *
 * Functions that fail return NULL, 0 or -1, as said of each, and set errno: EACCES (denied), EINVAL
 * (an argument, a name or a context), ENOENT (no such file, or no daemon), ENOTCONN (the security
 * server does not answer), ERANGE (too little room), EBADMSG (the policy is wrong), EIO, or what
 * the system says; dewar_message() says it in words. Whatever fails denies. Every function may be
 * called by every thread. After fork(2), the child opens a manager of its own. Link with
 * -ldewar. */
#ifndef DEWAR_H
#define DEWAR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A policy, the program's classes, and a cache. */
struct dewar;

/* A class of the program's own: its name in policies, and those of its permissions, up to a NULL,
 * in the order of the program's bits: the n-th is 1 << n. */
struct dewar_class {
	const char *name;
	const char *const *permissions;
};

/* A decision that policy wants on record. Gone when the callback returns. */
struct dewar_record {
	double time;			/* seconds since 1970 */
	int granted;
	pid_t pid;			/* who asked */
	const char *object;		/* as the program names it */
	const char *operation;
	const char *scontext;
	const char *tcontext;
	const char *tclass;
	const char *permissions;	/* missing ones, else those asked for; a space between */
	const char *reason;		/* of a denial, in words */
	const char *would_allow;	/* the rule that would grant it, or NULL */
	const char *json;		/* all of it, as `dewar audit --json` has it */
};

/* Called in the thread that asks, before it learns of the decision. */
typedef void dewar_audit(void *data, const struct dewar_record *record);

/* Called when another policy or boolean is in force, by whichever thread: look again at what is
 * held open for somebody. */
typedef void dewar_change(void *data, uint32_t seqno);

#define DEWAR_DAEMON 1			/* `dewar daemon` decides, or dewar_open fails */
#define DEWAR_DAEMON_IF_THERE 2		/* it decides if one answers */
#define DEWAR_PERMISSIVE 4		/* what is missing is put on record, and granted */

/* What to open. Set what is not used to 0. */
struct dewar_options {
	size_t size;			/* sizeof(struct dewar_options) */
	const char *name;		/* what `dewar daemon --runs` calls it */
	const char *const *policies;	/* files up to a NULL: CIL, or one binary policy */
	const struct dewar_class *classes;
	size_t class_count;
	size_t entries;			/* of the cache; 0: 4,096 */
	unsigned int flags;
	dewar_audit *audit;
	dewar_change *change;
	void *data;			/* for both callbacks */
};

/* Opens a manager, or returns NULL. What the program knows and the policy lacks is as the policy's
 * `handleunknown` says. */
struct dewar *dewar_open(const struct dewar_options *options);

/* Closes it. NULL is allowed. Nobody uses it any more, a callback neither. */
void dewar_close(struct dewar *manager);

/* What went wrong last in this thread; never NULL, and valid until the next call that fails. */
const char *dewar_message(void);

/* What `dewar policy set` and `dewar audit --run` call it, or NULL without a daemon. Valid until it
 * is closed. */
const char *dewar_run(const struct dewar *manager);

/* The number of a class, or 0: the program's own, or else one of Dewar's. */
uint8_t dewar_class_number(const struct dewar *manager, const char *name);

/* The bit of a permission, or 0. */
uint32_t dewar_permission(const struct dewar *manager, uint8_t tclass, const char *name);

/* The SID of a security context, or 0. The same as long as the manager lives; ask once for each
 * object, not each check. */
uint32_t dewar_sid(const struct dewar *manager, const char *context);

/* Writes the context of a SID to `context`, which has `room` bytes. Returns its length, or -1. */
ssize_t dewar_context(const struct dewar *manager, uint32_t sid, char *context, size_t room);

/* The SID of a new object that `ssid` makes in `tsid`, or 0. `name` is the object's for rules that
 * name it, or NULL. */
uint32_t dewar_create(const struct dewar *manager, uint32_t ssid, uint32_t tsid, uint8_t tclass,
		      const char *name);

/* Where the last answer about an object lies: kept with the object, 0 at first, tried before the
 * cache. Grants nothing. */
struct dewar_hint {
	uint32_t place;
};

/* What a check is about, for the record. What is not known is 0. */
struct dewar_about {
	const char *object;
	const char *operation;
	pid_t pid;
};

/* Whether `ssid` may use every permission of `requested` on `tsid`: 0, or -1 with EACCES; -1 with
 * ENOTCONN if there was no answer. `hint` and `about` may be NULL. */
int dewar_check(const struct dewar *manager, uint32_t ssid, uint32_t tsid, uint8_t tclass,
		uint32_t requested, struct dewar_hint *hint, const struct dewar_about *about);

/* The same by names, for what is asked seldom. */
int dewar_check_access(const struct dewar *manager, const char *scontext, const char *tcontext,
		       const char *tclass, const char *permission, const struct dewar_about *about);

/* The security server's answer. */
struct dewar_decision {
	uint32_t allowed;
	uint32_t auditallow;
	uint32_t auditdeny;
	uint32_t seqno;
	int permissive;
};

/* Asks the security server itself, and not the cache. Returns 0, or -1; then `decision` denies
 * everything. */
int dewar_decide(const struct dewar *manager, uint32_t ssid, uint32_t tsid, uint8_t tclass,
		 struct dewar_decision *decision);

/* Writes why `requested` is granted or denied, for people. Returns the length, or -1. */
ssize_t dewar_explain(const struct dewar *manager, uint32_t ssid, uint32_t tsid, uint8_t tclass,
		      uint32_t requested, char *text, size_t room);

/* Replaces the policy by those files. Returns 0, or -1; then the one before is in force. A check
 * that begins after it has returned is never answered from the policy before. */
int dewar_load(const struct dewar *manager, const char *const *policies);

/* Changes a boolean of the policy. Returns 0, or -1. */
int dewar_set_boolean(const struct dewar *manager, const char *name, int value);

/* Whether denials are enforced from now on, or only put on record. */
void dewar_set_enforcing(const struct dewar *manager, int enforcing);

/* As struct selinux_kernel_status. Read `sequence` (acquire) before and after: odd or different
 * means that it changed. */
struct dewar_status {
	uint32_t version;		/* 1 */
	uint32_t sequence;		/* grows with every change */
	uint32_t enforcing;
	uint32_t policyload;		/* policies loaded so far */
	uint32_t deny_unknown;
};

/* The status page. Valid until the manager is closed; only to be read. */
const volatile struct dewar_status *dewar_status_page(const struct dewar *manager);

#ifdef __cplusplus
}
#endif
#endif
