/*
 * Asks libsepol, which SELinux's own tools decide with, the questions that our engine answers.
 *
 *   oracle POLICY sample COUNT SEED FLIP   random questions with answers, guided by the policy's rules;
 *                                          FLIP=1 inverts every other boolean first and prints
 * which
 *   oracle POLICY ask                      questions from standard input, one answer a line
 *   oracle POLICY time COUNT SEED          time per decision, over the same kind of questions
 *   oracle POLICY load ROUNDS              time and memory that loading takes
 *
 * Answers of `sample`: av, source, target, class, allowed, auditallow, auditdeny, then the labels
 * of transition, member and change, tab-separated; `-` stands for an invalid label.
 */
#include <sepol/debug.h>
#include <sepol/policydb.h>
#include <sepol/policydb/avtab.h>
#include <sepol/policydb/conditional.h>
#include <sepol/policydb/policydb.h>
#include <sepol/policydb/services.h>
#include <sepol/policydb/sidtab.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* libsepol finds contexts by linear search: keep them few, and begin a new table of them now and
 * then. */
#define CONTEXTS_PER_TYPE 2
#define RANGES 8
#define QUESTIONS_PER_TABLE 400

struct labelled {
	char *text;
	sepol_security_id_t sid;
	int table; /* the table of contexts that `sid` belongs to */
};

struct type_labels {
	struct labelled subjects[CONTEXTS_PER_TYPE], objects[CONTEXTS_PER_TYPE];
	int subject_count, object_count, tried;
};

struct question {
	struct labelled *source, *target;
	sepol_security_class_t class;
};

static policydb_t policy;
static sidtab_t sids;
static struct type_labels *labels;
static char ranges[RANGES][34000];
static avtab_key_t *keys;
static size_t key_count, key_room;
static uint64_t random_state;
static int table = 1;

static uint32_t below(uint32_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 24) % limit;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static int sid_of(const char *context, sepol_security_id_t *sid)
{
	return sepol_context_to_sid((char *)context, strlen(context) + 1, sid);
}

static void load(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct policy_file source;
	if (!file || policydb_init(&policy)) {
		perror(path);
		exit(1);
	}
	policy_file_init(&source);
	source.type = PF_USE_STDIO;
	source.fp = file;
	if (policydb_read(&policy, &source, 0)) {
		fprintf(stderr, "libsepol cannot read %s\n", path);
		exit(1);
	}
	fclose(file);
}

static int remember(avtab_key_t *key, avtab_datum_t *datum, void *unused)
{
	(void)datum;
	(void)unused;
	if (key_count == key_room) {
		key_room = key_room ? 2 * key_room : 65536;
		keys = realloc(keys, key_room * sizeof *keys);
	}
	keys[key_count++] = *key;
	return 0;
}

/* Appends a random level that has at least the categories of `bits`. */
static void level(char *out, size_t room, uint32_t sens, const uint8_t *bits)
{
	size_t used = snprintf(out, room, "%s", policy.p_sens_val_to_name[sens]);
	char separator = ':';
	for (uint32_t c = 0; c < policy.p_cats.nprim; c++)
		if (bits[c]) {
			used += snprintf(out + used, room - used, "%c%s", separator,
					 policy.p_cat_val_to_name[c]);
			separator = ',';
		}
}

static void range(char *out, size_t room)
{
	uint32_t sens = policy.p_levels.nprim, cats = policy.p_cats.nprim;
	uint32_t low = below(sens), high = low + below(sens - low);
	uint8_t *bits = calloc(cats + 1, 1);
	char text[16384];
	for (uint32_t n = cats ? below(3) : 0; n; n--)
		bits[below(cats)] = 1;
	level(text, sizeof text, low, bits);
	size_t used = snprintf(out, room, ":%s", text);
	if (below(3)) {
		for (uint32_t n = cats ? below(4) : 0; n; n--)
			bits[below(cats)] = 1;
		if (cats && !below(4))
			memset(bits, 1, cats);
		level(text, sizeof text, high, bits);
		snprintf(out + used, room - used, "-%s", text);
	}
	free(bits);
}

static void add(struct labelled *list, int *count, const char *text)
{
	sepol_security_id_t sid;
	if (*count == CONTEXTS_PER_TYPE || sid_of(text, &sid))
		return;
	list[*count].text = strdup(text);
	list[*count].table = table;
	list[(*count)++].sid = sid;
}

