/* surrounded NAME COMMAND...: the command, where system calls are refused that containers refuse.
 *
 * `docker`: what Docker's default seccomp profile of 2026 refuses to a container without further
 * capabilities, as far as x86-64 has it. It allows by name and refuses the rest by EPERM, clone3 by
 * ENOSYS; here stands the rest. `scripts/docker-profile` compares it with a copy of the profile.
 * `docker-traced`: the same with `--cap-add SYS_PTRACE`.
 * `barred`: user namespaces alone, as AppArmor's restriction of Ubuntu does.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NUMBER offsetof(struct seccomp_data, nr)
#define FIRST offsetof(struct seccomp_data, args[0])
#define REFUSED(errno) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (errno))
#define ALLOWED BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define LOADED(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
/* The next instruction is for this call alone. */
#define ON(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1)

enum { NEW_NAMESPACES = 0x7e020000, NEW_USER = 0x10000000 };
/* The first call that the profile of then does not know; runc refuses those by ENOSYS. */
enum { LATER = 467 };
/* Modules, of which headers may not know. */
enum { SYS_lsm_get = 459, SYS_lsm_set = 460, SYS_lsm_list = 461 };

/* Refused whatever the arguments, but by SYS_PTRACE. */
static const int traced[] = {SYS_kcmp, SYS_pidfd_getfd, SYS_process_madvise};

/* Refused whatever the arguments. */
static const int docker[] = {
	SYS_acct, SYS_add_key, SYS_afs_syscall, SYS_bpf, SYS_clock_settime, SYS_create_module,
	SYS_delete_module, SYS_fanotify_init, SYS_finit_module, SYS_fsconfig, SYS_fsmount, SYS_fsopen, SYS_fspick,
	SYS_get_kernel_syms, SYS_get_mempolicy, SYS_getpmsg, SYS_init_module, SYS_io_uring_enter, SYS_io_uring_register,
	SYS_io_uring_setup, SYS_ioperm, SYS_iopl, SYS_lsm_get, SYS_lsm_list, SYS_lsm_set,
	SYS_kexec_file_load, SYS_kexec_load, SYS_keyctl, SYS_lookup_dcookie, SYS_mbind, SYS_migrate_pages, SYS_mount,
	SYS_mount_setattr, SYS_move_mount, SYS_move_pages, SYS_open_by_handle_at, SYS_quotactl_fd, SYS_set_mempolicy_home_node,
	SYS_nfsservctl, SYS_open_tree, SYS_perf_event_open, SYS_pivot_root,
	SYS_putpmsg, SYS_query_module, SYS_quotactl, SYS_reboot, SYS_request_key, SYS_security, SYS_set_mempolicy,
	SYS_setdomainname, SYS_sethostname, SYS_setns, SYS_settimeofday, SYS_swapoff, SYS_swapon, SYS__sysctl,
	SYS_sysfs, SYS_syslog, SYS_tuxcall, SYS_umount2, SYS_unshare, SYS_uselib, SYS_userfaultfd, SYS_ustat,
	SYS_vhangup, SYS_vserver,
};

static struct sock_filter program[512];
static unsigned short length;

static void add(struct sock_filter instruction) { program[length++] = instruction; }

/* Families of sockets, and what personality may not be asked for. */
static const unsigned families[] = {38 /* AF_ALG */, 40 /* AF_VSOCK */};
static const unsigned personalities[] = {0, 8, 0x20000, 0x20008, 0xffffffff};

/* A call with these first arguments, or with none of them. */
static void refuse_first(unsigned call, const unsigned *values, size_t count, int listed)
{
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, (unsigned char)(2 * count + 2)));
	add((struct sock_filter)LOADED(FIRST));
	for (size_t n = 0; n < count; n++) {
		add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, values[n], 0, 1));
		add(listed ? (struct sock_filter)REFUSED(EPERM) : (struct sock_filter)ALLOWED);
	}
	add(listed ? (struct sock_filter)ALLOWED : (struct sock_filter)REFUSED(EPERM));
}

/* clone with one of these flags. */
static void refuse_clone(unsigned flags)
{
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4));
	add((struct sock_filter)LOADED(FIRST));
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flags, 0, 1));
	add((struct sock_filter)REFUSED(EPERM));
	add((struct sock_filter)ALLOWED);
	add((struct sock_filter)ON(SYS_clone3));
	add((struct sock_filter)REFUSED(ENOSYS));
}

int main(int argc, char **argv)
{
	struct sock_fprog filter = {.filter = program};
	if (argc < 3)
		return 2;
	add((struct sock_filter)LOADED(NUMBER));
	if (!strncmp(argv[1], "docker", 6)) {
		for (size_t n = 0; argv[1][6] == 0 && n < sizeof traced / sizeof *traced; n++) {
			add((struct sock_filter)ON((unsigned)traced[n]));
			add((struct sock_filter)REFUSED(EPERM));
		}
		for (size_t n = 0; n < sizeof docker / sizeof *docker; n++) {
			add((struct sock_filter)ON((unsigned)docker[n]));
			add((struct sock_filter)REFUSED(EPERM));
		}
		add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, LATER, 0, 1));
		add((struct sock_filter)REFUSED(ENOSYS));
		refuse_first(SYS_socket, families, sizeof families / sizeof *families, 1);
		refuse_first(SYS_personality, personalities, sizeof personalities / sizeof *personalities, 0);
		refuse_clone(NEW_NAMESPACES);
	} else {
		refuse_clone(NEW_USER);
		add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 4));
		add((struct sock_filter)LOADED(FIRST));
		add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NEW_USER, 0, 1));
		add((struct sock_filter)REFUSED(EPERM));
		add((struct sock_filter)ALLOWED);
	}
	add((struct sock_filter)ALLOWED);
	filter.len = length;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
		perror("surrounded: cannot install a filter");
		return 2;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 2;
}
