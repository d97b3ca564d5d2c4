#include <sys/socket.h>
#include <sys/un.h>

/* The address of a name, an abstract one behind `@`; its length. */
socklen_t unix_address(struct sockaddr_un *address, const char *path);
