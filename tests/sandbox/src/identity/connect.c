/* A client of a service that answers a byte with who it thinks this is, or says something to
 * whoever connects.
 * connect take SOCKET            connects, prints what comes
 * connect ask SOCKET             connects, asks, prints the answer
 * connect name SOCKET NAME       the same, with its socket bound to the abstract NAME before (`-` for no bytes)
 * connect exec SOCKET PROGRAM    connects and asks, and has PROGRAM ask for the answer and print it
 * connect lend SOCKET SILENT     tries SILENT, where nobody listens, and has a child use the same socket
 * connect fd NUMBER              asks for the answer that comes from a descriptor, and prints it */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sockaddr_un at;

static int reach(int fd, const char *path)
{
	at = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
	return connect(fd, (struct sockaddr *)&at, sizeof at);
}

static void failed(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(0);
}

static void print(int fd)
{
	char answer[256];
	ssize_t got = read(fd, answer, sizeof answer - 1);
	printf("%.*s", got > 0 ? (int)got : 0, answer);
}

int main(int argc, char **argv)
{
	if (argc < 3) return 2;
	if (strcmp(argv[1], "fd") == 0) {
		if (write(atoi(argv[2]), "?", 1) != 1) failed("write");
		print(atoi(argv[2]));
		return 0;
	}
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (strcmp(argv[1], "name") == 0) {
		struct sockaddr_un own = { .sun_family = AF_UNIX };
		size_t length = strcmp(argv[3], "-") == 0 ? 0 : strlen(argv[3]);
		memcpy(own.sun_path + 1, argv[3], length);
		if (bind(fd, (struct sockaddr *)&own, offsetof(struct sockaddr_un, sun_path) + 1 + length) < 0) failed("bind");
	}
	if (strcmp(argv[1], "lend") == 0) {
		if (reach(fd, argv[3]) == 0 || errno != ECONNREFUSED) failed("somebody listens");
		if (fork() > 0) {
			wait(NULL);
			return 0;
		}
	}
	if (reach(fd, argv[2]) < 0) failed("connect");
	const char *question = strcmp(argv[1], "exec") == 0 ? "later" : "?";
	if (strcmp(argv[1], "take") != 0 && write(fd, question, strlen(question)) < 0) failed("write");
	if (strcmp(argv[1], "exec") == 0) {
		char number[16];
		snprintf(number, sizeof number, "%d", fd);
		execl(argv[3], argv[3], "fd", number, NULL);
		failed("exec");
	}
	print(fd);
	return 0;
}
