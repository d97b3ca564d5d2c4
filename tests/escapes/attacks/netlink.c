/* Opens netlink sockets of every protocol but routes, and changes interfaces and routes by that. */
#include "attack.h"
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

int main(void) {
    static const int kinds[] = {SOCK_RAW, SOCK_DGRAM, SOCK_RAW | SOCK_CLOEXEC, SOCK_DGRAM | SOCK_NONBLOCK};
    for (int protocol = 1; protocol < 33; protocol++)
        for (unsigned kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
            char name[32];
            snprintf(name, sizeof name, "protocol %d", protocol);
            must_fail(name, socket(AF_NETLINK, kinds[kind], protocol));
        }
    int s = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    if (s < 0) {
        perror("no netlink, so nothing was tried");
        return 1;
    }
    static const int changes[] = {RTM_NEWLINK, RTM_DELLINK, RTM_SETLINK, RTM_NEWADDR, RTM_DELADDR, RTM_NEWROUTE,
        RTM_DELROUTE, RTM_NEWNEIGH, RTM_DELNEIGH, RTM_NEWRULE, RTM_NEWQDISC};
    for (unsigned n = 0; n < sizeof changes / sizeof *changes; n++) {
        struct { struct nlmsghdr header; struct ifinfomsg about; } ask = {
            {sizeof ask, changes[n], NLM_F_REQUEST | NLM_F_ACK, 1, 0}, {.ifi_index = 1, .ifi_change = 1}};
        struct { struct nlmsghdr header; struct nlmsgerr error; char rest[256]; } answer = {0};
        struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
        if (sendto(s, &ask, sizeof ask, 0, (void *)&kernel, sizeof kernel) < 0 || recv(s, &answer, sizeof answer, 0) < 0) continue;
        if (answer.header.nlmsg_type == NLMSG_ERROR && answer.error.error == 0) escaped("a change by netlink");
        errno = -answer.error.error;
        must_fail("a change by netlink", -1);
    }
    /* To a process, not to the kernel. */
    struct sockaddr_nl process = {.nl_family = AF_NETLINK, .nl_pid = 4242};
    must_fail("a message to a process", sendto(s, "stolen", 6, 0, (void *)&process, sizeof process));
    return 0;
}
