/* Changes files that a run depends on. Arguments: the files. */
#include "attack.h"

int main(int argc, char **argv) {
    for (int n = 1; n < argc; n++) {
        must_fail("open to write", open(argv[n], O_WRONLY));
        must_fail("open to append", open(argv[n], O_WRONLY | O_APPEND));
        must_fail("open to make", open(argv[n], O_RDWR | O_CREAT | O_TRUNC, 0600));
        must_fail("truncate", truncate(argv[n], 0));
        must_fail("unlink", unlink(argv[n]));
        must_fail("rename", rename(argv[n], "away"));
        must_fail("chmod", chmod(argv[n], 0777));
        if (symlink("other", "over")) return 3;
        must_fail("rename over it", rename("over", argv[n]));
        unlink("over");
    }
    return argc < 2;
}
