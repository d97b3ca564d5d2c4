/* Asks the broker for its token. usage: client SOCKET. Waits for a line on standard input first. */
#include <dewar_port.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	char token[64];
	getchar();
	struct dewar_port *port = argc == 2 ? dewar_port_connect(argv[1]) : NULL;
	ssize_t length = port ? dewar_port_call(port, 0, "please", 6, token, sizeof token, 1000) : -1;

	if (length < 0)
		perror("client");
	else
		printf("%.*s\n", (int)length, token);
	dewar_port_close(port);
	return length < 0;
}
