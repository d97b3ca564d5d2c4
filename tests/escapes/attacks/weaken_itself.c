// Confines itself by Landlock, as a program does before it handles what it does not trust, and then acts against it.
#include "attack.h"
#include <linux/landlock.h>
#include <sys/prctl.h>

int main(void) {
    struct landlock_ruleset_attr all = {.handled_access_fs = (1 << 13) - 1};
    mkdir("kept", 0700);
    int rules = syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
    // It is told so, and does without, or does not go on.
    if (rules < 0) return 0;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_landlock_restrict_self, rules, 0) != 0) return 0;
    must_fail("making a directory", mkdir("made", 0700));
    must_fail("removing a directory", rmdir("kept"));
    must_fail("renaming a directory", rename("kept", "renamed"));
    return 0;
}
