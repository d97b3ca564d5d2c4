/* Calls on processes: executing, signals, and waiting for children. */
#include "performer.h"
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

volatile sig_atomic_t signals;

static void on_signal(int signal) {
	(void)signal;
	signals++;
}

void handle_signals(void) {
	signal(SIGUSR1, on_signal);
	signal(SIGPIPE, SIG_IGN);
}

const char *whose(pid_t pid) {
	return pid == 0 ? "nobody's" : pid == getpid() ? "own" : pid == getppid() ? "the parent's" : "another's";
}

/* Executes a file in a child, by path or by descriptor. */
static void execute(int at, const struct line *l) {
	char *argv[] = {"t", NULL}, *envp[] = {NULL};
	pid_t child = fork();
	if (child == 0) {
		if (!strcmp(l->word[0], "fexec"))
			syscall(SYS_execveat, (int)number(l, 1), "", argv, envp, AT_EMPTY_PATH);
		else
			syscall(SYS_execveat, (int)number(l, 1), name(l, 2), argv, envp, (int)number(l, 3));
		say("%d execve %s\n", at, strerrorname_np(errno));
		_exit(8);
	}
	report_end(at, child);
}

/* A child that nobody could signal does not stay. */
static void wait_for_signal(void) {
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(1);
	for (;;)
		pause();
}

static pid_t waiting_child(void) {
	pid_t child = fork();
	if (child == 0)
		wait_for_signal();
	return child;
}

/* What waiting for a child tells: which it is, and what it did. */
static void report_wait(int at, long result, pid_t child, int status) {
	if (result < 0)
		answer(at, result);
	else
		say("%d %s = %s %s %d\n", at, line[at].word[0], result == 0 ? "nobody" : result == child ? "it" : "another",
		    result == 0 ? "-" : WIFSTOPPED(status) ? "stopped" : WIFCONTINUED(status) ? "continued" :
		    WIFSIGNALED(status) ? "killed" : "exited",
		    result == 0 ? 0 : WIFSTOPPED(status) ? WSTOPSIG(status) : WIFSIGNALED(status) ? WTERMSIG(status) :
		    WIFCONTINUED(status) ? 0 : WEXITSTATUS(status));
}

/* A child is stopped, goes on, and ends: told by waitpid(2). */
static void stop_child(int at, int options) {
	pid_t child = waiting_child();
	int status = 0;
	kill(child, SIGSTOP);
	report_wait(at, waitpid(child, &status, WUNTRACED), child, status);
	report_wait(at, waitpid(child, &status, options | WNOHANG), child, status);
	kill(child, SIGCONT);
	report_wait(at, waitpid(child, &status, WCONTINUED), child, status);
	kill(child, SIGKILL);
	report_end(at, child);
}

/* A child ends with a status, which waitid(2) tells, also again where it is to stay. */
static void wait_id(int at, int options) {
	pid_t child = fork();
	if (child == 0)
		_exit(33);
	for (int turn = 0; turn < 2; turn++) {
		siginfo_t info = {0};
		long result = waitid(P_PID, child, &info, options);
		if (result < 0)
			answer(at, result);
		else
			say("%d waitid = %d %d %d %s\n", at, info.si_signo, info.si_code, info.si_status,
			    info.si_pid == child ? "it" : whose(info.si_pid));
	}
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

/* A group of two processes, which a signal to the group ends. */
static void kill_group(int at, int session) {
	pid_t child = fork();
	if (child == 0) {
		int made = session ? setsid() : setpgid(0, 0);
		pid_t grandchild = waiting_child();
		say("%d kill_group: %d %d %d\n", at, made >= 0, getpgid(grandchild) == getpid(), getsid(0) == getpid());
		kill(0, SIGTERM);
		wait_for_signal();
	}
	report_end(at, child);
}

/* What a parent may do with a child's memory, descriptors and identity. */
static void look_into_child(int at, int fd) {
	static char word[8];
	strcpy(word, "before");
	pid_t child = waiting_child();
	struct iovec here = {(char[8]){""}, 7}, there = {word, 7};
	answer(at, process_vm_readv(child, &here, 1, &there, 1, 0));
	here.iov_base = "after  ";
	answer(at, process_vm_writev(child, &here, 1, &there, 1, 0));
	answer(at, syscall(SYS_kcmp, getpid(), child, 0 /* KCMP_FILE */, fd, fd));
	int pidfd = syscall(SYS_pidfd_open, child, 0);
	long copy = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	answer(at, copy);
	close(copy);
	close(pidfd);
	kill(child, SIGKILL);
	report_end(at, child);
}

/* A child that is traced, from its first stop to its end. */
static void trace_child(int at, int seize) {
	int status = 0;
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!seize && ptrace(PTRACE_TRACEME, 0, 0, 0) == 0)
			raise(SIGSTOP);
		_exit(5);
	}
	if (seize) {
		report_end(at, child);
		child = waiting_child();
		answer(at, ptrace(PTRACE_SEIZE, child, 0, 0));
		answer(at, ptrace(PTRACE_INTERRUPT, child, 0, 0));
	}
	report_wait(at, waitpid(child, &status, __WALL), child, status);
	answer(at, ptrace(PTRACE_DETACH, child, 0, 0));
	if (seize)
		kill(child, SIGKILL);
	report_end(at, child);
}