/* The label with a SID of the current table. */
static struct labelled *current(struct labelled *label)
{
	if (label->table != table && sid_of(label->text, &label->sid))
		exit(1);
	label->table = table;
	return label;
}

static void new_table(void)
{
	sepol_sidtab_destroy(&sids);
	if (policydb_load_isids(&policy, &sids))
		exit(1);
	table++;
}

/* The labels that questions about a type use: made once, at first need. */
static struct type_labels *labels_of(uint32_t type)
{
	static char text[36000];
	struct type_labels *of = &labels[type];
	if (of->tried)
		return of;
	of->tried = 1;
	for (int n = 0; n < 200 && of->subject_count < CONTEXTS_PER_TYPE; n++) {
		uint32_t role = below(policy.p_roles.nprim), user = below(policy.p_users.nprim);
		if (!ebitmap_get_bit(&policy.role_val_to_struct[role]->types.types, type) ||
		    !ebitmap_get_bit(&policy.user_val_to_struct[user]->roles.roles, role))
			continue;
		snprintf(text, sizeof text, "%s:%s:%s%s", policy.p_user_val_to_name[user],
			 policy.p_role_val_to_name[role], policy.p_type_val_to_name[type], ranges[below(RANGES)]);
		add(of->subjects, &of->subject_count, text);
	}
	for (int n = 0; n < 20 && of->object_count < CONTEXTS_PER_TYPE; n++) {
		uint32_t user = below(policy.p_users.nprim);
		snprintf(text, sizeof text, "%s:object_r:%s%s", policy.p_user_val_to_name[user],
			 policy.p_type_val_to_name[type], ranges[below(RANGES)]);
		add(of->objects, &of->object_count, text);
	}
	return of;
}

static struct labelled *label(uint32_t type, int subject)
{
	struct type_labels *of = labels_of(type);
	if (subject && of->subject_count)
		return current(&of->subjects[below(of->subject_count)]);
	return of->object_count ? current(&of->objects[below(of->object_count)]) : NULL;
}

/* A type of that number, or a member of the attribute of that number; -1 if it has none. */
static int64_t member(uint32_t value)
{
	ebitmap_t *members = &policy.attr_type_map[value - 1];
	ebitmap_node_t *node;
	uint32_t bit, count = ebitmap_cardinality(members), chosen;
	if (policy.type_val_to_struct[value - 1]->flavor != TYPE_ATTRIB)
		return value - 1;
	if (!count)
		return -1;
	chosen = below(count);
	ebitmap_for_each_positive_bit(members, node, bit)
		if (!chosen--)
			return bit;
	return -1;
}

static uint32_t any_type(void)
{
	for (;;) {
		uint32_t type = below(policy.p_types.nprim);
		if (policy.type_val_to_struct[type] &&
		    policy.type_val_to_struct[type]->flavor != TYPE_ATTRIB)
			return type;
	}
}

/* Three of four questions follow a rule; some of those leave it in one part. */
static struct question question(void)
{
	for (;;) {
		int64_t source = any_type(), target = any_type();
		uint32_t class = 1 + below(policy.p_classes.nprim);
		if (key_count && below(4)) {
			avtab_key_t *key = &keys[below(key_count)];
			source = member(key->source_type);
			target = below(8) ? member(key->target_type) : any_type();
			if (below(16))
				class = key->target_class;
		}
		if (source < 0 || target < 0)
			continue;
		struct question q = { label(source, below(12)),
				      label(target, class == policy.process_class || !below(6)),
				      class };
		if (q.source && q.target)
			return q;
	}
}

static void print_label(int (*find)(sepol_security_id_t, sepol_security_id_t,
				    sepol_security_class_t, sepol_security_id_t *),
			struct question q, char before)
{
	sepol_security_id_t sid;
	char *text;
	size_t length;
	putchar(before);
	if (find(q.source->sid, q.target->sid, q.class, &sid)) {
		putchar('-');
		return;
	}
	if (sepol_sid_to_context(sid, &text, &length))
		exit(1);
	fputs(text, stdout);
	free(text);
}

static void print_av(struct question q, char separator)
{
	struct sepol_av_decision d;
	unsigned reason;
	sepol_compute_av_reason(q.source->sid, q.target->sid, q.class, ~0u, &d, &reason);
	printf("%08x%c%08x%c%08x", d.allowed, separator, d.auditallow, separator, d.auditdeny);
}

