/* Calls on files that are open, or are to be opened. */
#include "performer.h"
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

/* What is no file belongs to the machine's root, whom not every user namespace knows. */
static void answer_stat(int at, long result, const struct stat *s) {
	if (result < 0)
		answer(at, result);
	else
		say("%d %s = %o links=%ld size=%ld %d:%d\n", at, line[at].word[0], s->st_mode,
		    S_ISDIR(s->st_mode) ? 0L : (long)s->st_nlink, S_ISREG(s->st_mode) ? (long)s->st_size : 0L,
		    s->st_mode & S_IFMT ? s->st_uid : 0, s->st_mode & S_IFMT ? s->st_gid : 0);
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

/* Devices are shared with whoever runs beside this program. */
static int is_device(int fd) {
	struct stat status;
	return !fstat(fd, &status) && S_ISCHR(status.st_mode);
}

/* Requests of ioctl(2) whose answers are the same everywhere. */
static void control(int at, int fd, int which, int argument) {
	static const unsigned long requests[] = {FIONREAD, FIOCLEX, FIONCLEX, FS_IOC_GETFLAGS, TCGETS, TIOCGWINSZ, FIGETBSZ, FIOQSIZE, FIONBIO};
	char data[256] = {1};
	if (which >= (int)(sizeof requests / sizeof *requests)) {
		answer(at, ioctl(fd, FICLONE, argument));
		return;
	}
	long result = ioctl(fd, requests[which], data);
	if (result < 0 || requests[which] != FIONREAD)
		answer(at, result);
	else
		say("%d ioctl = %d\n", at, *(int *)data);
}

/* Calls that move data: between descriptors, in pieces, at places. */
static void moving_call(int at, const struct line *l) {
	static char data[4096];
	const char *call = l->word[0];
	struct iovec pieces[2] = {{data, number(l, 2) / 2}, {data + 2048, number(l, 2) / 2}};
	loff_t from = number(l, 4), to = number(l, 5);
	if (IS("readv"))
		answer_read(at, number(l, 1), preadv2(number(l, 1), pieces, 2, number(l, 3), number(l, 4)), data);
	else if (IS("writev")) {
		memset(data, 'v', sizeof data);
		answer(at, pwritev2(number(l, 1), pieces, 2, number(l, 3), number(l, 4)));
	} else if (IS("vmsplice"))
		answer(at, vmsplice(number(l, 1), pieces, 2, SPLICE_F_NONBLOCK));
	else if (IS("tee"))
		answer(at, tee(number(l, 1), number(l, 2), number(l, 3), SPLICE_F_NONBLOCK));
	else if (IS("copyat"))
		answer(at, copy_file_range(number(l, 1), &from, number(l, 2), &to, number(l, 3), number(l, 6)));
	else if (IS("sendfileat"))
		answer(at, sendfile(number(l, 1), number(l, 2), &from, number(l, 3)));
	else if (IS("spliceat"))
		answer(at, splice(number(l, 1), number(l, 5) < 0 ? NULL : &from, number(l, 2), number(l, 5) < 0 ? &from : NULL,
		                  number(l, 3), SPLICE_F_NONBLOCK));
	else if (IS("fadvise"))
		answer(at, -(errno = posix_fadvise(number(l, 1), 0, 0, number(l, 2))));
	else if (IS("readahead"))
		answer(at, readahead(number(l, 1), 0, number(l, 2)));
	else if (IS("syncrange"))
		answer(at, sync_file_range(number(l, 1), 0, 0, number(l, 2)));
	else if (IS("lockget")) {
		struct flock lock = {.l_type = number(l, 3), .l_whence = SEEK_SET, .l_start = number(l, 4), .l_len = number(l, 5)};
		if (is_device(number(l, 1)))
			return;
		long result = fcntl(number(l, 1), number(l, 2), &lock);
		if (result < 0)
			answer(at, result);
		else
			say("%d lockget = %d %ld %ld\n", at, lock.l_type, (long)lock.l_start, (long)lock.l_len);
	} else if (IS("ioctl"))
		control(at, number(l, 1), number(l, 2), number(l, 3));
}

void file_call(int at, const struct line *l) {
	char data[4096];
	struct stat status;
	const char *call = l->word[0];
	if (IS("openat"))
		answer(at, openat(number(l, 1), name(l, 2), number(l, 3) | O_NONBLOCK, number(l, 4)));
	else if (IS("open"))
		answer(at, syscall(SYS_open, name(l, 1), number(l, 2) | O_NONBLOCK, number(l, 3)));
	else if (IS("openat2")) {
		/* A longer structure may have nothing behind what the kernel knows. */
		struct {
			uint64_t flags, mode, resolve, more, last;
		} how = {number(l, 3) | O_NONBLOCK, number(l, 4), number(l, 5), 0, 1};
		answer(at, syscall(SYS_openat2, (int)number(l, 1), name(l, 2), &how, l->words > 6 ? (size_t)number(l, 6) : 24));
	} else if (IS("creat"))
		answer(at, syscall(SYS_creat, name(l, 1), number(l, 2)));
	else if (IS("close"))
		answer(at, close(number(l, 1)));
	else if (IS("close_range"))
		answer(at, syscall(SYS_close_range, number(l, 1), number(l, 2), number(l, 3)));
	else if (IS("read"))
		answer_read(at, number(l, 1), read(number(l, 1), data, number(l, 2)), data);
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
		struct statx it;
		long result = statx(number(l, 1), name(l, 2), number(l, 3), l->words > 4 ? number(l, 4) : STATX_BASIC_STATS, &it);
		/* Times that a program has set are long past. */
		long changed = it.stx_mtime.tv_sec > 1000000000 ? -1 : it.stx_mtime.tv_sec;
		if (result < 0)
			answer(at, result);
		else
			say("%d statx = %o %d:%d mask=%x links=%d size=%ld changed=%ld\n", at, it.stx_mode,
			    it.stx_mode & S_IFMT ? it.stx_uid : 0, it.stx_mode & S_IFMT ? it.stx_gid : 0,
			    it.stx_mask & STATX_BASIC_STATS, S_ISDIR(it.stx_mode) ? 0 : (int)it.stx_nlink,
			    S_ISREG(it.stx_mode) ? (long)it.stx_size : 0L, changed);
	} else if (IS("access"))
		answer(at, syscall(SYS_access, name(l, 1), number(l, 2)));
	else if (IS("faccessat"))
		answer(at, syscall(SYS_faccessat, (int)number(l, 1), name(l, 2), number(l, 3)));
	else if (IS("faccessat2"))
		answer(at, syscall(SYS_faccessat2, (int)number(l, 1), name(l, 2), number(l, 3), number(l, 4)));
	else if (IS("readlink")) {
		long result = readlinkat(number(l, 1), name(l, 2), data, number(l, 3));
		/* Pipes, sockets and files without a name are told by their numbers, a directory of a process by its PID. */
		char *inode = result > 0 ? memmem(data, result, ":[", 2) : NULL;
		if (!inode && result > 0)
			inode = memmem(data, result, "/#", 2);
		if (inode)
			result = inode - data;
		else if (result > 6 && !strncmp(data, "/proc/", 6))
			result = 6;
		answer_data(at, result, data);
	} else if (IS("getcwd")) {
		long result = syscall(SYS_getcwd, data, sizeof data);
		/* There, a PID follows. */
		answer_data(at, result > 6 && !strncmp(data, "/proc/", 6) ? 6 : result, data);
	} else if (IS("chdir"))
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
		answer(at, number(l, 2) ? fdatasync(number(l, 1)) : fsync(number(l, 1)));
	else
		moving_call(at, l);
}
