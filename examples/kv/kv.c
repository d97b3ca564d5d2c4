/* A key-value server whose entries are labelled objects, in C: kv.rs says what it does (but for
 * `watch`).
 *
 *     cc kv.c $(pkg-config --cflags --libs dewar)
 *     ./a.out SOCKET POLICY [--daemon] UID=CONTEXT... */
#define _GNU_SOURCE			/* struct ucred */
#include <dewar.h>
#include <dewar_port.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CLIENTS 64
#define LINE 4096
#define CONTEXT 256

struct entry {
	struct entry *next;
	uint32_t sid;
	struct dewar_hint hint;
	char *key, *value;
};

struct client {
	int fd;
	size_t filled;
	char line[LINE];
};

static struct dewar *manager;
static uint8_t class_entry;
static uint32_t store_sid;
static struct entry *entries;
static char **users;

/* Puts denials on standard error. */
static void audit(void *data, const struct dewar_record *record)
{
	(void)data;
	fprintf(stderr, "kv: %s { %s } %s %s: %s\n", record->granted ? "granted" : "denied", record->permissions,
		record->operation, record->object, record->would_allow ? record->would_allow : "");
}

/* Whose SID: the one that its run vouches for, or that of its user; 0 if nobody knows. */
static uint32_t subject(int fd, struct ucred *who)
{
	char context[CONTEXT];
	socklen_t length = sizeof *who;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, who, &length))
		return 0;
	ssize_t inside = dewar_client_context(fd, context, sizeof context);
	if (inside < 0)
		return 0;
	if (inside > 0)
		return dewar_sid(manager, context);
	for (char **user = users; *user; user++) {
		char *end;
		if (strtoul(*user, &end, 10) == who->uid && *end == '=')
			return dewar_sid(manager, end + 1);
	}
	return 0;
}

static int may(uint32_t ssid, uint32_t tsid, struct dewar_hint *hint, const char *permission,
	       const struct dewar_about *about)
{
	uint32_t requested = dewar_permission(manager, class_entry, permission);
	return dewar_check(manager, ssid, tsid, class_entry, requested, hint, about) == 0;
}

static struct entry **find(const char *key)
{
	struct entry **place = &entries;
	while (*place && strcmp((*place)->key, key))
		place = &(*place)->next;
	return place;
}

/* Answers one request. */
static void answer(int fd, char *line, char *reply)
{
	struct ucred who;
	uint32_t ssid = subject(fd, &who);
	char *word = line, *key = strchr(line, ' '), *rest = key ? strchr(key + 1, ' ') : NULL;
	if (rest)
		*rest++ = 0;
	if (key)
		*key++ = 0;
	key = key ? key : "";
	rest = rest ? rest : "";
	struct dewar_about about = { .object = key, .operation = word, .pid = who.pid };
	struct entry **place = find(key), *entry = *place;
	if (!ssid) {
		snprintf(reply, LINE, "refused user %u is nobody here", (unsigned)who.uid);
		return;
	}
	if (!entry && !strcmp(word, "put")) {
		struct dewar_hint hint = { 0 };
		uint32_t sid = dewar_create(manager, ssid, store_sid, class_entry, key);
		if (!sid || !may(ssid, sid, &hint, "create", &about))
			goto denied;
		entry = calloc(1, sizeof *entry);
		*entry = (struct entry){ .next = entries, .sid = sid, .hint = hint, .key = strdup(key), .value = strdup(rest) };
		entries = entry;
	} else if (!entry) {
		strcpy(reply, "none");
		return;
	} else if (!strcmp(word, "get")) {
		if (!may(ssid, entry->sid, &entry->hint, "get", &about))
			goto denied;
		snprintf(reply, LINE, "value %s", entry->value);
		return;
	} else if (!strcmp(word, "put")) {
		if (!may(ssid, entry->sid, &entry->hint, "put", &about))
			goto denied;
		free(entry->value);
		entry->value = strdup(rest);
	} else if (!strcmp(word, "delete")) {
		if (!may(ssid, entry->sid, &entry->hint, "delete", &about))
			goto denied;
		*place = entry->next;
		free(entry->key);
		free(entry->value);
		free(entry);
	} else if (!strcmp(word, "label")) {
		char context[CONTEXT];
		if (!may(ssid, entry->sid, &entry->hint, "getattr", &about) ||
		    dewar_context(manager, entry->sid, context, sizeof context) < 0)
			goto denied;
		snprintf(reply, LINE, "label %s", context);
		return;
	} else if (!strcmp(word, "relabel")) {
		struct dewar_hint hint = { 0 };
		uint32_t sid = dewar_sid(manager, rest);
		if (!sid) {
			snprintf(reply, LINE, "%s", dewar_message());
			return;
		}
		if (!may(ssid, entry->sid, &entry->hint, "relabelfrom", &about) || !may(ssid, sid, &hint, "relabelto", &about))
			goto denied;
		entry->sid = sid;
		entry->hint = hint;
	} else {
		snprintf(reply, LINE, "error no request `%s`", word);
		return;
	}
	strcpy(reply, "ok");
	return;
denied:
	snprintf(reply, LINE, "denied %s", dewar_message());
}

