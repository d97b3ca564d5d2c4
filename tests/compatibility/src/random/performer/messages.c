/* Messages with what they carry beside data: descriptors, credentials. */
#include "performer.h"
#include "sockets.h"
#include <netinet/in.h>
#include <stddef.h>

enum { MOST_SENT = 3 };

static long send_fds(int socket, const struct line *l) {
	int fds[MOST_SENT], count = 0;
	for (int n = 2; n < l->words && count < MOST_SENT; n++)
		fds[count++] = number(l, n);
	char control[CMSG_SPACE(sizeof fds)] = {0};
	struct iovec data = {"f", 1};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control,
	                         .msg_controllen = CMSG_SPACE(count * sizeof *fds)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(count * sizeof *fds);
	memcpy(CMSG_DATA(header), fds, count * sizeof *fds);
	return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static long send_credentials(int socket, int uid) {
	struct ucred own = {getpid(), uid < 0 ? getuid() : (uid_t)uid, getgid()};
	char control[CMSG_SPACE(sizeof own)] = {0};
	struct iovec data = {"c", 1};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_CREDENTIALS;
	header->cmsg_len = CMSG_LEN(sizeof own);
	memcpy(CMSG_DATA(header), &own, sizeof own);
	return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void receive(int at, int socket, int flags) {
	char control[256], byte[64], out[2000];
	struct sockaddr_un from = {0};
	struct iovec data = {byte, sizeof byte};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control,
	                         .msg_name = &from, .msg_namelen = sizeof from};
	long result = recvmsg(socket, &message, MSG_DONTWAIT | flags);
	if (result < 0) {
		answer(at, result);
		return;
	}
	int length = sprintf(out, "%d recvmsg = %ld flags=%x from=%d", at, result, message.msg_flags,
	                     message.msg_namelen ? from.sun_family : 0);
	for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
		int count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int), value[64];
		memcpy(value, CMSG_DATA(header), count * sizeof(int));
		if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
			for (int n = 0; n < count; n++)
				length += sprintf(out + length, " fd %d", value[n]);
		else if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_CREDENTIALS)
			length += sprintf(out + length, " of %s %d %d", whose(value[0]), value[1], value[2]);
		else
			length += sprintf(out + length, " %d/%d", header->cmsg_level, header->cmsg_type);
	}
	say("%s\n", out);
}

void message_call(int at, const struct line *l) {
	const char *call = l->word[0];
	int fd = number(l, 1);
	if (IS("send_fd"))
		answer(at, send_fds(fd, l));
	else if (IS("send_credentials"))
		answer(at, send_credentials(fd, number(l, 2)));
	else if (IS("receive_fd"))
		receive(at, fd, number(l, 2));
	else if (IS("peercred")) {
		struct ucred peer = {0};
		socklen_t length = sizeof peer;
		long result = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length);
		if (result < 0)
			answer(at, result);
		else
			say("%d peercred = %s %d %d\n", at, whose(peer.pid), peer.uid, peer.gid);
	} else if (IS("recvfrom")) {
		char data[64];
		struct sockaddr_un from = {0};
		socklen_t length = sizeof from;
		long result = recvfrom(fd, data, number(l, 2), MSG_DONTWAIT | number(l, 3), (void *)&from, &length);
		if (result < 0)
			answer(at, result);
		else
			say("%d recvfrom = %ld %d %.60s\n", at, result, length ? from.sun_family : 0,
			    length && from.sun_family == AF_UNIX ? from.sun_path : "");
	} else if (IS("sendmmsg")) {
		struct iovec data = {"many", 4};
		struct mmsghdr all[2] = {{.msg_hdr = {.msg_iov = &data, .msg_iovlen = 1}}, {.msg_hdr = {.msg_iov = &data, .msg_iovlen = 1}}};
		answer(at, sendmmsg(fd, all, number(l, 2), MSG_DONTWAIT | MSG_NOSIGNAL));
	} else if (IS("recvmmsg")) {
		char bytes[2][8];
		struct iovec data[2] = {{bytes[0], 8}, {bytes[1], 8}};
		struct mmsghdr all[2] = {{.msg_hdr = {.msg_iov = &data[0], .msg_iovlen = 1}}, {.msg_hdr = {.msg_iov = &data[1], .msg_iovlen = 1}}};
		answer(at, recvmmsg(fd, all, number(l, 2), MSG_DONTWAIT, NULL));
	}
}
