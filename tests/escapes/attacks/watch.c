/* Watches a directory that nothing grants, by its name and by those that mean something else to the
 * monitor. */
#include "attack.h"
#include <sys/inotify.h>

int main(int argc, char **argv) {
    char name[512];
    int watches = inotify_init();
    must_fail("by its name", inotify_add_watch(watches, argv[1], IN_ALL_EVENTS));
    snprintf(name, sizeof name, "/proc/self/root%s", argv[1]);
    must_fail("by the root", inotify_add_watch(watches, name, IN_ALL_EVENTS));
    if (symlink(name, "way")) return 3;
    must_fail("by a link", inotify_add_watch(watches, "way", IN_ALL_EVENTS));
    unlink("way");
    if (inotify_add_watch(watches, ".", IN_CREATE) < 0) return 3;
    return argc != 2;
}
