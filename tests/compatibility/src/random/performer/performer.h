/* What the parts of the performer share. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Descriptors that no program names: where results are told, and memory that calls read and write
 * at addresses that may not be mapped. */
enum { REPORT = 700, SCRATCH = 701, TURNS = 702 };
enum { MOST_LINES = 512, MOST_WORDS = 9, MOST_TEXT = 1 << 16 };

struct line {
	char *word[MOST_WORDS];
	int words;
};

extern struct line line[MOST_LINES];
extern int lines;
extern volatile sig_atomic_t signals;

#define IS(text) (!strcmp(call, text))

long number(const struct line *l, int n);
const char *name(const struct line *l, int n);

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void answer(int at, long result);
void answer_data(int at, long result, const void *data);
/* What is read of events differs in every process. */
void answer_read(int at, int fd, long result, const void *data);
void report_end(int at, pid_t child);
/* Whose process a number means, as far as it may be told. */
const char *whose(pid_t pid);

/* Each does nothing with the calls of others. */
void file_call(int at, const struct line *l);
void name_call(int at, const struct line *l);
void attribute_call(int at, const struct line *l);
void memory_call(int at, const struct line *l);
void event_call(int at, const struct line *l);
void socket_call(int at, const struct line *l);
void message_call(int at, const struct line *l);
void process_call(int at, const struct line *l);
void identity_call(int at, const struct line *l);

/* Blocks of lines: `at` is that of the block, which ends at `to`. */
int end_of(int at);
int step(int at);
void perform(int from, int to);
void in_child(int at, int to, int flags);
void in_thread(int at, int to);
void in_new_program(int at, int to);
void handle_signals(void);

/* A block that is performed in turns with the lines that follow it: one there, one here. */
struct partner {
	int at;
	pid_t child;
	int is_thread;
	unsigned long thread;
};
void begin_turns(struct partner *partner, int at, int to);
void turn(struct partner *partner);

/* The directory of a program: made, and set back. */
void furnish(const char *directory);
void end_children(void);
void set_back(const char *directory);
