/* Calls every function of dewar.h, in good ways and in bad ones.
 *
 *     api POLICY ROUNDS     POLICY is examples/kv/kv.cil; ROUNDS of checks by several threads while the policy changes */
#include <dewar.h>
#include <dewar_port.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WANT(condition)                                                                                         \
	do {                                                                                                    \
		if (!(condition)) {                                                                             \
			printf("line %d: %s (errno %d: %s)\n", __LINE__, #condition, errno, dewar_message()); \
			exit(1);                                                                                \
		}                                                                                               \
	} while (0)
#define FAILS(errno_, call) \
	do {                \
		errno = 0;  \
		WANT(call); \
		WANT(errno == (errno_)); \
		WANT(*dewar_message()); \
	} while (0)

static struct dewar *manager;
static struct dewar_hint shared;
static uint32_t reader, writer, officer, public;
static uint8_t entry;
static long rounds;
static int records, changes;
static char last[256];

static void audit(void *data, const struct dewar_record *record)
{
	WANT(data == &records);
	records++;
	snprintf(last, sizeof last, "%d %s %s %s %s", record->granted, record->permissions, record->object, record->operation,
		 record->would_allow ? record->would_allow : "-");
	WANT(strstr(record->json, "\"tclass\":\"entry\""));
}

static void change(void *data, uint32_t seqno)
{
	WANT(data == &records && seqno > 1);
	changes++;
}

static void *ask(void *permission)
{
	for (long n = 0; n < rounds; n++)
		WANT(dewar_check(manager, writer, public, entry, *(uint32_t *)permission, &shared, NULL) == 0);
	return NULL;
}

int main(int argc, char **argv)
{
	static const char *const permissions[] = { "get", "put", "relabelto", "shred", NULL };
	static const struct dewar_class classes[] = { { "entry", permissions } };
	const char *policies[] = { argv[1], NULL }, *absent[] = { "/nowhere.cil", NULL }, *wrong[] = { "/proc/self/cmdline", NULL };
	struct dewar_options options = {
		.size = sizeof options, .name = "api", .policies = policies, .classes = classes, .class_count = 1,
		.audit = audit, .change = change, .data = &records,
	};
	WANT(argc == 3);
	rounds = atol(argv[2]);

	FAILS(EINVAL, !dewar_open(NULL));
	struct dewar_options bad = options;
	bad.size = 1;
	FAILS(EINVAL, !dewar_open(&bad));
	bad = options;
	bad.name = NULL;
	FAILS(EINVAL, !dewar_open(&bad));
	bad = options;
	bad.policies = absent;
	FAILS(ENOENT, !dewar_open(&bad));
	WANT(strstr(dewar_message(), "/nowhere.cil"));
	bad.policies = wrong;
	FAILS(EBADMSG, !dewar_open(&bad));
	bad.policies = NULL;
	FAILS(EINVAL, !dewar_open(&bad));
	bad = options;
	bad.classes = (const struct dewar_class[]){ { "a b", permissions } };
	FAILS(EINVAL, !dewar_open(&bad));
	bad = options;
	bad.flags = 1 << 30;
	FAILS(EINVAL, !dewar_open(&bad));

	WANT(manager = dewar_open(&options));
	WANT(!dewar_run(manager));
	WANT(entry = dewar_class_number(manager, "entry"));
	WANT(dewar_class_number(manager, "file") && dewar_class_number(manager, "file") != entry);
	FAILS(EINVAL, !dewar_class_number(manager, "nothing"));
	uint32_t get = dewar_permission(manager, entry, "get"), put = dewar_permission(manager, entry, "put");
	uint32_t relabelto = dewar_permission(manager, entry, "relabelto"), shred = dewar_permission(manager, entry, "shred");
	WANT(get == 1 && put == 2 && relabelto == 4 && shred == 8);
	FAILS(EINVAL, !dewar_permission(manager, entry, "nothing"));
	FAILS(EINVAL, !dewar_permission(manager, 0, "get"));
	WANT(reader = dewar_sid(manager, "dewar_u:dewar_r:reader_t"));
	WANT(writer = dewar_sid(manager, "dewar_u:dewar_r:writer_t"));
	WANT(officer = dewar_sid(manager, "dewar_u:dewar_r:officer_t"));
	WANT(public = dewar_sid(manager, "dewar_u:object_r:public_t"));
	WANT(public == dewar_sid(manager, "dewar_u:object_r:public_t"));
	FAILS(EINVAL, !dewar_sid(manager, "nonsense"));
	FAILS(EINVAL, !dewar_sid(manager, NULL));
	FAILS(EINVAL, !dewar_sid(NULL, "dewar_u:object_r:public_t"));
	char context[64];
	WANT(dewar_context(manager, public, context, sizeof context) == (ssize_t)strlen("dewar_u:object_r:public_t"));
	WANT(!strcmp(context, "dewar_u:object_r:public_t"));
	FAILS(ERANGE, dewar_context(manager, public, context, 5) == -1);
	FAILS(EINVAL, dewar_context(manager, 123456, context, sizeof context) == -1);
	uint32_t store = dewar_sid(manager, "dewar_u:object_r:store_t");
	WANT(dewar_create(manager, writer, store, entry, NULL) == public);
	WANT(dewar_create(manager, writer, store, entry, "name") == public);
	FAILS(EINVAL, !dewar_create(manager, 0, store, entry, NULL));

	struct dewar_hint hint = { 0 };
	struct dewar_about about = { "the plan", "test", 0 };
	WANT(dewar_check(manager, reader, public, entry, get, &hint, &about) == 0);
	WANT(dewar_check(manager, reader, public, entry, get, &hint, NULL) == 0);
	WANT(dewar_check(manager, reader, public, entry, get, NULL, NULL) == 0 && records == 0);
	FAILS(EACCES, dewar_check(manager, reader, public, entry, put, &hint, &about) == -1);
	WANT(!strcmp(dewar_message(), "reader_t may not put public_t (entry)"));
	WANT(!strcmp(last, "0 put the plan test (allow reader_t public_t (entry (put)))") && records == 1);
	FAILS(EACCES, dewar_check(manager, reader, public, entry, get | put, &hint, &about) == -1);
	FAILS(EACCES, dewar_check(manager, reader, public, entry, shred, &hint, &about) == -1);
	FAILS(EACCES, dewar_check(manager, reader, public, entry, 0, &hint, &about) == -1);
	FAILS(EACCES, dewar_check(manager, reader, public, entry, 1u << 31, &hint, &about) == -1);
	FAILS(EACCES, dewar_check(manager, 99999, public, entry, get, &hint, &about) == -1);
	FAILS(EINVAL, dewar_check(manager, reader, public, 0, get, &hint, &about) == -1);
	FAILS(EINVAL, dewar_check(NULL, reader, public, entry, get, &hint, &about) == -1);
	hint.place = 0xffffffff;
	WANT(dewar_check(manager, reader, public, entry, get, &hint, &about) == 0);
	WANT(dewar_check(manager, officer, public, entry, relabelto, &hint, &about) == 0);
	WANT(!strcmp(last, "1 relabelto the plan test -"));
	const char *reads = "dewar_u:dewar_r:reader_t", *opened = "dewar_u:object_r:public_t";
	WANT(dewar_check_access(manager, reads, opened, "entry", "get", NULL) == 0);
	FAILS(EACCES, dewar_check_access(manager, reads, opened, "entry", "put", NULL) == -1);
	FAILS(EACCES, dewar_check_access(manager, "x", opened, "entry", "get", NULL) == -1);
	FAILS(EINVAL, dewar_check_access(manager, NULL, opened, "entry", "get", NULL) == -1);
	struct dewar_decision decision;
	WANT(dewar_decide(manager, reader, public, entry, &decision) == 0);
	WANT(decision.allowed == get && decision.auditdeny == 0xffffffff && decision.seqno && !decision.permissive);
	FAILS(EINVAL, dewar_decide(manager, 0, public, entry, &decision) == -1);
	WANT(!decision.allowed);
	char text[1024];
	WANT(dewar_explain(manager, reader, public, entry, put, text, sizeof text) > 0);
	WANT(strstr(text, "(allow reader_t public_t (entry (put)))"));

	const volatile struct dewar_status *status = dewar_status_page(manager);
	WANT(status->version == 1 && status->enforcing && status->policyload == 1 && status->deny_unknown);
	uint32_t sequence = status->sequence;
	WANT(dewar_set_boolean(manager, "published", 0) == 0 && changes == 1 && status->sequence != sequence);
	FAILS(EACCES, dewar_check(manager, reader, public, entry, get, &hint, &about) == -1);
	FAILS(EINVAL, dewar_set_boolean(manager, "nothing", 0) == -1);
	FAILS(ENOENT, dewar_load(manager, absent) == -1);
	FAILS(EACCES, dewar_check(manager, reader, public, entry, get, &hint, &about) == -1);
	WANT(dewar_load(manager, policies) == 0 && changes == 2 && status->policyload == 2);
	WANT(dewar_check(manager, reader, public, entry, get, &hint, &about) == 0);
	dewar_set_enforcing(manager, 0);
	WANT(!status->enforcing && dewar_check(manager, reader, public, entry, put, &hint, &about) == 0);
	dewar_set_enforcing(manager, 1);
	FAILS(EACCES, dewar_check(manager, reader, public, entry, put, &hint, &about) == -1);

	pthread_t threads[4];
	for (int n = 0; n < 4; n++)
		WANT(!pthread_create(&threads[n], NULL, ask, n % 2 ? &get : &put));
	for (int n = 0; n < 40; n++)
		WANT(dewar_set_boolean(manager, "published", n % 2) == 0);
	for (int n = 0; n < 4; n++)
		WANT(!pthread_join(threads[n], NULL));

	WANT(dewar_client_context(-1, context, sizeof context) == -1);
	dewar_close(manager);
	dewar_close(NULL);
	puts("all is well");
}
