/*
 * The classic suite of system benchmarks, as a runner: it reads "NAME TIMES" and answers "WALL CPU" in nanoseconds,
 * or "! why". The tests are those that bytebench and UnixBench made known; the code is new.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static char own[4096];
static const char *why;

/* Keeps the compiler from knowing what a value is, or from dropping it. */
#define KEEP(x) __asm__ volatile("" : "+r"(x) : : "memory")

static int fail(const char *what)
{
	static char text[256];

	snprintf(text, sizeof text, "%s: %s", what, strerror(errno));
	why = text;
	return -1;
}

/* Integer work: records, strings, branches, calls. */

enum colour { RED, GREEN, BLUE };

struct record {
	struct record *next;
	enum colour colour;
	int number;
	char name[32];
};

__attribute__((noinline)) static int compare(const char *one, const char *two)
{
	char a[32], b[32];

	strcpy(a, one);
	strcpy(b, two);
	a[3] ^= (char)(b[1] & 1);
	return strcmp(a, b);
}

__attribute__((noinline)) static void follow(struct record *from)
{
	struct record *next = from->next;
	struct record copy = *from;

	copy.number = from->number + 5;
	copy.next = next;
	if (copy.colour == RED)
		copy.number += next->number;
	*next = copy;
	next->next = from;
}

__attribute__((noinline)) static void table(int *one, int (*two)[32], int at, int value)
{
	one[at] = value;
	one[at + 1] = one[at];
	for (int i = at; i <= at + 2; i++)
		two[at][i] = one[at] + i;
	two[at + 3][at] = one[at];
}

static int integers(long times)
{
	static int one[64], two[32][32];
	struct record first = {0}, second = {0};
	int sum = 0;

	first.next = &second;
	strcpy(first.name, "A RECORD'S NAME, OF SOME LENGTH");
	for (long n = 0; n < times; n++) {
		first.colour = (enum colour)(n % 3);
		first.number = (int)n & 1023;
		first.next = &second;
		follow(&first);
		table(one, two, (int)(n & 15), first.number);
		sum += compare(first.name, second.name) + two[n & 15][(n & 15) + 1];
		sum = sum * 7 / 3;
	}
	KEEP(sum);
	return 0;
}

/* Floating point: elementary functions and arrays. */

__attribute__((noinline)) static void mix(double *x, double t)
{
	for (int i = 0; i < 6; i++) {
		x[0] = (x[0] + x[1] + x[2] - x[3]) * t;
		x[1] = (x[0] + x[1] - x[2] + x[3]) * t;
		x[2] = (x[0] - x[1] + x[2] + x[3]) * t;
		x[3] = (-x[0] + x[1] + x[2] + x[3]) / 2.0;
	}
}

static int floats(long times)
{
	double x[4] = {1.0, -1.0, -1.0, -1.0}, y = 0.75, t = 0.49999975;

	for (long n = 0; n < times; n++) {
		mix(x, t);
		y = t * atan(2.0 * sin(y) * cos(y) / (cos(y + x[3] * 1e-9) + cos(y) + 2.0));
		y = sqrt(exp(log(fabs(y) + 0.5) / 1.1));
	}
	KEEP(x[3]);
	KEEP(y);
	return 0;
}

static int arithmetic(long times)
{
	uint32_t i = 101;
	uint64_t l = 101;
	double d = 1.5;

	for (long n = 1; n <= times; n++) {
		i = (i * 3 + (uint32_t)n) / ((uint32_t)n | 1) + i % 7;
		l = (l * 5 + (uint64_t)n) / ((uint64_t)n | 1) + l % 11;
		d = (d + (double)n) / (d * 1.0001 + 1.0);
	}
	KEEP(i);
	KEEP(l);
	KEEP(d);
	return 0;
}

__attribute__((noinline)) static long tower(int discs, int from, int to)
{
	char seen[8];

	if (discs == 0)
		return 0;
	seen[from] = (char)to;
	seen[to] = (char)from;
	__asm__ volatile("" : : "r"(seen) : "memory");
	return tower(discs - 1, from, 6 - from - to) + 1 + tower(discs - 1, 6 - from - to, to);
}

static int hanoi(long times)
{
	long moves = 0;

	for (long n = 0; n < times; n++)
		moves += tower(7, 1, 3);
	KEEP(moves);
	return 0;
}

/* The kernel's work. */

static int calls(long times)
{
	for (long n = 0; n < times; n++) {
		close(dup(0));
		syscall(SYS_getpid);
		syscall(SYS_getuid);
		umask(022);
	}
	return 0;
}

static int pipes(long times)
{
	char bytes[512] = {0};
	int ends[2], failed = 0;

	if (pipe(ends) < 0)
		return fail("pipe");
	for (long n = 0; n < times && !failed; n++)
		failed = write(ends[1], bytes, sizeof bytes) != sizeof bytes || read(ends[0], bytes, sizeof bytes) != sizeof bytes;
	close(ends[0]);
	close(ends[1]);
	return failed ? fail("pipe") : 0;
}

static int reap(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return fail("wait");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		errno = ECHILD;
		return fail("a child failed");
	}
	return 0;
}

