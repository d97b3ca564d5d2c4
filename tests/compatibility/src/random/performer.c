/* Performs programs of system calls, one after the other, and prints what each call returned.
 *
 *   performer DIRECTORY < PROGRAMS
 *
 * Every program runs in a new process and in a new directory `DIRECTORY/N/w`. A program is a block
 * of lines up to a line `end`; a line is a call with its arguments, numbers or names. Lines `fork`,
 * `thread` and `exec` hold a block up to their own `end`: it runs in a child, in a thread, or in
 * this program executed anew. What is printed depends on nothing but the kernel's answers: no time,
 * no inode number, no PID.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

/* A program that waits for ever ends after `PATIENCE` seconds, by `SIGALRM`. */
enum { PATIENCE = 5, REPORT = 700, MOST_LINES = 512, MOST_WORDS = 8, MOST_TEXT = 1 << 16 };

struct line {
	char *word[MOST_WORDS];
	int words;
};

static struct line line[MOST_LINES];
static int lines;
static char text[MOST_TEXT];
static volatile sig_atomic_t signals;

static void say(const char *format, ...) {
	char out[4096];
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(out, sizeof out, format, arguments);
	va_end(arguments);
	if (length >= (int)sizeof out)
		length = sizeof out - 1;
	syscall(SYS_write, REPORT, out, length);
}

static long number(const struct line *l, int n) {
	return n < l->words ? strtol(l->word[n], NULL, 0) : 0;
}

