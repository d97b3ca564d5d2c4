/* Has a path looked at that climbs out of a directory of its own, then leads that elsewhere: as
   many levels below FIXED. */
#include "attack.h"

int main(int argc, char **argv) {
    char here[2048], path[4096], target[4096];
    struct stat found;
    if (argc < 2 || !getcwd(here, sizeof here)) return 3;
    int levels = 1;
    for (const char *at = here; *at; at++) levels += *at == '/';
    int used = snprintf(path, sizeof path, "%s/own", here), led = snprintf(target, sizeof target, "%s", argv[1]);
    for (int level = 0; level < levels; level++) {
        used += snprintf(path + used, sizeof path - used, "/..");
        led += snprintf(target + led, sizeof target - led, "/d");
    }
    snprintf(path + used, sizeof path - used, "/etc/hostname");
    unlink("own");
    if (mkdir("own", 0755) || stat(path, &found) || stat(path, &found)) return 3;
    if (rmdir("own") || symlink(target, "own")) return 3;
    must_fail("looking at what is hidden", stat(path, &found));
    return 0;
}
