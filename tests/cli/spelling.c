// A file system (FUSE) that finds names whatever their case: one directory with two files. It is
// mounted at the directory that is named, and ends with the mount.
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *const names[] = {"secret.txt", "plain.txt"};
static const char content[] = "content\n";
enum { FIRST = FUSE_ROOT_ID + 1, COUNT = 2 };

static int device;
static char request[1 << 18];

static void reply(int error, const void *data, size_t size) {
    const struct fuse_in_header *asked = (const void *)request;
    struct fuse_out_header header = {sizeof header + size, -error, asked->unique};
    struct iovec parts[2] = {{&header, sizeof header}, {(void *)data, size}};
    writev(device, parts, 2);
}

static struct fuse_attr attributes(uint64_t node) {
    struct fuse_attr found = {.ino = node, .mode = S_IFREG | 0644, .nlink = 1, .size = sizeof content - 1, .blksize = 4096};
    if (node == FUSE_ROOT_ID) {
        found.mode = S_IFDIR | 0755;
    }
    return found;
}

static void look_up(const char *name) {
    for (int at = 0; at < COUNT; at++) {
        if (strcasecmp(names[at], name) == 0) {
            struct fuse_entry_out entry = {.nodeid = FIRST + at, .attr_valid = 1, .entry_valid = 1};
            entry.attr = attributes(entry.nodeid);
            reply(0, &entry, sizeof entry);
            return;
        }
    }
    reply(ENOENT, NULL, 0);
}

static void list(uint64_t from) {
    char all[512] = {0};
    size_t used = 0;
    for (uint64_t at = from; at < COUNT; at++) {
        struct fuse_dirent *entry = (void *)(all + used);
        *entry = (struct fuse_dirent){FIRST + at, at + 1, strlen(names[at]), S_IFREG >> 12};
        memcpy(entry->name, names[at], entry->namelen);
        used += FUSE_DIRENT_SIZE(entry);
    }
    reply(0, all, used);
}

static void answer(void) {
    const struct fuse_in_header *asked = (const void *)request;
    const void *body = asked + 1;
    const struct fuse_read_in *range = body;
    struct fuse_init_out ready = {.major = 7, .minor = 31, .max_write = 65536};
    struct fuse_attr_out found = {.attr_valid = 1, .attr = attributes(asked->nodeid)};
    struct fuse_open_out opened = {0};
    switch (asked->opcode) {
    case FUSE_INIT: reply(0, &ready, sizeof ready); return;
    case FUSE_LOOKUP: look_up(body); return;
    case FUSE_GETATTR: reply(0, &found, sizeof found); return;
    case FUSE_OPEN:
    case FUSE_OPENDIR: reply(0, &opened, sizeof opened); return;
    case FUSE_READDIR: list(range->offset); return;
    case FUSE_READ: reply(0, content, range->offset == 0 ? sizeof content - 1 : 0); return;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET: return;
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
    case FUSE_FLUSH: reply(0, NULL, 0); return;
    default: reply(ENOSYS, NULL, 0);
    }
}

int main(int count, char **arguments) {
    char options[100];
    device = open("/dev/fuse", O_RDWR);
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
    if (count != 2 || device < 0 || mount("spelling", arguments[1], "fuse", MS_NOSUID | MS_NODEV, options) != 0) {
        perror("spelling");
        return 1;
    }
    for (;;) {
        if (read(device, request, sizeof request) >= 0) {
            answer();
        } else if (errno != ENOENT && errno != EINTR) {
            return errno == ENODEV ? 0 : 1;
        }
    }
}
