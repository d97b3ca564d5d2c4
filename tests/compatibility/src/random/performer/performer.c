/* Performs programs of system calls, one after the other, and prints what each call returned.
 *
 *   performer DIRECTORY < PROGRAMS
 *
 * Every program runs in a new process and in a new directory `DIRECTORY/N/w`. A program is a block
 * of lines up to a line `end`; a line is a call with its arguments, numbers or names. The lines of
 * `blocks.c` hold a block up to their own `end`, which runs elsewhere: in a child, in a thread, in
 * this program executed anew, or in turns with what follows it. What is printed depends on nothing
 * but the kernel's answers: no time, no inode number, no PID.
 */
#include "performer.h"
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* A program that waits for ever ends after `PATIENCE` seconds, by `SIGALRM`. */
enum { PATIENCE = 5 };

struct line line[MOST_LINES];
int lines;
static char text[MOST_TEXT];
static size_t used;

void say(const char *format, ...) {
	char out[4096];
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(out, sizeof out, format, arguments);
	va_end(arguments);
	if (length >= (int)sizeof out)
		length = sizeof out - 1;
	syscall(SYS_write, REPORT, out, length);
}

long number(const struct line *l, int n) {
	return n < l->words ? strtol(l->word[n], NULL, 0) : 0;
}

const char *name(const struct line *l, int n) {
	const char *word = n < l->words ? l->word[n] : "";
	return strcmp(word, "''") ? word : "";
}

static uint32_t hash(const void *data, long length) {
	const unsigned char *byte = data;
	uint32_t hash = 2166136261u;
	for (long n = 0; n < length; n++)
		hash = (hash ^ byte[n]) * 16777619u;
	return hash;
}

void answer(int at, long result) {
	say("%d %s = %ld%s%s\n", at, line[at].word[0], result < 0 ? -1 : result, result < 0 ? " " : "",
	    result < 0 ? strerrorname_np(errno) ? strerrorname_np(errno) : "?" : "");
}

void answer_data(int at, long result, const void *data) {
	if (result < 0)
		answer(at, result);
	else
		say("%d %s = %ld #%08x\n", at, line[at].word[0], result, hash(data, result));
}

void answer_read(int at, int fd, long result, const void *data) {
	int failure = errno;
	struct stat status;
	int has_kind = fstat(fd, &status) || status.st_mode & S_IFMT;
	errno = failure;
	if (has_kind)
		answer_data(at, result, data);
	else
		answer(at, result);
}

int step(int at) {
	const char *call = line[at].word[0];
	int to = end_of(at);
	if (IS("fork") || IS("files") || IS("place"))
		in_child(at, to, IS("files") ? 0x400 : IS("place") ? 0x200 : 0);
	else if (IS("thread"))
		in_thread(at, to);
	else if (IS("anew"))
		in_new_program(at, to);
	else {
		errno = 0;
		file_call(at, &line[at]);
		name_call(at, &line[at]);
		attribute_call(at, &line[at]);
		memory_call(at, &line[at]);
		event_call(at, &line[at]);
		socket_call(at, &line[at]);
		message_call(at, &line[at]);
		process_call(at, &line[at]);
		identity_call(at, &line[at]);
		return at + 1;
	}
	return to + 1;
}

void perform(int from, int to) {
	struct partner partner = {.at = -1};
	for (int at = from; at < to;) {
		const char *call = line[at].word[0];
		if (partner.at < 0 && (IS("beside") || IS("thread_beside"))) {
			int end = end_of(at);
			begin_turns(&partner, at, end);
			at = end + 1;
		} else
			at = step(at);
		if (partner.at >= 0)
			turn(&partner);
	}
	while (partner.at >= 0)
		turn(&partner);
}

static void read_words(struct line *l, char *rest) {
	char *word;
	for (l->words = 0; l->words < MOST_WORDS && (word = strsep(&rest, " \n")) && *word;)
		l->word[l->words++] = word;
	if (l->words == 0)
		l->word[l->words++] = "nothing";
}

/* Reads lines up to the `end` of a program. */
static int read_program(void) {
	used = 0;
	int depth = 1;
	for (lines = 0; lines < MOST_LINES && fgets(text + used, MOST_TEXT - used, stdin); lines++) {
		char *here = text + used;
		used += strlen(here) + 1;
		read_words(&line[lines], here);
		const char *call = line[lines].word[0];
		depth += end_of(lines) != lines;
		if (IS("end") && --depth == 0)
			return 1;
	}
	return 0;
}

static void begin(void) {
	handle_signals();
	int null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	close_range(3, REPORT - 1, 0);
	int scratch = memfd_create("scratch", MFD_CLOEXEC);
	dup3(scratch, SCRATCH, O_CLOEXEC);
	close(scratch);
	umask(022);
}

/* Performs a block of another process of this program: its lines, of which the first has a number. */
static int perform_lines(int count, char **arguments) {
	handle_signals();
	fcntl(REPORT, F_SETFD, FD_CLOEXEC);
	fcntl(SCRATCH, F_SETFD, FD_CLOEXEC);
	int first = atoi(arguments[0]);
	for (lines = first; lines - first + 1 < count && lines < MOST_LINES; lines++)
		read_words(&line[lines], arguments[lines - first + 1]);
	perform(first, lines);
	return 7;
}

int main(int count, char **arguments) {
	if (count > 2 && !strcmp(arguments[1], "anew"))
		return perform_lines(count - 2, arguments + 2);
	if (count != 2)
		return 2;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	dup2(1, REPORT);
	fcntl(REPORT, F_SETFD, FD_CLOEXEC);
	for (int program = 0; read_program(); program++) {
		char directory[4096];
		snprintf(directory, sizeof directory, "%s/%d", arguments[1], program);
		pid_t child = fork();
		if (child == 0) {
			alarm(PATIENCE);
			begin();
			furnish(directory);
			say("program %d\n", program);
			perform(0, lines);
			_exit(0);
		}
		int status;
		waitpid(child, &status, 0);
		end_children();
		set_back(arguments[1]);
		say("ended %d %d\n", program, status);
	}
	return 0;
}