/* Reads what came, and answers each line. Returns 0 when the client is gone, or sends a line that
 * is too long. */
static int serve(struct client *client)
{
	ssize_t length = read(client->fd, client->line + client->filled, sizeof client->line - client->filled);
	if (length <= 0)
		return 0;
	client->filled += length;
	for (char *end; (end = memchr(client->line, '\n', client->filled));) {
		char reply[LINE + 1];
		*end = 0;
		answer(client->fd, client->line, reply);
		strcat(reply, "\n");
		if (send(client->fd, reply, strlen(reply), MSG_NOSIGNAL) < 0)
			return 0;
		client->filled -= end + 1 - client->line;
		memmove(client->line, end + 1, client->filled);
	}
	return client->filled < sizeof client->line;
}

static int fail(const char *what)
{
	fprintf(stderr, "kv: %s\n", what);
	return 1;
}

int main(int argc, char **argv)
{
	static const char *const permissions[] = { "create", "get", "put", "delete", "getattr", "relabelfrom", "relabelto", NULL };
	static const struct dewar_class classes[] = { { "entry", permissions } };
	if (argc < 3)
		return fail("usage: kv SOCKET POLICY [--daemon] UID=CONTEXT...");
	int served = argc > 3 && !strcmp(argv[3], "--daemon");
	users = argv + 3 + served;
	struct dewar_options options = {
		.size = sizeof options,
		.name = "kv",
		.policies = (const char *const[]){ argv[2], NULL },
		.classes = classes,
		.class_count = 1,
		.flags = served ? DEWAR_DAEMON : 0,
		.audit = audit,
	};
	manager = dewar_open(&options);
	if (!manager)
		return fail(dewar_message());
	class_entry = dewar_class_number(manager, "entry");
	store_sid = dewar_sid(manager, "dewar_u:object_r:store_t");
	if (!class_entry || !store_sid)
		return fail(dewar_message());

	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct pollfd fds[CLIENTS + 1] = { { .fd = socket(AF_UNIX, SOCK_STREAM, 0), .events = POLLIN } };
	static struct client clients[CLIENTS];
	int count = 0;
	snprintf(address.sun_path, sizeof address.sun_path, "%s", argv[1]);
	unlink(argv[1]);
	if (bind(fds[0].fd, (struct sockaddr *)&address, sizeof address) || listen(fds[0].fd, 16))
		return fail(strerror(errno));
	const char *run = dewar_run(manager);
	printf("ready%s%s\n", run ? " as run " : "", run ? run : "");
	fflush(stdout);
	for (;;) {
		for (int n = 0; n < count; n++)
			fds[n + 1] = (struct pollfd){ .fd = clients[n].fd, .events = POLLIN };
		if (poll(fds, count + 1, -1) < 0 && errno != EINTR)
			return fail(strerror(errno));
		for (int n = count - 1; n >= 0; n--)
			if (fds[n + 1].revents && !serve(&clients[n])) {
				close(clients[n].fd);
				clients[n] = clients[--count];
			}
		if (fds[0].revents && count < CLIENTS)
			clients[count++] = (struct client){ .fd = accept(fds[0].fd, NULL, NULL) };
	}
}
