/* Signals a process group outside. Argument: its number. */
#include "attack.h"

int main(int argc, char **argv) {
    must_fail("kill", kill(-atoi(argv[1]), SIGKILL));
    return argc != 2;
}
