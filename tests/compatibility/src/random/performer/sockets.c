/* Calls on pipes and sockets. */
#include "performer.h"
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "sockets.h"

socklen_t unix_address(struct sockaddr_un *address, const char *path) {
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	size_t length = strlen(path);
	if (length > sizeof address->sun_path)
		length = sizeof address->sun_path;
	memcpy(address->sun_path, path, length);
	if (path[0] == '@')
		address->sun_path[0] = 0;
	return offsetof(struct sockaddr_un, sun_path) + length + (path[0] != '@' && length < sizeof address->sun_path);
}

/* The address of a socket of the loopback; whether there is one. */
static int address_of(int fd, struct sockaddr_storage *address, socklen_t *length) {
	*length = sizeof *address;
	return !getsockname(fd, (void *)address, length) &&
	       (address->ss_family == AF_INET || address->ss_family == AF_INET6);
}

/* Sockets of the internet: the kernel chooses their ports. */
static void internet_call(int at, const struct line *l) {
	const char *call = l->word[0];
	struct sockaddr_storage address = {0};
	socklen_t length = 0;
	int fd = number(l, 1);
	if (IS("bind_port")) {
		int family = 0;
		length = sizeof family;
		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length)) {
			answer(at, -1);
			return;
		}
		struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
		answer(at, family == AF_INET6 ? bind(fd, (void *)&six, sizeof six) : bind(fd, (void *)&four, sizeof four));
	} else if (IS("connect_to")) {
		int has = address_of(number(l, 2), &address, &length);
		if (number(l, 3))
			address.ss_family = AF_UNSPEC, length = 16;
		else if (!has || !((struct sockaddr_in *)&address)->sin_port) {
			say("%d connect_to: no port\n", at);
			return;
		}
		answer(at, connect(fd, (void *)&address, length));
	} else if (IS("send_to")) {
		if (!address_of(number(l, 2), &address, &length) || !((struct sockaddr_in *)&address)->sin_port)
			say("%d send_to: no port\n", at);
		else
			answer(at, sendto(fd, "gram", 4, MSG_DONTWAIT | MSG_NOSIGNAL, (void *)&address, length));
	} else if (IS("port")) {
		int has = address_of(fd, &address, &length);
		say("%d port = %d %d %d\n", at, has, has ? address.ss_family : 0,
		    has && ((struct sockaddr_in *)&address)->sin_port != 0);
	} else if (IS("peername")) {
		length = sizeof address;
		long result = getpeername(fd, (void *)&address, &length);
		if (result < 0)
			answer(at, result);
		else
			say("%d peername = %d %d\n", at, address.ss_family, length);
	} else if (IS("accept_name")) {
		length = sizeof address;
		long result = accept4(fd, (void *)&address, &length, SOCK_NONBLOCK | number(l, 2));
		if (result < 0)
			answer(at, result);
		else
			say("%d accept_name = %ld %d %d\n", at, result, length ? address.ss_family : 0, length);
	} else if (IS("any_socket"))
		answer(at, socket(number(l, 1), number(l, 2) | SOCK_NONBLOCK, number(l, 3)));
	else if (IS("any_pair")) {
		int pair[2] = {-1, -1};
		answer(at, socketpair(number(l, 1), number(l, 2) | SOCK_NONBLOCK, 0, pair));
		close(pair[0]), close(pair[1]);
	}
}

void socket_call(int at, const struct line *l) {
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
		answer(at, setsockopt(number(l, 1), number(l, 2), number(l, 3), &value, l->words > 5 ? number(l, 5) : (long)sizeof value));
	} else if (IS("getsockopt")) {
		int value = 0;
		socklen_t length = sizeof value;
		long result = getsockopt(number(l, 1), number(l, 2), number(l, 3), &value, &length);
		answer(at, result < 0 ? result : value);
	} else
		internet_call(at, l);
}
