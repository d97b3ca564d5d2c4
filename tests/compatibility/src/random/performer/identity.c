/* Calls on what a process is: its IDs, limits, priorities and options. */
#include "performer.h"
#include <linux/capability.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static void priorities(int at, const struct line *l) {
	const char *call = l->word[0];
	struct sched_param none = {number(l, 2)};
	if (IS("priority"))
		answer(at, setpriority(PRIO_PROCESS, 0, number(l, 1)));
	else if (IS("getpriority"))
		answer(at, getpriority(number(l, 1), 0));
	else if (IS("policy"))
		answer(at, sched_setscheduler(0, number(l, 1), &none));
	else if (IS("getpolicy"))
		answer(at, sched_getscheduler(0));
	else if (IS("affinity")) {
		cpu_set_t set;
		CPU_ZERO(&set);
		CPU_SET(number(l, 1), &set);
		long result = number(l, 1) < 0 ? sched_getaffinity(0, sizeof set, &set) : sched_setaffinity(0, sizeof set, &set);
		answer(at, result < 0 ? result : CPU_COUNT(&set));
	} else if (IS("ioprio"))
		answer(at, syscall(SYS_ioprio_set, 1, 0, number(l, 1)));
	else if (IS("getioprio"))
		answer(at, syscall(SYS_ioprio_get, 1, 0));
}

void identity_call(int at, const struct line *l) {
	const char *call = l->word[0];
	priorities(at, l);
	if (IS("setsid"))
		answer(at, setsid() < 0 ? -1 : 0);
	else if (IS("setpgid"))
		answer(at, setpgid(0, 0));
	else if (IS("groups"))
		say("%d groups = %d %d\n", at, getpgrp() == getpid(), getsid(0) == getpid());
	else if (IS("unshare"))
		answer(at, unshare(number(l, 1)));
	else if (IS("prctl"))
		answer(at, prctl(number(l, 1), number(l, 2), 0, 0, 0));
	else if (IS("setrlimit")) {
		struct rlimit limit = {number(l, 2), number(l, 2)};
		answer(at, setrlimit(number(l, 1), &limit));
	} else if (IS("soft")) {
		struct rlimit limit;
		long result = prlimit(0, number(l, 1), NULL, &limit);
		limit.rlim_cur = number(l, 2);
		answer(at, result < 0 ? result : prlimit(0, number(l, 1), &limit, NULL));
	} else if (IS("getrlimit")) {
		struct rlimit limit;
		long result = getrlimit(number(l, 1), &limit);
		if (result < 0)
			answer(at, result);
		else
			say("%d getrlimit = %lx %lx\n", at, limit.rlim_cur, limit.rlim_max);
	} else if (IS("setuid"))
		answer(at, setresuid(number(l, 1), number(l, 1), -1));
	else if (IS("setgid"))
		answer(at, setresgid(number(l, 1), -1, number(l, 1)));
	else if (IS("setfsuid"))
		say("%d setfsuid = %d %d\n", at, setfsuid(number(l, 1)) == (int)geteuid(), setfsuid(-1) == (int)geteuid());
	else if (IS("ids"))
		say("%d ids = %d %d %d %d\n", at, getuid(), geteuid(), getgid(), getegid());
	else if (IS("capget")) {
		struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
		struct __user_cap_data_struct data[2] = {{0}};
		long result = syscall(SYS_capget, &header, data);
		if (result < 0)
			answer(at, result);
		else
			say("%d capget = %x %x\n", at, data[0].effective, data[0].permitted);
	} else if (IS("chroot"))
		answer(at, chroot(name(l, 1)));
	else if (IS("mount"))
		answer(at, mount("none", name(l, 1), "tmpfs", 0, NULL));
	else if (IS("umount"))
		answer(at, umount2(name(l, 1), number(l, 2)));
	else if (IS("personality"))
		answer(at, syscall(SYS_personality, 0xffffffff));
}