static const char *name(const struct line *l, int n) {
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

static void answer(int at, long result) {
	say("%d %s = %ld%s%s\n", at, line[at].word[0], result < 0 ? -1 : result, result < 0 ? " " : "",
	    result < 0 ? strerrorname_np(errno) ? strerrorname_np(errno) : "?" : "");
}

static void answer_data(int at, long result, const void *data) {
	if (result < 0)
		answer(at, result);
	else
		say("%d %s = %ld #%08x\n", at, line[at].word[0], result, hash(data, result));
}

static void answer_stat(int at, long result, const struct stat *s) {
	if (result < 0)
		answer(at, result);
	else
		say("%d %s = %o links=%ld size=%ld %d:%d\n", at, line[at].word[0], s->st_mode,
		    S_ISDIR(s->st_mode) ? 0L : (long)s->st_nlink, S_ISREG(s->st_mode) ? (long)s->st_size : 0L,
		    s->st_uid, s->st_gid);
}

static int by_text(const void *a, const void *b) {
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in a directory, sorted: the kernel's order is its own. */
static void names(int at, int fd) {
	char buffer[16384], *found[256];
	int count = 0;
	lseek(fd, 0, SEEK_SET);
	long length = syscall(SYS_getdents64, fd, buffer, sizeof buffer);
	if (length < 0) {
		answer(at, length);
		return;
	}
	for (long place = 0; place < length && count < 256;) {
		struct {
			uint64_t inode;
			int64_t next;
			unsigned short length;
			unsigned char type;
			char name[];
		} *entry = (void *)(buffer + place);
		found[count++] = entry->name;
		place += entry->length;
	}
	qsort(found, count, sizeof *found, by_text);
	say("%d names =", at);
	for (int n = 0; n < count; n++)
		say(" %s", found[n]);
	say("\n");
}

static void on_signal(int signal) {
	(void)signal;
	signals++;
}

static socklen_t unix_address(struct sockaddr_un *address, const char *path) {
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	size_t length = strlen(path);
	if (length > sizeof address->sun_path)
		length = sizeof address->sun_path;
	memcpy(address->sun_path, path, length);
	if (path[0] == '@')
		address->sun_path[0] = 0;
	return offsetof(struct sockaddr_un, sun_path) + length + (path[0] != '@' && length < sizeof address->sun_path);
}

static long send_fd(int socket, int fd) {
	char control[CMSG_SPACE(sizeof fd)] = {0};
	struct iovec data = {"f", 1};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(header), &fd, sizeof fd);
	return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void receive_fd(int at, int socket) {
	char control[256], byte[64];
	struct iovec data = {byte, sizeof byte};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	long result = recvmsg(socket, &message, MSG_DONTWAIT);
	struct cmsghdr *header = result < 0 ? NULL : CMSG_FIRSTHDR(&message);
	int fd = -1;
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(header), sizeof fd);
	if (result < 0)
		answer(at, result);
	else
		say("%d recvmsg = %ld fd %d\n", at, result, fd);
}

/* Maps what `fd` stands for, reads a byte and writes one; what kills natively is not asked for. */
static void map(int at, int fd, int protection, int flags) {
	struct stat status;
	char *memory = mmap(NULL, 4096, protection, flags, fd, 0);
	if (memory == MAP_FAILED) {
		answer(at, -1);
		return;
	}
	int has_data = !fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_size > 0;
	unsigned char first = 0;
	if (has_data && protection & PROT_READ)
		first = memory[0];
	if (has_data && protection & PROT_WRITE)
		memory[0] = 'm';
	munmap(memory, 4096);
	say("%d mmap = 0 %u\n", at, first);
}

static void perform(int from, int to);

struct block {
	int from, to;
};

static void *in_thread(void *argument) {
	struct block *block = argument;
	perform(block->from, block->to);
	return NULL;
}

static void report_end(int at, pid_t child) {
	int status;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	say("%d %s ended %s %d\n", at, line[at].word[0], WIFSIGNALED(status) ? "by signal" : "with",
	    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void in_child(int at, int to) {
	pid_t child = number(&line[at], 1) ? vfork() : fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!number(&line[at], 1))
			perform(at + 1, to);
		_exit(7);
	}
	if (child < 0)
		answer(at, child);
	else
		report_end(at, child);
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

/* Devices are shared with whoever runs beside this program. */
static int is_device(int fd) {
	struct stat status;
	return !fstat(fd, &status) && S_ISCHR(status.st_mode);
}

static void file_call(int at, const struct line *l) {
	char data[4096];
	struct stat status;
	const char *call = l->word[0];
#define IS(text) (!strcmp(call, text))
	if (IS("openat"))
		answer(at, openat(number(l, 1), name(l, 2), number(l, 3) | O_NONBLOCK, number(l, 4)));
	else if (IS("open"))
		answer(at, syscall(SYS_open, name(l, 1), number(l, 2) | O_NONBLOCK, number(l, 3)));
	else if (IS("openat2")) {
		struct {
			uint64_t flags, mode, resolve;
		} how = {number(l, 3) | O_NONBLOCK, number(l, 4), number(l, 5)};
		answer(at, syscall(SYS_openat2, (int)number(l, 1), name(l, 2), &how, sizeof how));
	} else if (IS("creat"))
		answer(at, syscall(SYS_creat, name(l, 1), number(l, 2)));
	else if (IS("close"))
		answer(at, close(number(l, 1)));
	else if (IS("close_range"))
		answer(at, syscall(SYS_close_range, number(l, 1), number(l, 2), number(l, 3)));
	else if (IS("read"))
		answer_data(at, read(number(l, 1), data, number(l, 2)), data);
	else if (IS("pread"))
		answer_data(at, pread(number(l, 1), data, number(l, 2), number(l, 3)), data);
	else if (IS("write")) {
		memset(data, 'a' + at % 26, sizeof data);
		answer(at, write(number(l, 1), data, number(l, 2)));
	} else if (IS("pwrite")) {
		memset(data, 'A' + at % 26, sizeof data);
		answer(at, pwrite(number(l, 1), data, number(l, 2), number(l, 3)));
	} else if (IS("lseek"))
		answer(at, lseek(number(l, 1), number(l, 2), number(l, 3)));
	else if (IS("ftruncate"))
		answer(at, ftruncate(number(l, 1), number(l, 2)));
	else if (IS("truncate"))
		answer(at, truncate(name(l, 1), number(l, 2)));
	else if (IS("fallocate"))
		answer(at, fallocate(number(l, 1), number(l, 2), number(l, 3), number(l, 4)));
	else if (IS("stat"))
		answer_stat(at, stat(name(l, 1), &status), &status);
	else if (IS("lstat"))
		answer_stat(at, lstat(name(l, 1), &status), &status);
	else if (IS("fstat"))
		answer_stat(at, fstat(number(l, 1), &status), &status);
	else if (IS("fstatat"))
		answer_stat(at, fstatat(number(l, 1), name(l, 2), &status, number(l, 3)), &status);
	else if (IS("statx")) {
		struct statx extended;
		long result = statx(number(l, 1), name(l, 2), number(l, 3), STATX_BASIC_STATS, &extended);
		if (result < 0)
			answer(at, result);
		else
			say("%d statx = %o %d:%d\n", at, extended.stx_mode, extended.stx_uid, extended.stx_gid);
	} else if (IS("access"))
		answer(at, syscall(SYS_access, name(l, 1), number(l, 2)));
	else if (IS("faccessat"))
		answer(at, syscall(SYS_faccessat, (int)number(l, 1), name(l, 2), number(l, 3)));
	else if (IS("faccessat2"))
		answer(at, syscall(SYS_faccessat2, (int)number(l, 1), name(l, 2), number(l, 3), number(l, 4)));
	else if (IS("readlink")) {
		long result = readlinkat(number(l, 1), name(l, 2), data, number(l, 3));
		/* A pipe and a socket are named by their numbers. */
		char *inode = result > 0 ? memmem(data, result, ":[", 2) : NULL;
		if (inode)
			result = inode - data;
		answer_data(at, result, data);
	} else if (IS("getcwd"))
		answer_data(at, syscall(SYS_getcwd, data, sizeof data), data);
	else if (IS("chdir"))
		answer(at, chdir(name(l, 1)));
	else if (IS("fchdir"))
		answer(at, fchdir(number(l, 1)));
	else if (IS("umask"))
		answer(at, umask(number(l, 1)));
	else if (IS("names"))
		names(at, number(l, 1));
	else if (IS("mmap"))
		map(at, number(l, 1), number(l, 2), number(l, 3));
	else if (IS("copy"))
		answer(at, copy_file_range(number(l, 1), NULL, number(l, 2), NULL, number(l, 3), 0));
	else if (IS("sendfile"))
		answer(at, sendfile(number(l, 1), number(l, 2), NULL, number(l, 3)));
	else if (IS("splice"))
		answer(at, splice(number(l, 1), NULL, number(l, 2), NULL, number(l, 3), SPLICE_F_NONBLOCK));
	else if (IS("dup"))
		answer(at, dup(number(l, 1)));
	else if (IS("dup2"))
		answer(at, dup2(number(l, 1), number(l, 2)));
	else if (IS("dup3"))
		answer(at, dup3(number(l, 1), number(l, 2), number(l, 3)));
	else if (IS("fcntl"))
		answer(at, fcntl(number(l, 1), number(l, 2), number(l, 3)));
	else if ((IS("lock") || IS("flock")) && is_device(number(l, 1)))
		say("%d %s of a device, which others lock\n", at, call);
	else if (IS("lock")) {
		struct flock lock = {.l_type = number(l, 3), .l_whence = SEEK_SET, .l_start = number(l, 4), .l_len = number(l, 5)};
		answer(at, fcntl(number(l, 1), number(l, 2), &lock));
	} else if (IS("flock"))
		answer(at, flock(number(l, 1), number(l, 2) | LOCK_NB));
	else if (IS("inotify")) {
		int watch = inotify_init1(IN_NONBLOCK);
		long result = inotify_add_watch(watch, name(l, 1), number(l, 2));
		int failure = errno;
		close(watch);
		errno = failure;
		answer(at, result);
	} else if (IS("memfd"))
		answer(at, memfd_create("m", number(l, 1)));
	else if (IS("fsync"))
		answer(at, fsync(number(l, 1)));
}

static void name_call(int at, const struct line *l) {
	char data[4096];
	const char *call = l->word[0];
	if (IS("mkdir"))
		answer(at, mkdir(name(l, 1), number(l, 2)));
	else if (IS("mkdirat"))
		answer(at, mkdirat(number(l, 1), name(l, 2), number(l, 3)));
	else if (IS("rmdir"))
		answer(at, rmdir(name(l, 1)));
	else if (IS("unlink"))
		answer(at, unlink(name(l, 1)));
	else if (IS("unlinkat"))
		answer(at, unlinkat(number(l, 1), name(l, 2), number(l, 3)));
	else if (IS("rename"))
		answer(at, rename(name(l, 1), name(l, 2)));
	else if (IS("renameat2"))
		answer(at, renameat2(number(l, 1), name(l, 2), number(l, 3), name(l, 4), number(l, 5)));
	else if (IS("link"))
		answer(at, link(name(l, 1), name(l, 2)));
	else if (IS("linkat"))
		answer(at, linkat(number(l, 1), name(l, 2), number(l, 3), name(l, 4), number(l, 5)));
	else if (IS("symlink"))
		answer(at, symlink(name(l, 1), name(l, 2)));
	else if (IS("symlinkat"))
		answer(at, symlinkat(name(l, 1), number(l, 2), name(l, 3)));
	else if (IS("mknod"))
		answer(at, mknodat(number(l, 1), name(l, 2), number(l, 3), 0));
	else if (IS("chmod"))
		answer(at, chmod(name(l, 1), number(l, 2)));
	else if (IS("fchmod"))
		answer(at, fchmod(number(l, 1), number(l, 2)));
	else if (IS("fchmodat2"))
		answer(at, syscall(SYS_fchmodat2, (int)number(l, 1), name(l, 2), number(l, 3), number(l, 4)));
	else if (IS("chown"))
		answer(at, fchownat(number(l, 1), name(l, 2), number(l, 3), number(l, 4), number(l, 5)));
	else if (IS("fchown"))
		answer(at, fchown(number(l, 1), number(l, 2), number(l, 3)));
	else if (IS("utimes")) {
		struct timespec times[2] = {{number(l, 3), 1}, {number(l, 3), 2}};
		answer(at, utimensat(number(l, 1), name(l, 2), times, number(l, 4)));
	} else if (IS("setxattr"))
		answer(at, number(l, 4) ? lsetxattr(name(l, 1), name(l, 2), "value", 5, number(l, 3))
					: setxattr(name(l, 1), name(l, 2), "value", 5, number(l, 3)));
	else if (IS("fsetxattr"))
		answer(at, fsetxattr(number(l, 1), name(l, 2), "other", 5, number(l, 3)));
	else if (IS("getxattr"))
		answer_data(at, getxattr(name(l, 1), name(l, 2), data, number(l, 3)), data);
	else if (IS("listxattr"))
		answer(at, listxattr(name(l, 1), data, number(l, 2)));
	else if (IS("removexattr"))
		answer(at, removexattr(name(l, 1), name(l, 2)));
}

static void socket_call(int at, const struct line *l) {
	char data[4096];
	struct sockaddr_un address;
	const char *call = l->word[0];
	if (IS("socket"))
		answer(at, socket(number(l, 1), number(l, 2) | SOCK_NONBLOCK, number(l, 3)));
	else if (IS("socketpair")) {
		int pair[2] = {-1, -1};
		long result = socketpair(AF_UNIX, number(l, 1) | SOCK_NONBLOCK, 0, pair);
		if (result < 0)
			answer(at, result);
		else
			say("%d socketpair = %d %d\n", at, pair[0], pair[1]);
	} else if (IS("pipe")) {
		int pair[2] = {-1, -1};
		long result = pipe2(pair, O_NONBLOCK | number(l, 1));
		if (result < 0)
			answer(at, result);
		else
			say("%d pipe = %d %d\n", at, pair[0], pair[1]);
	} else if (IS("bind") || IS("connect")) {
		socklen_t length = unix_address(&address, name(l, 2));
		answer(at, IS("bind") ? bind(number(l, 1), (void *)&address, length)
				      : connect(number(l, 1), (void *)&address, length));
	} else if (IS("listen"))
		answer(at, listen(number(l, 1), number(l, 2)));
	else if (IS("accept"))
		answer(at, accept4(number(l, 1), NULL, NULL, SOCK_NONBLOCK));
	else if (IS("send"))
		answer(at, send(number(l, 1), "sent", number(l, 2), MSG_DONTWAIT | MSG_NOSIGNAL));
	else if (IS("sendto")) {
		socklen_t length = unix_address(&address, name(l, 2));
		answer(at, sendto(number(l, 1), "gram", 4, MSG_DONTWAIT | MSG_NOSIGNAL, (void *)&address, length));
	} else if (IS("recv"))
		answer_data(at, recv(number(l, 1), data, number(l, 2), MSG_DONTWAIT), data);
	else if (IS("send_fd"))
		answer(at, send_fd(number(l, 1), number(l, 2)));
	else if (IS("receive_fd"))
		receive_fd(at, number(l, 1));
	else if (IS("sockname")) {
		socklen_t length = sizeof address;
		address.sun_family = 0;
		long result = getsockname(number(l, 1), (void *)&address, &length);
		if (result < 0)
			answer(at, result);
		else
			say("%d sockname = %d %d\n", at, address.sun_family, length);
	} else if (IS("shutdown"))
		answer(at, shutdown(number(l, 1), number(l, 2)));
	else if (IS("setsockopt")) {
		int value = number(l, 4);
		answer(at, setsockopt(number(l, 1), number(l, 2), number(l, 3), &value, sizeof value));
	} else if (IS("getsockopt")) {
		int value = 0;
		socklen_t length = sizeof value;
		long result = getsockopt(number(l, 1), number(l, 2), number(l, 3), &value, &length);
		answer(at, result < 0 ? result : value);
	}
}

/* A child that nobody could signal does not stay. */
static void wait_for_signal(void) {
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(1);
	for (;;)
		pause();
}

static void process_call(int at, const struct line *l) {
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
	} else if (IS("kill_child")) {
		pid_t child = fork();
		if (child == 0) {
			wait_for_signal();
		}
		answer(at, kill(child, number(l, 1) ? SIGTERM : SIGKILL));
		report_end(at, child);
	} else if (IS("pidfd")) {
		pid_t child = fork();
		if (child == 0) {
			wait_for_signal();
		}
		int fd = syscall(SYS_pidfd_open, child, 0);
		answer(at, syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0));
		close(fd);
		report_end(at, child);
	} else if (IS("wait")) {
		answer(at, waitpid(-1, NULL, WNOHANG));
	} else if (IS("setsid"))
		answer(at, setsid() < 0 ? -1 : 0);
	else if (IS("setpgid"))
		answer(at, setpgid(0, 0));
	else if (IS("unshare"))
		answer(at, unshare(number(l, 1)));
	else if (IS("prctl"))
		answer(at, prctl(number(l, 1), number(l, 2), 0, 0, 0));
	else if (IS("setrlimit")) {
		struct rlimit limit = {number(l, 2), number(l, 2)};
		answer(at, setrlimit(number(l, 1), &limit));
	} else if (IS("setuid"))
		answer(at, setresuid(number(l, 1), number(l, 1), -1));
	else if (IS("priority"))
		answer(at, setpriority(PRIO_PROCESS, 0, number(l, 1)));
	else if (IS("ids"))
		say("%d ids = %d %d %d %d\n", at, getuid(), geteuid(), getgid(), getegid());
}