static void flip(void)
{
	for (uint32_t n = 0; n < policy.p_bools.nprim; n += 2) {
		policy.bool_val_to_struct[n]->state ^= 1;
		printf("bool\t%s\t%d\n", policy.p_bool_val_to_name[n],
		       policy.bool_val_to_struct[n]->state);
	}
	evaluate_conds(&policy);
}

static void sample(long count, int flipped)
{
	if (flipped)
		flip();
	for (long n = 0; n < count; n++) {
		if (n % QUESTIONS_PER_TABLE == 0)
			new_table();
		struct question q = question();
		printf("av\t%s\t%s\t%s\t", q.source->text, q.target->text,
		       policy.p_class_val_to_name[q.class - 1]);
		print_av(q, '\t');
		print_label(sepol_transition_sid, q, '\t');
		print_label(sepol_member_sid, q, '\t');
		print_label(sepol_change_sid, q, '\t');
		putchar('\n');
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void measure(long count)
{
	struct question *questions = malloc(count * sizeof *questions);
	double *times = malloc(count * sizeof *times), sum = 0;
	struct sepol_av_decision d;
	for (long n = 0; n < count; n++)
		questions[n] = question();
	for (long n = 0; n < count; n++) {
		double start = now();
		sepol_compute_av(questions[n].source->sid, questions[n].target->sid,
				 questions[n].class, 0, &d);
		times[n] = (now() - start) * 1e9;
		sum += times[n];
	}
	qsort(times, count, sizeof *times, by_value);
	printf("mean_ns\t%.0f\nmedian_ns\t%.0f\np99_ns\t%.0f\n", sum / count, times[count / 2],
	       times[count * 99 / 100]);
}

static void ask(void)
{
	char *reason = NULL;
	static char line[200000], op[16], first[65536], second[65536], class[256], third[65536];
	while (fgets(line, sizeof line, stdin)) {
		struct labelled a = { first, 0, 0 }, b = { second, 0, 0 };
		sepol_security_id_t task;
		struct question q = { &a, &b, 0 };
		third[0] = 0;
		if (sscanf(line, "%15s %65535s %65535s %255s %65535s", op, first, second, class,
			   third) < 4 ||
		    sid_of(first, &a.sid) || sid_of(second, &b.sid) ||
		    sepol_string_to_security_class(class, &q.class))
			puts("invalid");
		else if (!strcmp(op, "validate"))
			puts(sid_of(third, &task) ? "invalid" :
			     sepol_validate_transition_reason_buffer(a.sid, b.sid, task, q.class, &reason,
								     0) ? "refused" : "ok");
		else {
			print_av(q, ' ');
			print_label(sepol_transition_sid, q, ' ');
			print_label(sepol_member_sid, q, ' ');
			print_label(sepol_change_sid, q, ' ');
			putchar('\n');
		}
	}
}

/* getrusage() would count what the program that started us used. */
static void print_peak(void)
{
	char line[256];
	long kib;
	FILE *status = fopen("/proc/self/status", "r");
	while (status && fgets(line, sizeof line, status))
		if (sscanf(line, "VmHWM: %ld", &kib) == 1)
			printf("peak_kib\t%ld\n", kib);
	if (status)
		fclose(status);
}

static void measure_load(const char *path, long rounds)
{
	for (long n = 0; n < rounds; n++) {
		double start = now();
		load(path);
		printf("load_ms\t%.2f\n", (now() - start) * 1e3);
		if (!n)
			print_peak();
		policydb_destroy(&policy);
	}
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	sepol_debug(0);
	if (!strcmp(argv[2], "load") && argc == 4) {
		measure_load(argv[1], atol(argv[3]));
		return 0;
	}
	load(argv[1]);
	sepol_set_policydb(&policy);
	if (policydb_load_isids(&policy, &sids))
		return 1;
	sepol_set_sidtab(&sids);
	labels = calloc(policy.p_types.nprim, sizeof *labels);
	avtab_map(&policy.te_avtab, remember, NULL);
	avtab_map(&policy.te_cond_avtab, remember, NULL);
	random_state = argc > 4 ? strtoull(argv[4], NULL, 0) * 0x9E3779B97F4A7C15ull | 1 : 1;
	for (int n = 0; policy.mls && n < RANGES; n++)
		range(ranges[n], sizeof ranges[n]);
	if (!strcmp(argv[2], "sample") && argc == 6)
		sample(atol(argv[3]), atoi(argv[5]));
	else if (!strcmp(argv[2], "time") && argc == 5)
		measure(atol(argv[3]));
	else if (!strcmp(argv[2], "ask"))
		ask();
	else
		return 2;
	return 0;
}
