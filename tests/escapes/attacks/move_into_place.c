// Brings what programs outside execute to its name by a move, an exchange, a second name, or after
// something else of that name. Ends with 0; what the record of the run says is looked at from
// outside.
#include "attack.h"

static void make(const char *path) {
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0755);
    if (fd < 0 || write(fd, "evil\n", 5) != 5) perror(path);
    close(fd);
}

static void must(const char *what, long answer) {
    if (answer == 0) return;
    perror(what);
    _exit(1);
}

int main(void) {
    mkdir("a", 0755);
    make("a/extensions.xml");
    must("a directory", rename("a", ".mvn"));
    mkdir("b", 0755);
    mkdir("b/bin", 0755);
    make("b/bin/activate");
    must("a directory above", rename("b", ".venv"));
    mkdir("c", 0755);
    mkdir("c/d", 0755);
    mkdir("c/d/wrapper", 0755);
    make("c/d/wrapper/gradle-wrapper.jar");
    must("a directory above", rename("c/d", "c/gradle"));
    must("a directory above that", rename("c", "e"));
    make("other");
    must("an exchange", renameat2(AT_FDCWD, "Makefile", AT_FDCWD, "other", RENAME_EXCHANGE));
    mkdir("f", 0755);
    make("f/package.json");
    must("an exchange of directories", renameat2(AT_FDCWD, "sub", AT_FDCWD, "f", RENAME_EXCHANGE));
    must("a second name", link("setup.py", "second"));
    make("second");
    must("a link", symlink("/elsewhere", "Dockerfile"));
    must("a link", unlink("Dockerfile"));
    make("Dockerfile");
    must("cutting", truncate("CMakeLists.txt", 2));
    return 0;
}
