/* Checks again and again, as it is told: a line `PLACE TIMES` is answered by nanoseconds of
 * processor time. */
#include <dewar.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ONE 50

static uint32_t ssid, tsids[OBJECTS], get;
static uint8_t class_entry;

static struct dewar *opened(const char *policy, size_t entries)
{
	static const char *const permissions[] = { "get", "put", NULL };
	const struct dewar_class classes[] = { { "entry", permissions } };
	const char *const policies[] = { policy, NULL };
	struct dewar_options options = { .size = sizeof options, .name = "bench", .policies = policies,
					 .classes = classes, .class_count = 1, .entries = entries };
	return dewar_open(&options);
}

static int labelled(struct dewar *manager)
{
	char context[64];
	class_entry = dewar_class_number(manager, "entry");
	get = dewar_permission(manager, class_entry, "get");
	ssid = dewar_sid(manager, "u:r:subject_t");
	for (int n = 0; n < OBJECTS; n++) {
		snprintf(context, sizeof context, "u:object_r:o%d_t", n);
		tsids[n] = dewar_sid(manager, context);
		if (!tsids[n])
			return -1;
	}
	return class_entry && get && ssid ? 0 : -1;
}

static unsigned long long now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

int main(int argc, char **argv)
{
	char place[16];
	unsigned int times;
	struct dewar_hint hint = { 0 };
	/* In the second, nothing that is asked in turn is ever found. The first gives the same SIDs to
	 * the same contexts in the same order. */
	struct dewar *full = argc > 1 ? opened(argv[1], OBJECTS) : NULL;
	struct dewar *small = full ? opened(argv[1], 1) : NULL;
	if (!small || labelled(small) || labelled(full)) {
		fprintf(stderr, "error: %s\n", dewar_message());
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while (scanf("%15s %u", place, &times) == 2) {
		unsigned int granted = 0;
		unsigned long long begin = now();
		if (!strcmp(place, "loop"))
			for (unsigned int n = 0; n < times; n++) {
				__asm__ volatile("" : : "r"(tsids[ONE]), "r"(&hint) : "memory");
				granted++;
			}
		else if (!strcmp(place, "hint"))
			for (unsigned int n = 0; n < times; n++)
				granted += !dewar_check(full, ssid, tsids[ONE], class_entry, get, &hint, NULL);
		else
			for (unsigned int n = 0; n < times; n++)
				granted += !dewar_check(*place == 'c' ? full : small, ssid, tsids[n * 7 % OBJECTS],
							class_entry, get, &hint, NULL);
		if (granted == times)
			printf("%llu\n", now() - begin);
		else
			printf("denied: %s\n", dewar_message());
		fflush(stdout);
	}
	return 0;
}
