/* Calls on names. */
#include "performer.h"
#include <sys/xattr.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

void name_call(int at, const struct line *l) {
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

