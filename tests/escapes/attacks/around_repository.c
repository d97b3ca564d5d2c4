// Makes a Git repository of the working directory, which may change under which rule a `config` and
// `hooks` in it fall.
// The first two arguments are secrets, the others are not to be changed.
#include "attack.h"

int main(int argc, char **argv) {
    mkdir("objects", 0755);
    mkdir("refs", 0755);
    for (int i = 1; i < argc; i++) {
        if (i < 3) {
            must_not_read(argv[i], open(argv[i], O_RDONLY));
            continue;
        }
        must_fail(argv[i], open(argv[i], O_WRONLY | O_APPEND));
        must_fail(argv[i], truncate(argv[i], 0));
        must_fail(argv[i], rename(argv[i], "moved"));
        must_fail(argv[i], link(argv[i], "linked"));
        must_fail(argv[i], chmod(argv[i], 0777));
        must_fail(argv[i], unlink(argv[i]));
        char beside[4096];
        snprintf(beside, sizeof beside, "%s.new", argv[i]);
        // Beside `.git/config` everything may be made.
        if (strstr(argv[i], "kept") != NULL) must_fail(beside, open(beside, O_WRONLY | O_CREAT, 0644));
    }
    rmdir("refs");
    rmdir("objects");
    return 0;
}
