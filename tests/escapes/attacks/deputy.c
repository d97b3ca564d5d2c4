/* The program of a domain that may change DIRECTORY, which its caller may not. With nothing else,
   it says by the real name that it may; with "write" or "read", what the links of its caller lead
   it to; with "brought", what links that nobody may make lead it to; with "looked", the same to read,
   by paths that it has looked at before; with "reserved", a link in the place of a file that its
   caller may write; with "service", whether they lead it to a socket there; with "connect" and a port, whether it
   reaches its caller there, and at the socket "served". */
#include "attack.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>

static int by_name(const char *directory) {
    char name[4096];
    snprintf(name, sizeof name, "%s/file", directory);
    int fd = open(name, O_RDWR);
    return fd < 0 || write(fd, "u", 1) != 1 ? 3 : 0;
}

static void read_by_links(void) {
    must_fail("open to read", open("file", O_RDONLY));
    must_fail("open to read by two links", open("second", O_RDONLY));
    must_fail("open to read behind a link", open("directory/file", O_RDONLY));
}

static void write_by_links(void) {
    struct { unsigned long long flags, mode, resolve; } how = {O_WRONLY, 0, 0};
    struct timespec times[2] = {{1, 0}, {1, 0}};
    must_fail("open", open("file", O_WRONLY));
    must_fail("open and cut", open("file", O_WRONLY | O_TRUNC));
    must_fail("open or make", open("file", O_WRONLY | O_CREAT, 0600));
    must_fail("open by two links", open("second", O_RDWR));
    must_fail("open behind a link", open("directory/file", O_WRONLY));
    must_fail("openat2", syscall(SYS_openat2, AT_FDCWD, "file", &how, sizeof how));
    must_fail("make what is not there", open("dangling", O_WRONLY | O_CREAT, 0600));
    must_fail("make behind a link", open("directory/new", O_WRONLY | O_CREAT, 0600));
    must_fail("make without a name", open("directory", O_WRONLY | O_TMPFILE, 0600));
    must_fail("truncate", truncate("file", 0));
    must_fail("mkdir", mkdir("directory/made", 0700));
    must_fail("symlink", symlink("x", "directory/made"));
    must_fail("mknod", mknod("directory/made", S_IFREG | 0600, 0));
    must_fail("link", link("own", "directory/made"));
    must_fail("rename", rename("own", "directory/file"));
    must_fail("rename away", rename("directory/file", "stolen"));
    must_fail("unlink", unlink("directory/file"));
    must_fail("rmdir", rmdir("directory/empty"));
    must_fail("chmod", chmod("file", 0777));
    must_fail("utimensat", utimensat(AT_FDCWD, "file", times, 0));
    must_fail("setxattr", setxattr("file", "user.x", "x", 1, 0));
}

static void write_by_brought_links(void) {
    must_fail("open by a link that was there", open("file", O_WRONLY));
    must_fail("open by one in a directory of its own", open("brought/file", O_WRONLY));
    must_fail("open behind a link that was there", open("directory/file", O_WRONLY));
}

/* What is remembered of a path since it was looked at leads nowhere that the path does not. */
static int read_what_was_looked_at(const char *directory) {
    char name[4096], here[2048];
    struct stat status;
    snprintf(name, sizeof name, "%s/file", directory);
    if (open(name, O_RDONLY) < 0 || !getcwd(here, sizeof here)) return 3;
    for (int n = 0; n < 2; n++) {
        snprintf(name, sizeof name, "%s/%s", here, n ? "directory/file" : "file");
        must_fail("open by a link that was there", open(name, O_RDONLY));
        if (stat(name, &status)) return 3;
        must_fail("open by a link that was looked at", open(name, O_RDONLY));
    }
    return 0;
}

static int reaches(const char *name) {
    struct sockaddr_un file = {.sun_family = AF_UNIX};
    snprintf(file.sun_path, sizeof file.sun_path, "%s", name);
    return connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&file, sizeof file);
}

/* By its name, and by its caller's links. */
static int connect_by_links(const char *directory) {
    char name[4096];
    snprintf(name, sizeof name, "%s/service", directory);
    if (reaches(name) != 0) {
        perror("not even by its name");
        return 3;
    }
    must_fail("connect by a link", reaches("by_link"));
    must_fail("connect behind a link", reaches("directory/service"));
    return 0;
}

static void write_by_a_reserved_name(const char *directory) {
    char name[4096];
    snprintf(name, sizeof name, "%s.json", directory);
    must_fail("open by a name that its caller may make", open(name, O_WRONLY));
    must_fail("truncate by a name that its caller may make", truncate(name, 0));
}

static void connect_to_caller(int port) {
    struct sockaddr_in ip = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    must_fail("connect to a port", connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&ip, sizeof ip));
    must_fail("connect to a socket", reaches("served"));
    ip.sin_addr.s_addr = htonl(INADDR_ANY);
    must_fail("connect to no address", connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&ip, sizeof ip));
}

int main(int argc, char **argv) {
    if (argc < 3) return by_name(argv[1]);
    if (argc > 3) {
        connect_to_caller(atoi(argv[3]));
        return 0;
    }
    if (!strcmp(argv[2], "looked")) return read_what_was_looked_at(argv[1]);
    if (!strcmp(argv[2], "service")) return connect_by_links(argv[1]);
    if (!strcmp(argv[2], "reserved")) write_by_a_reserved_name(argv[1]);
    else if (!strcmp(argv[2], "read")) read_by_links();
    else if (!strcmp(argv[2], "brought")) write_by_brought_links();
    else write_by_links();
    return 0;
}
