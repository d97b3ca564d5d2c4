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
    /* The top may be listed, and no more. */
    must_fail("of what may be listed", inotify_add_watch(watches, "/", IN_ALL_EVENTS));
    int top = open("/", O_RDONLY | O_DIRECTORY);
    if (top < 0) return 3;
    must_fail("by a descriptor", fcntl(top, F_NOTIFY, DN_CREATE | DN_DELETE | DN_RENAME | DN_MULTISHOT));
    if (inotify_add_watch(watches, ".", IN_CREATE) < 0) return 3;
    return argc != 2;
}