static int end_of(int at) {
	int depth = 0;
	for (; at < lines; at++) {
		const char *call = line[at].word[0];
		if (IS("fork") || IS("thread"))
			depth++;
		else if (IS("end") && --depth == 0)
			break;
	}
	return at;
}

static void perform(int from, int to) {
	for (int at = from; at < to; at++) {
		const char *call = line[at].word[0];
		if (IS("fork")) {
			int end = end_of(at);
			in_child(at, end);
			at = end;
		} else if (IS("thread")) {
			pthread_t thread;
			struct block block = {at + 1, end_of(at)};
			if (!pthread_create(&thread, NULL, in_thread, &block))
				pthread_join(thread, NULL);
			at = block.to;
		} else {
			errno = 0;
			file_call(at, &line[at]);
			name_call(at, &line[at]);
			socket_call(at, &line[at]);
			process_call(at, &line[at]);
		}
	}
}

/* Reads lines up to the `end` of a program. */
static int read_program(void) {
	int depth = 1;
	size_t used = 0;
	for (lines = 0; lines < MOST_LINES && fgets(text + used, MOST_TEXT - used, stdin); lines++) {
		struct line *l = &line[lines];
		char *rest = text + used, *word;
		used += strlen(text + used) + 1;
		for (l->words = 0; l->words < MOST_WORDS && (word = strsep(&rest, " \n")) && *word;)
			l->word[l->words++] = word;
		if (l->words == 0)
			l->word[l->words++] = "nothing";
		const char *call = l->word[0];
		if (IS("fork") || IS("thread"))
			depth++;
		if (IS("end") && --depth == 0)
			return 1;
	}
	return 0;
}

