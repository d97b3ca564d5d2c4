/* Reads a file by every way to name it. Arguments: its path, and a descriptor of the root directory
 * from outside. */
#include "attack.h"
#include <linux/openat2.h>

static void by(const char *format, const char *path) {
    char name[8192];
    snprintf(name, sizeof name, format, path);
    must_not_read(name, open(name, O_RDONLY));
    must_not_read("read and write", open(name, O_RDWR));
    must_not_read("appending", open(name, O_RDONLY | O_APPEND | O_NOATIME));
    must_not_read("high bits", syscall(SYS_openat, AT_FDCWD, name, 1L << 40));
    must_fail("truncate", truncate(name, 0));
    must_fail("chmod", chmod(name, 0777));
    must_fail("link", linkat(AT_FDCWD, name, AT_FDCWD, "linked", AT_SYMLINK_FOLLOW));
    if (strstr(name, "link")) return;
    must_fail("link", link(name, "linked"));
    must_fail("rename", rename(name, "renamed"));
    must_fail("unlink", unlink(name));
}

static void by_handle(const char *path) {
    struct { struct file_handle head; char rest[128]; } handle = {.head.handle_bytes = 128};
    int mount;
    if (name_to_handle_at(AT_FDCWD, path, &handle.head, &mount, 0) == 0)
        must_not_read("by handle", open_by_handle_at(AT_FDCWD, &handle.head, O_RDONLY));
}

static void by_descriptor(const char *path, int root) {
    char name[64];
    must_not_read("inherited directory", openat(root, path + 1, O_RDONLY));
    must_not_read("out of it", openat(root, "../../..", O_RDONLY));
    int handle = open(path, O_PATH);
    if (handle >= 0) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", handle);
        must_not_read("opened again", open(name, O_RDONLY));
        must_fail("linked", linkat(handle, "", AT_FDCWD, "linked", AT_EMPTY_PATH));
    }
    struct open_how how = {.flags = O_RDONLY, .resolve = RESOLVE_IN_ROOT};
    must_not_read("openat2", syscall(SYS_openat2, root, path, &how, sizeof how));
    must_fail("open_tree", syscall(SYS_open_tree, root, path + 1, 1));
}

int main(int argc, char **argv) {
    const char *path = argv[1];
    by("%s", path);
    by("/proc/self/root%s", path);
    by("/proc/thread-self/root%s", path);
    by("/proc/1/root%s", path);
    by("/proc/self/cwd/../../../../../../..%s", path);
    by("/proc/self/task/../root/./%s", path);
    by("/dev/fd/../../root%s", path);
    unlink("link");
    if (symlink(path, "link")) return 3;
    by("link%.0s", path);
    by("./link/%.0s", path);
    chdir("/proc/self");
    by("root%s", path);
    chdir("/proc/1");
    by("root%s", path);
    by("cwd/../../..%s", path);
    by_handle(path);
    by_descriptor(path, atoi(argv[2]));
    return argc != 3;
}
