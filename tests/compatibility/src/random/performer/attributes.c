/* Calls on attributes: times, owners, extended attributes; older calls, and the newest. */
#include "performer.h"
#include <sys/statfs.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

enum { SETXATTRAT = 463, GETXATTRAT, LISTXATTRAT, REMOVEXATTRAT };

/* Extended attributes by descriptors, and of links themselves. */
static void extended(int at, const struct line *l) {
	const char *call = l->word[0];
	char data[4096] = "value";
	struct {
		uint64_t value;
		uint32_t size, flags;
	} value = {(uint64_t)data, number(l, 5), number(l, 6)};
	int fd = number(l, 1);
	if (IS("fgetxattr"))
		answer_data(at, fgetxattr(fd, name(l, 2), data, number(l, 3)), data);
	else if (IS("lgetxattr"))
		answer_data(at, lgetxattr(name(l, 1), name(l, 2), data, number(l, 3)), data);
	else if (IS("flistxattr"))
		answer(at, flistxattr(fd, data, number(l, 2)));
	else if (IS("llistxattr"))
		answer(at, llistxattr(name(l, 1), data, number(l, 2)));
	else if (IS("fremovexattr"))
		answer(at, fremovexattr(fd, name(l, 2)));
	else if (IS("lremovexattr"))
		answer(at, lremovexattr(name(l, 1), name(l, 2)));
	else if (IS("setxattrat"))
		answer(at, syscall(SETXATTRAT, fd, name(l, 2), number(l, 4), name(l, 3), &value, sizeof value));
	else if (IS("getxattrat"))
		answer_data(at, syscall(GETXATTRAT, fd, name(l, 2), number(l, 4), name(l, 3), &value, sizeof value), data);
	else if (IS("listxattrat"))
		answer(at, syscall(LISTXATTRAT, fd, name(l, 2), number(l, 4), data, number(l, 5)));
	else if (IS("removexattrat"))
		answer(at, syscall(REMOVEXATTRAT, fd, name(l, 2), number(l, 4), name(l, 3)));
}

void attribute_call(int at, const struct line *l) {
	const char *call = l->word[0];
	extended(at, l);
	if (IS("utimens")) {
		struct timespec times[2] = {{number(l, 3), number(l, 4)}, {number(l, 3), number(l, 5)}};
		/* Of the descriptor itself. */
		const char *path = !strcmp(name(l, 2), "-") ? NULL : name(l, 2);
		answer(at, syscall(SYS_utimensat, (int)number(l, 1), path, number(l, 7) ? NULL : times, (int)number(l, 6)));
	} else if (IS("utime"))
		answer(at, syscall(SYS_utime, name(l, 1), number(l, 2) ? &(struct utimbuf){1, number(l, 2)} : NULL));
	else if (IS("futimesat")) {
		struct timeval times[2] = {{1, 1}, {number(l, 3), number(l, 4)}};
		answer(at, syscall(SYS_futimesat, (int)number(l, 1), name(l, 2), times));
	} else if (IS("lchown"))
		answer(at, syscall(SYS_lchown, name(l, 1), (int)number(l, 2), (int)number(l, 3)));
	else if (IS("fchmodat"))
		answer(at, syscall(SYS_fchmodat, (int)number(l, 1), name(l, 2), number(l, 3)));
	else if (IS("renameat"))
		answer(at, syscall(SYS_renameat, (int)number(l, 1), name(l, 2), (int)number(l, 3), name(l, 4)));
	else if (IS("mknod_old"))
		answer(at, syscall(SYS_mknod, name(l, 1), number(l, 2), 0));
	else if (IS("statfs") || IS("fstatfs")) {
		struct statfs status;
		answer(at, IS("statfs") ? statfs(name(l, 1), &status) : fstatfs(number(l, 1), &status));
	} else if (IS("handle")) {
		struct {
			struct file_handle head;
			char rest[128];
		} handle = {.head.handle_bytes = number(l, 4)};
		int mount;
		long result = name_to_handle_at(number(l, 1), name(l, 2), &handle.head, &mount, number(l, 3));
		if (result < 0)
			answer(at, result);
		else
			say("%d handle = %u %d\n", at, handle.head.handle_bytes, handle.head.handle_type);
	}
}
