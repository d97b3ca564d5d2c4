/* A token broker at a port: gives its token to the domain `deploy`, and tells others that it has
 * none for them. usage: broker SOCKET POLICY, then on standard input, for processes outside of
 * sandboxes: PID CONTEXT, one a line */
#include <dewar_port.h>
#include <stdio.h>
#include <string.h>
#include <pthread.h>

static ssize_t token(void *data, const struct dewar_request *request, void *reply, size_t room)
{
	const char *answer = strcmp(request->client, "dewar_u:dewar_r:deploy_t") == 0 ? data : "none for you";
	return snprintf(reply, room, "%s", answer);
}

static void *serve(void *service)
{
	dewar_service_run(service, token, "s3cret");
	return NULL;
}

int main(int argc, char **argv)
{
	struct dewar_service *broker = argc == 3 ? dewar_service_bind(argv[1], argv[2], "dewar_u:dewar_r:broker_t") : NULL;
	pthread_t thread;
	char context[256];
	int pid;

	if (!broker || pthread_create(&thread, NULL, serve, broker) != 0) {
		perror("broker");
		return 1;
	}
	while (scanf("%d %255s", &pid, context) == 2)
		if (dewar_service_label(broker, pid, context) == 0)
			puts("noted"), fflush(stdout);
	return 0;
}