/* A signal that is blocked, sent with a value, and taken by waiting for it. Those of the user's other
 * processes that wait count for its limit. */
static void queue_signal(int at, int value) {
	sigset_t set, before, pending;
	siginfo_t info = {0};
	struct timespec soon = {0, 100 * 1000 * 1000};
	sigemptyset(&set), sigaddset(&set, SIGRTMIN + 1);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	int sent, tries = 100;
	while ((sent = sigqueue(getpid(), SIGRTMIN + 1, (union sigval){value})) && errno == EAGAIN && tries--)
		usleep(1000);
	answer(at, sent);
	sigpending(&pending);
	int is_pending = sigismember(&pending, SIGRTMIN + 1);
	long result = sigtimedwait(&set, &info, &soon);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	say("%d queue = %d %d %d %d %s\n", at, is_pending, result > 0, info.si_code, info.si_value.sival_int,
	    whose(info.si_pid));
}

void process_call(int at, const struct line *l) {
	const char *call = l->word[0];
	if (IS("execve") || IS("fexec"))
		execute(at, l);
	else if (IS("kill")) {
		long count = signals;
		long result = kill(getpid(), number(l, 1) ? SIGUSR1 : 0);
		/* Another thread may be the one that handles it. */
		for (int n = 0; result == 0 && number(l, 1) && signals == count && n < 1000; n++)
			usleep(1000);
		say("%d kill = %ld handled %ld\n", at, result, (long)(signals - count));
	} else if (IS("tgkill")) {
		answer(at, syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number(l, 1) ? SIGUSR1 : 0));
	} else if (IS("kill_parent"))
		answer(at, kill(getppid(), 0));
	else if (IS("kill_child")) {
		pid_t child = waiting_child();
		answer(at, kill(child, number(l, 1) ? SIGTERM : SIGKILL));
		report_end(at, child);
	} else if (IS("pidfd")) {
		pid_t child = waiting_child();
		int fd = syscall(SYS_pidfd_open, child, 0);
		answer(at, syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0));
		close(fd);
		report_end(at, child);
	} else if (IS("wait")) {
		long result = waitpid(-1, NULL, WNOHANG);
		if (result < 0)
			answer(at, result);
		else
			say("%d wait = %s\n", at, result ? "a child" : "nobody");
	} else if (IS("stop_child"))
		stop_child(at, number(l, 1));
	else if (IS("waitid"))
		wait_id(at, number(l, 1));
	else if (IS("kill_group"))
		kill_group(at, number(l, 1));
	else if (IS("look_into_child"))
		look_into_child(at, number(l, 1));
	else if (IS("trace_child"))
		trace_child(at, number(l, 1));
	else if (IS("queue"))
		queue_signal(at, number(l, 1));
}
