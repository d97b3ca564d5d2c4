/* Renames the parent of a hidden file in a workspace that is the whole home. */
#include "attack.h"

int main(void) {
    must_not_read("read", open("config/token", O_RDONLY));
    rename("config", "moved");
    must_not_read("read under another name", open("moved/token", O_RDONLY));
    must_fail("link", link("moved/token", "linked"));
    rename("moved", "config");
    must_fail("rename", rename("config/token", "taken"));
    return 0;
}
