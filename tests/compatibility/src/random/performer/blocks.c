/* Blocks of lines that run elsewhere. */
#include "performer.h"
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

struct block {
	int from, to;
};

static int is_block(const char *call) {
	return IS("fork") || IS("files") || IS("place") || IS("thread") || IS("anew") || IS("beside") ||
	       IS("thread_beside");
}

/* The `end` of a block; of another line, itself. While the lines are read, one that has none yet is
 * after the last. */
int end_of(int at) {
	if (!is_block(line[at].word[0]))
		return at;
	int depth = 0;
	for (; at < lines; at++) {
		const char *call = line[at].word[0];
		if (is_block(call))
			depth++;
		else if (IS("end") && --depth == 0)
			return at;
	}
	return at + 1;
}

static void *perform_block(void *argument) {
	struct block *block = argument;
	perform(block->from, block->to);
	return NULL;
}

void in_thread(int at, int to) {
	pthread_t thread;
	struct block block = {at + 1, to};
	if (!pthread_create(&thread, NULL, perform_block, &block))
		pthread_join(thread, NULL);
}

void report_end(int at, pid_t child) {
	int status = 0;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	say("%d %s ended %s %d\n", at, line[at].word[0], WIFSIGNALED(status) ? "by signal" : "with",
	    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* A child that shares what `flags` of clone(2) say: its table of descriptors, or where it is. */
void in_child(int at, int to, int flags) {
	pid_t child = flags ? syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0) : fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		perform(at + 1, to);
		_exit(7);
	}
	if (child < 0)
		answer(at, child);
	else
		report_end(at, child);
}

/* In this program, executed anew: what it has open stays, and what is closed by that is closed. */
void in_new_program(int at, int to) {
	static char text[MOST_TEXT];
	static char *arguments[MOST_LINES + 4];
	char own[4096] = "", first[16];
	if (readlink("/proc/self/exe", own, sizeof own - 1) < 0) {
		answer(at, -1);
		return;
	}
	pid_t child = fork();
	if (child != 0) {
		report_end(at, child);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(first, sizeof first, "%d", at + 1);
	int count = 0;
	char *place = text;
	arguments[count++] = own, arguments[count++] = "anew", arguments[count++] = first;
	for (int n = at + 1; n < to; n++) {
		arguments[count++] = place;
		for (int word = 0; word < line[n].words; word++)
			place += sprintf(place, "%s%s", word ? " " : "", line[n].word[word]);
		place++;
	}
	fcntl(REPORT, F_SETFD, 0);
	fcntl(SCRATCH, F_SETFD, 0);
	execve(own, arguments, (char *[]){NULL});
	answer(at, -1);
	_exit(8);
}

/* The ends of two pipes: who has read a byte of the one performs a line and writes to the other. */
enum { GO = TURNS, GOES, DONE, IS_DONE };

static int give(int end, char byte) {
	return write(end, &byte, 1) == 1;
}

static int await(int end, char *byte) {
	long result;
	while ((result = read(end, byte, 1)) < 0 && errno == EINTR)
		;
	return result == 1;
}

static void *in_turns(void *argument) {
	struct block block = *(struct block *)argument;
	char byte;
	for (int at = block.from; at < block.to && await(GO, &byte);) {
		at = step(at);
		if (at < block.to)
			give(IS_DONE, 'm');
	}
	give(IS_DONE, 'l');
	return NULL;
}

static int make_ends(void) {
	int go[2], done[2];
	if (pipe2(go, O_CLOEXEC))
		return 0;
	if (pipe2(done, O_CLOEXEC)) {
		close(go[0]), close(go[1]);
		return 0;
	}
	int made = dup3(go[0], GO, O_CLOEXEC) == GO && dup3(go[1], GOES, O_CLOEXEC) == GOES &&
	           dup3(done[0], DONE, O_CLOEXEC) == DONE && dup3(done[1], IS_DONE, O_CLOEXEC) == IS_DONE;
	close(go[0]), close(go[1]), close(done[0]), close(done[1]);
	return made;
}

/* The block begins with the next turn. */
void begin_turns(struct partner *partner, int at, int to) {
	static struct block block;
	const char *call = line[at].word[0];
	block = (struct block){at + 1, to};
	if (!make_ends()) {
		say("%d %s cannot begin: %s\n", at, call, strerrorname_np(errno));
		return;
	}
	partner->is_thread = IS("thread_beside");
	if (partner->is_thread) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, in_turns, &block))
			return;
		partner->thread = thread;
	} else {
		pid_t child = fork();
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(GOES), close(DONE);
			in_turns(&block);
			_exit(7);
		}
		if (child < 0) {
			answer(at, child);
			return;
		}
		partner->child = child;
		close(GO), close(IS_DONE);
	}
	partner->at = at;
}

/* Lets the partner perform a line, and waits until it has, or has ended. */
void turn(struct partner *partner) {
	char byte;
	if (give(GOES, 'g') && await(DONE, &byte) && byte == 'm')
		return;
	if (partner->is_thread)
		pthread_join(partner->thread, NULL);
	else
		report_end(partner->at, partner->child);
	for (int end = GO; end <= IS_DONE; end++)
		close(end);
	partner->at = -1;
}
