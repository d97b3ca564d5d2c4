// replaced FILE: looks at FILE (O_PATH) whenever it is another, while somebody outside replaces it,
// until there is a file `over`; and reads what was replaced by its descriptor.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST 64

int main(int argc, char **argv) {
    int held[MOST], count = 0, gone = 0, over = 0;
    struct stat last = { 0 }, now;
    while (!over) {
        over = access("over", F_OK) == 0;
        int fd = open(argv[1], O_PATH | O_NOFOLLOW);
        if (fd >= 0 && fstat(fd, &now) == 0 && count < MOST
            && (count == 0 || now.st_ino != last.st_ino || now.st_dev != last.st_dev)) {
            held[count++] = fd;
            last = now;
        } else if (fd >= 0) {
            close(fd);
        }
        usleep(10000);
    }
    for (int i = 0; i < count; i++) {
        char path[64], text[64] = "";
        if (fstat(held[i], &now) != 0 || now.st_nlink > 0)
            continue;
        gone++;
        snprintf(path, sizeof path, "/proc/self/fd/%d", held[i]);
        int fd = open(path, O_RDONLY);
        if (fd >= 0 && read(fd, text, sizeof text - 1) > 0 && strstr(text, "secret")) {
            printf("read what was replaced: %s\n", text);
            return 42;
        }
    }
    printf("%d were replaced\n", gone);
    return 0;
}