/* What every program finds: a file that can be executed, a directory with a file, a link. */
static void furnish(const char *directory) {
	if (mkdir(directory, 0755) || chdir(directory) || mkdir("w", 0755) || chdir("w")) {
		say("cannot make %s: %s\n", directory, strerror(errno));
		_exit(9);
	}
	int in = open("/bin/true", O_RDONLY), out = open("t", O_WRONLY | O_CREAT, 0755);
	while (sendfile(out, in, NULL, 1 << 20) > 0)
		;
	close(in);
	close(out);
	mkdir("d", 0755);
	out = open("d/f", O_WRONLY | O_CREAT, 0644);
	if (write(out, "content", 7) != 7)
		_exit(9);
	close(out);
	if (symlink("d", "l"))
		_exit(9);
}

/* Whose parent a process is: that of `/proc/PID/stat`, behind a name that may hold anything. */
static pid_t parent_of(const char *pid) {
	char path[64], data[512], *rest;
	snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	int fd = open(path, O_RDONLY);
	long length = fd < 0 ? -1 : read(fd, data, sizeof data - 1);
	close(fd);
	data[length > 0 ? length : 0] = 0;
	rest = strrchr(data, ')');
	return rest && strlen(rest) > 4 ? atoi(rest + 4) : -1;
}

