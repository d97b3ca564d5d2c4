/* Calls on what tells of events: epoll, counters, timers, watches, polling. */
#include "performer.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

/* The events of a watch, in order; a number that only pairs two of them is left out. */
static void read_watches(int at, int fd) {
	char data[8192] __attribute__((aligned(8)));
	char out[4000];
	int length = 0;
	/* What else is read here would be no events. */
	char path[64], kind[64] = "";
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (readlink(path, kind, sizeof kind - 1) < 0 || strcmp(kind, "anon_inode:inotify")) {
		say("%d watched: none\n", at);
		return;
	}
	long result = read(fd, data, sizeof data);
	if (result < 0) {
		answer(at, result);
		return;
	}
	out[0] = 0;
	for (long place = 0; place < result && length < (int)sizeof out - 300;) {
		struct inotify_event *event = (void *)(data + place);
		length += sprintf(out + length, " %d:%x:%.200s", event->wd, event->mask, event->len ? event->name : "");
		place += sizeof *event + event->len;
	}
	say("%d watched =%s\n", at, out);
}

static void wait_events(int at, int fd) {
	struct epoll_event events[16];
	int count = epoll_wait(fd, events, 16, 0);
	if (count < 0) {
		answer(at, count);
		return;
	}
	char out[1024];
	int length = 0;
	out[0] = 0;
	for (int of = 0; of < 700; of++)
		for (int n = 0; n < count; n++)
			if ((int)events[n].data.u32 == of)
				length += sprintf(out + length, " %d:%x", of, events[n].events);
	say("%d epoll_wait = %d%s\n", at, count, out);
}

static void signal_once(int at) {
	sigset_t set, before;
	struct signalfd_siginfo info = {0};
	sigemptyset(&set), sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	int fd = signalfd(-1, &set, SFD_NONBLOCK);
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR2);
	long result = read(fd, &info, sizeof info);
	int failure = errno;
	if (result < 0)
		sigtimedwait(&set, NULL, &(struct timespec){0, 0});
	close(fd);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = failure;
	if (result < 0)
		answer(at, result);
	else
		say("%d signalfd = %ld %u %d %s\n", at, result, info.ssi_signo, info.ssi_code, whose(info.ssi_pid));
}

void event_call(int at, const struct line *l) {
	const char *call = l->word[0];
	if (IS("epoll"))
		answer(at, epoll_create1(number(l, 1)));
	else if (IS("epoll_ctl")) {
		struct epoll_event event = {.events = number(l, 4), .data.u32 = number(l, 3)};
		answer(at, epoll_ctl(number(l, 1), number(l, 2), number(l, 3), &event));
	} else if (IS("epoll_wait"))
		wait_events(at, number(l, 1));
	else if (IS("eventfd"))
		answer(at, eventfd(number(l, 1), EFD_NONBLOCK | number(l, 2)));
	else if (IS("count")) {
		uint64_t value = number(l, 2);
		answer(at, write(number(l, 1), &value, sizeof value));
	} else if (IS("timerfd"))
		answer(at, timerfd_create(number(l, 1), TFD_NONBLOCK));
	else if (IS("settimer")) {
		/* One has passed when this returns, or comes in a day. */
		struct itimerspec time = {.it_value = {number(l, 2) ? 100000 : 0, number(l, 2) ? 0 : 1}}, before;
		long result = timerfd_settime(number(l, 1), number(l, 3), &time, &before);
		int failure = errno;
		if (result == 0 && !number(l, 2))
			poll(&(struct pollfd){number(l, 1), POLLIN, 0}, 1, 1000);
		errno = failure;
		answer(at, result < 0 ? result : before.it_value.tv_sec > 0);
	} else if (IS("signalfd"))
		signal_once(at);
	else if (IS("poll")) {
		struct pollfd one = {number(l, 1), number(l, 2), 0};
		long result = poll(&one, 1, 0);
		if (result < 0)
			answer(at, result);
		else
			say("%d poll = %ld %x\n", at, result, one.revents);
	} else if (IS("select")) {
		int fd = number(l, 1);
		fd_set sets[3];
		for (int n = 0; n < 3; n++) {
			FD_ZERO(&sets[n]);
			if (fd >= 0)
				FD_SET(fd, &sets[n]);
		}
		long result = select(fd + 1, &sets[0], &sets[1], &sets[2], &(struct timeval){0, 0});
		answer(at, result);
	} else if (IS("watcher"))
		answer(at, inotify_init1(IN_NONBLOCK | number(l, 1)));
	else if (IS("watch"))
		answer(at, inotify_add_watch(number(l, 1), name(l, 2), number(l, 3)));
	else if (IS("unwatch"))
		answer(at, inotify_rm_watch(number(l, 1), number(l, 2)));
	else if (IS("watched"))
		read_watches(at, number(l, 1));
}
