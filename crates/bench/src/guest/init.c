/*
 * The first process of a guest: says what the kernel is, loads the policy if there is one, runs the
 * suite on the requests that were sent along, and turns the machine off. A line that begins with
 * "@" is for whoever reads the console.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Seconds. */
#define SETTLE 20

#define SELINUX "/sys/fs/selinux"

static long whole(const char *path, char *into, long room)
{
	long length = 0, got;
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return -1;
	while ((got = read(fd, into + length, (size_t)(room - length))) > 0)
		length += got;
	close(fd);
	return length;
}

static void show(const char *name, const char *path)
{
	char text[1024];
	long length = whole(path, text, sizeof text - 1);

	text[length < 0 ? 0 : length] = 0;
	text[strcspn(text, "\n")] = 0;
	printf("@ %s: %s\n", name, length < 0 ? "not known" : text);
}

static void load_policy(void)
{
	static char policy[32 << 20];
	long length = whole("/policy", policy, sizeof policy);
	int fd;

	if (length < 0)
		return;
	mount("selinuxfs", SELINUX, "selinuxfs", 0, 0);
	fd = open(SELINUX "/load", O_RDWR);
	if (fd < 0 || write(fd, policy, (size_t)length) != length)
		printf("@ failed: the policy could not be loaded\n");
	if (fd >= 0)
		close(fd);
	show("enforcing", SELINUX "/enforce");
	show("context", "/proc/self/attr/current");
}

static void run(void)
{
	int requests = open("/requests", O_RDONLY);

	dup2(requests, 0);
	if (chdir("/work") == 0)
		execl("/suite", "/suite", (char *)0);
	_exit(127);
}

int main(void)
{
	int console, status = 0;
	pid_t child;

	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	mkdir("/work", 0755);
	mount("proc", "/proc", "proc", 0, 0);
	mount("sysfs", "/sys", "sysfs", 0, 0);
	mount("securityfs", "/sys/kernel/security", "securityfs", 0, 0);
	mount("devtmpfs", "/dev", "devtmpfs", 0, 0);
	console = open("/dev/console", O_RDWR);
	dup2(console, 0);
	dup2(console, 1);
	dup2(console, 2);
	show("kernel", "/proc/sys/kernel/osrelease");
	show("build", "/proc/sys/kernel/version");
	show("meltdown", "/sys/devices/system/cpu/vulnerabilities/meltdown");
	show("spectre_v2", "/sys/devices/system/cpu/vulnerabilities/spectre_v2");
	show("modules", "/sys/kernel/security/lsm");
	load_policy();
	fflush(stdout);
	/* What a kernel still does by itself after its start is over by then; time in which nothing runs
	 * costs nothing. */
	sleep(SETTLE);
	child = fork();
	if (child == 0)
		run();
	waitpid(child, &status, 0);
	printf("@ end: %d\n", status);
	fflush(stdout);
	reboot(RB_POWER_OFF);
	return 0;
}