/* Ends what a program has left running: orphans are this process's children. */
static void end_children(void) {
	while (waitpid(-1, NULL, WNOHANG) >= 0) {
		DIR *processes = opendir("/proc");
		for (struct dirent *entry; processes && (entry = readdir(processes));)
			if (parent_of(entry->d_name) == getpid())
				kill(atoi(entry->d_name), SIGKILL);
		if (processes)
			closedir(processes);
		usleep(1000);
	}
}

static int removed(const char *path, const struct stat *status, int kind, struct FTW *at) {
	(void)status, (void)at;
	return kind == FTW_DP || kind == FTW_DNR ? rmdir(path) : unlink(path);
}

/* Lets a directory be searched; begins anew where this one could not be. */
static int opened(const char *path, const struct stat *status, int kind, struct FTW *at) {
	(void)status, (void)at;
	int is_open = (kind == FTW_D || kind == FTW_DNR) && !chmod(path, 0700);
	return kind == FTW_DNR && is_open ? FTW_STOP : FTW_CONTINUE;
}

/* Sets back what a program has changed around its own directory: the next one finds it as this one
 * did. */
static void set_back(const char *directory) {
	static const char *const attributes[] = {"user.a", "user.b"};
	chmod(directory, 0755);
	for (int n = 0; n < 2; n++)
		removexattr(directory, attributes[n]);
	DIR *around = opendir(directory);
	for (struct dirent *entry; around && (entry = readdir(around));) {
		char path[4096];
		if (!entry->d_name[strspn(entry->d_name, "0123456789")] || !strcmp(entry->d_name, ".") ||
		    !strcmp(entry->d_name, ".."))
			continue;
		snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
		while (nftw(path, opened, 16, FTW_PHYS | FTW_ACTIONRETVAL) == FTW_STOP)
			;
		nftw(path, removed, 16, FTW_DEPTH | FTW_PHYS);
	}
	if (around)
		closedir(around);
}

int main(int count, char **arguments) {
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
			signal(SIGUSR1, on_signal);
			signal(SIGPIPE, SIG_IGN);
			alarm(PATIENCE);
			int null = open("/dev/null", O_RDWR);
			for (int fd = 0; fd < 3; fd++)
				dup2(null, fd);
			close_range(3, REPORT - 1, 0);
			umask(022);
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