static int contexts(long times)
{
	int there[2], back[2], failed = 0;
	unsigned number = 0;
	pid_t child;

	if (pipe(there) < 0 || pipe(back) < 0)
		return fail("pipe");
	child = fork();
	if (child < 0)
		return fail("fork");
	if (child == 0) {
		for (long n = 0; n < times; n++)
			if (read(there[0], &number, sizeof number) != sizeof number || write(back[1], &number, sizeof number) != sizeof number)
				_exit(1);
		_exit(0);
	}
	for (long n = 0; n < times && !failed; n++)
		failed = write(there[1], &number, sizeof number) != sizeof number || read(back[0], &number, sizeof number) != sizeof number;
	for (int i = 0; i < 2; i++) {
		close(there[i]);
		close(back[i]);
	}
	if (reap(child) < 0)
		return -1;
	return failed ? fail("pipe") : 0;
}

static int spawns(long times)
{
	for (long n = 0; n < times; n++) {
		pid_t child = fork();

		if (child < 0)
			return fail("fork");
		if (child == 0)
			_exit(0);
		if (reap(child) < 0)
			return -1;
	}
	return 0;
}

/* A child that executes this program again and again, the number of times left in its argument. */
static int execs(long times)
{
	char left[32];
	pid_t child = fork();

	if (child < 0)
		return fail("fork");
	if (child == 0) {
		snprintf(left, sizeof left, "%ld", times);
		execl(own, own, "again", left, (char *)0);
		_exit(1);
	}
	return reap(child);
}

static int again(const char *argument)
{
	char left[32];
	long times = atol(argument);

	if (times <= 1)
		return 0;
	snprintf(left, sizeof left, "%ld", times - 1);
	execl(own, own, "again", left, (char *)0);
	return 1;
}

static int copy(long times, size_t bytes, size_t blocks)
{
	static char buffer[4096];
	int from, to, failed = 0;

	from = open("copied", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	to = open("copy", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (from < 0 || to < 0)
		return fail("open");
	for (size_t n = 0; n < blocks; n++)
		failed |= write(from, buffer, bytes) != (ssize_t)bytes;
	for (long n = 0; n < times && !failed; n++) {
		if (n % (long)blocks == 0) {
			lseek(from, 0, SEEK_SET);
			lseek(to, 0, SEEK_SET);
		}
		failed = read(from, buffer, bytes) != (ssize_t)bytes || write(to, buffer, bytes) != (ssize_t)bytes;
	}
	close(from);
	close(to);
	return failed ? fail("copy") : 0;
}

static int copy256(long times) { return copy(times, 256, 500); }
static int copy1024(long times) { return copy(times, 1024, 500); }
static int copy4096(long times) { return copy(times, 4096, 500); }

static int files(long times)
{
	char name[64];
	struct stat seen;

	for (long n = 0; n < times; n++) {
		int fd;

		snprintf(name, sizeof name, "directory%ld", n & 7);
		if (mkdir(name, 0700) < 0 && errno != EEXIST)
			return fail("mkdir");
		snprintf(name, sizeof name, "directory%ld/file%ld", n & 7, n & 63);
		fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (fd < 0 || write(fd, name, sizeof name) != sizeof name)
			return fail("open");
		close(fd);
		if (stat(name, &seen) < 0 || rename(name, "renamed") < 0 || unlink("renamed") < 0)
			return fail("rename");
	}
	return 0;
}

static int run(char *const *argv)
{
	pid_t child;
	int error = posix_spawnp(&child, argv[0], NULL, NULL, argv, environ);

	if (error) {
		errno = error;
		return fail(argv[0]);
	}
	return reap(child);
}

static int shells(long times, const char *count)
{
	char *const argv[] = {"sh", "script", (char *)count, NULL};

	for (long n = 0; n < times; n++)
		if (run(argv) < 0)
			return -1;
	return 0;
}

static int shell1(long times) { return shells(times, "1"); }
static int shell8(long times) { return shells(times, "8"); }

static int compiler(long times)
{
	char *const argv[] = {"cc", "-O1", "-c", "unit.c", "-o", "unit.o", NULL};

	for (long n = 0; n < times; n++)
		if (run(argv) < 0)
			return -1;
	return 0;
}

static const struct {
	const char *name;
	int (*test)(long times);
} tests[] = {
	{"dhrystone", integers}, {"whetstone", floats}, {"arithmetic", arithmetic}, {"hanoi", hanoi},
	{"syscall", calls}, {"pipe", pipes}, {"context", contexts}, {"spawn", spawns},
	{"execl", execs}, {"copy256", copy256}, {"copy1024", copy1024}, {"copy4096", copy4096},
	{"files", files}, {"shell1", shell1}, {"shell8", shell8}, {"compiler", compiler},
};

static int64_t now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int64_t processor(void)
{
	struct rusage used;

	getrusage(RUSAGE_CHILDREN, &used);
	return now(CLOCK_PROCESS_CPUTIME_ID) + (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000LL
		+ (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000LL;
}

static void answer(const char *name, long times)
{
	for (size_t n = 0; n < sizeof tests / sizeof tests[0]; n++) {
		int64_t cpu, wall;

		if (strcmp(tests[n].name, name) != 0)
			continue;
		cpu = processor();
		wall = now(CLOCK_MONOTONIC);
		if (tests[n].test(times) < 0) {
			printf("! %s\n", why);
			return;
		}
		wall = now(CLOCK_MONOTONIC) - wall;
		printf("%lld %lld\n", (long long)wall, (long long)(processor() - cpu));
		return;
	}
	printf("! there is no test `%s`\n", name);
}

int main(int argc, char **argv)
{
	char name[32];
	long times;

	if (readlink("/proc/self/exe", own, sizeof own - 1) < 0)
		return 1;
	if (argc == 3 && strcmp(argv[1], "again") == 0)
		return again(argv[2]);
	while (scanf("%31s %ld", name, &times) == 2) {
		answer(name, times);
		fflush(stdout);
	}
	return 0;
}
