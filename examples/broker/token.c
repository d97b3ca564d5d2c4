/* A token broker on a plain unix socket: gives its token to the domain `deploy` of any sandbox, and
 * to nobody else. usage: token SOCKET */
#include <dewar_port.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int client, listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char who[256];

	snprintf(at.sun_path, sizeof at.sun_path, "%s", argc == 2 ? argv[1] : "");
	if (bind(listener, (struct sockaddr *)&at, sizeof at) < 0 || listen(listener, 16) < 0) {
		perror("token");
		return 1;
	}
	while ((client = accept(listener, NULL, NULL)) >= 0) {
		int deploys = dewar_client_context(client, who, sizeof who) > 0 && strcmp(who, "dewar_u:dewar_r:deploy_t") == 0;
		const char *answer = deploys ? "s3cret\n" : "none for you\n";
		send(client, answer, strlen(answer), MSG_NOSIGNAL);
		close(client);
	}
	return 0;
}
