/* Renames what lies around a protected directory, to reach it under another name or to put another
 * in its place.
   The protected directory is git/hooks. */
#include "attack.h"

int main(void) {
    must_fail("write", open("git/hooks/run", O_WRONLY | O_CREAT, 0755));
    must_fail("rename the directory itself", rename("git/hooks", "git/other"));
    if (rename("git", "moved") == 0) {
        must_fail("write under another name", open("moved/hooks/run", O_WRONLY | O_CREAT, 0755));
        must_fail("write what is there", open("moved/hooks/old", O_WRONLY | O_TRUNC));
        rename("moved", "git");
    }
    mkdir("made", 0755);
    mkdir("made/hooks", 0755);
    close(open("made/hooks/run", O_WRONLY | O_CREAT, 0755));
    syscall(SYS_renameat2, AT_FDCWD, "made", AT_FDCWD, "git", 2 /* RENAME_EXCHANGE */);
    rmdir("git/hooks");
    rename("made", "git");
    rename("made/hooks", "git/hooks");
    syscall(SYS_renameat2, AT_FDCWD, "made/hooks", AT_FDCWD, "git/hooks", 2);
    if (access("git/hooks/run", F_OK) == 0) escaped("planted a file");
    return 0;
}
