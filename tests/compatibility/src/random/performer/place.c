/* The directory of a program: what every program finds there, and how it is set back. */
#include "performer.h"
#include <dirent.h>
#include <ftw.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <sys/xattr.h>

/* What every program finds: a file that can be executed, a script of it, a directory with a file, a
 * link. */
void furnish(const char *directory) {
	if (mkdir(directory, 0755) || chdir(directory) || mkdir("w", 0755) || chdir("w")) {
		say("cannot make %s: %s\n", directory, strerror(errno));
		_exit(9);
	}
	int in = open("/bin/true", O_RDONLY), out = open("t", O_WRONLY | O_CREAT, 0755);
	while (sendfile(out, in, NULL, 1 << 20) > 0)
		;
	close(in);
	close(out);
	mkdir("d", 0755);
	out = open("d/f", O_WRONLY | O_CREAT, 0644);
	if (write(out, "content", 7) != 7)
		_exit(9);
	close(out);
	out = open("x", O_WRONLY | O_CREAT, 0755);
	if (write(out, "#!./t\n", 6) != 6)
		_exit(9);
	close(out);
	if (symlink("d", "l"))
		_exit(9);
}

/* Whose parent a process is: that of `/proc/PID/stat`, behind a name that may hold anything. */
static pid_t parent_of(const char *pid) {
	char path[64], data[512], *rest;
	snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	int fd = open(path, O_RDONLY);
	long length = fd < 0 ? -1 : read(fd, data, sizeof data - 1);
	close(fd);
	data[length > 0 ? length : 0] = 0;
	rest = strrchr(data, ')');
	return rest && strlen(rest) > 4 ? atoi(rest + 4) : -1;
}

/* Ends what a program has left running: orphans are this process's children. */
void end_children(void) {
	while (waitpid(-1, NULL, WNOHANG) >= 0) {
		DIR *processes = opendir("/proc");
		for (struct dirent *entry; processes && (entry = readdir(processes));)
			if (parent_of(entry->d_name) == getpid())
				kill(atoi(entry->d_name), SIGKILL);
		if (processes)
			closedir(processes);
		usleep(1000);
	}
}

static int removed(const char *path, const struct stat *status, int kind, struct FTW *at) {
	(void)status, (void)at;
	return kind == FTW_DP || kind == FTW_DNR ? rmdir(path) : unlink(path);
}

/* Lets a directory be searched; begins anew where this one could not be. */
static int opened(const char *path, const struct stat *status, int kind, struct FTW *at) {
	(void)status, (void)at;
	int is_open = (kind == FTW_D || kind == FTW_DNR) && !chmod(path, 0700);
	return kind == FTW_DNR && is_open ? FTW_STOP : FTW_CONTINUE;
}

/* Sets back what a program has changed around its own directory: the next one finds it as this one
 * did. */
void set_back(const char *directory) {
	static const char *const attributes[] = {"user.a", "user.b"};
	chmod(directory, 0755);
	for (int n = 0; n < 2; n++)
		removexattr(directory, attributes[n]);
	DIR *around = opendir(directory);
	for (struct dirent *entry; around && (entry = readdir(around));) {
		char path[4096];
		if (!entry->d_name[strspn(entry->d_name, "0123456789")] || !strcmp(entry->d_name, ".") ||
		    !strcmp(entry->d_name, ".."))
			continue;
		snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
		while (nftw(path, opened, 16, FTW_PHYS | FTW_ACTIONRETVAL) == FTW_STOP)
			;
		nftw(path, removed, 16, FTW_DEPTH | FTW_PHYS);
	}
	if (around)
		closedir(around);
}
