/* Ports: calls between processes on one machine, checked by policy on every call.
 *
 * Functions that fail return NULL or -1 and set errno: EACCES (policy denies), ETIMEDOUT, EPIPE
 * (the other side is gone), EMSGSIZE (longer than DEWAR_MAX_MESSAGE, or than the room for the
 * reply), EBUSY, EPROTO, EINVAL (an argument, a policy or a context is not valid), or what the
 * system says. Link with libdewar_port.a. */
#ifndef DEWAR_PORT_H
#define DEWAR_PORT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DEWAR_MAX_MESSAGE 65536

/* A connection to a service. To be used by one thread at a time. */
struct dewar_port;

/* Connects to the service that listens at `path`. */
struct dewar_port *dewar_port_connect(const char *path);

/* Calls, and returns the length of the reply, which is copied to `reply`. `effective` is the SID in
 * whose name, or 0 for one's own. Waits `timeout_ms`, or as long as it takes if that is
 * negative. */
ssize_t dewar_port_call(struct dewar_port *port, uint32_t effective, const void *body,
			size_t length, void *reply, size_t room, int timeout_ms);

/* Closes it. NULL is allowed. */
void dewar_port_close(struct dewar_port *port);

/* A service: a port at a path, a policy, and a record of which process has which label. */
struct dewar_service;

/* A call that policy has granted. */
struct dewar_request {
	const char *client;	/* security context of the one in whose name it is made */
	uint32_t client_sid;	/* the same, to pass on in calls of one's own */
	pid_t pid;		/* the process that made it */
	uid_t uid;		/* the user that connected: where several users' services look */
	const void *body;
	size_t length;
};

/* Answers a call: writes at most `room` bytes to `reply` and returns how many, or -1 for no answer.
 * Called by one thread a client. What `request` points to is gone when it returns. */
typedef ssize_t dewar_handler(void *data, const struct dewar_request *request, void *reply,
			      size_t room);

/* Writes to `context`, which has `room` bytes, the security context of the process in a `dewar run`
 * sandbox that connected the unix socket `socket`, as its run vouches for it: held since before it
 * connected. Returns the length; 0 for a process outside of every sandbox. Fails with EACCES if
 * neither is certain (it has ended, or entered another domain; it has bound its socket to a name;
 * its run is another user's, or cannot be asked): grant nothing. ERANGE: too little room. For any
 * unix socket, not only ports; ask again before what a long connection asks for later. */
ssize_t dewar_client_context(int socket, char *context, size_t room);

/* Listens at `path`, which must not exist, on a port labelled `context`, under the policy in the
 * CIL file `policy`. */
struct dewar_service *dewar_service_bind(const char *path, const char *policy, const char *context);

/* Notes the label of a process outside of every sandbox; with NULL, that it has none any more. It
 * ends with the process: whoever gets its number next has none. Fails with ESRCH if there is no
 * such process. Keeps a descriptor for each, and may be called while the service runs. Processes in
 * sandboxes have the context that their run vouches for, if the policy knows it. */
int dewar_service_label(struct dewar_service *service, pid_t pid, const char *context);

/* Serves until the listening socket fails: always ends with -1. */
int dewar_service_run(struct dewar_service *service, dewar_handler *handler, void *data);

#ifdef __cplusplus
}
#endif
#endif
