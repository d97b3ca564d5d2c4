//! Files outside.

use super::refused::{refused, refused_under};
use crate::{
    Case, cases,
    dewar::Call,
    process::run,
    stage::{Stage, bash},
    suite::directory,
};
use std::{
    fs::Permissions,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};
use test_support::Variant;

pub(super) const CASES: &[Case] = cases![
    secrets_of_the_home_do_not_exist,
    tokens_in_a_home_below_tmp_are_not_read,
    nothing_is_written_outside_of_the_workspace,
    system_secrets_are_not_read,
    what_others_may_not_read_of_the_settings_is_read_by_name_alone,
    files_outside_keep_mode_owner_and_times,
    what_is_only_read_is_not_opened_for_neither,
    nothing_is_linked_in_or_moved_out,
    device_nodes_are_not_made,
    programs_outside_are_not_executed,
    links_in_the_workspace_lead_nowhere_outside,
    paths_that_were_granted_before_are_decided_again,
    a_name_is_decided_anew_after_a_change_of_directory,
];

fn secrets_of_the_home_do_not_exist(stage: &Stage) {
    let profile = stage.profile("extends = 'workspace'\nhiding = 'strict'");
    let (ran, record) = refused_under(
        stage,
        Some(&profile),
        "h = os.environ['HOME']
for p in ['.ssh/id_ed25519', '.aws/credentials']:
    for path in [f'{h}/{p}', f'../{p}', f'/proc/self/cwd/../{p}', f'/proc/self/root{h}/{p}', f'./../work/../{p}']:
        say(lambda: open(path).read(), path); say(lambda: os.stat(path), path); say(lambda: open(path, 'w'), path)
        say(lambda: os.open(path, os.O_PATH), path) if not os.path.lexists(path) else say(lambda: open(path), path)
say(lambda: os.listdir(h + '/.ssh'))",
    );
    record.explains("/.ssh/id_ed25519");
    record.explains("/.aws/credentials");
    let reads =
        ran.out().lines().filter(|line| line.contains(".ssh/") && line.ends_with("ENOENT")).count();
    assert!(reads > 10, "hidden files answer ENOENT:\n{}", ran.out());
    let content = std::fs::read_to_string(stage.home().join(".ssh/id_ed25519"));
    assert_eq!(content.expect("the key"), "secret key\n");
}

fn tokens_in_a_home_below_tmp_are_not_read(stage: &Stage) {
    let text = "extends = 'workspace'\nnetwork.registries = ['npm']\n";
    for place in ["/tmp", "/dev/shm"] {
        let home = directory(Path::new(place)).expect("a home");
        stage.give(home.path());
        stage.file(&home.path().join(".npmrc"), "registry=https://127.0.0.1/\ntoken\n");
        let call = Call { profile: Some(&stage.profile(text)), ..stage.call() };
        let mut command = stage.dewar(call, &bash("cat ~/.npmrc ~/../*/.npmrc; echo x >>~/.npmrc"));
        command.env("HOME", home.path());
        let ran = run(command, b"");
        assert!(!ran.out().contains("token"), "{place}: {}{}", ran.out(), ran.err());
        assert!(!ran.status.success(), "{place}: {}", ran.err());
        let kept = std::fs::read_to_string(home.path().join(".npmrc")).expect("the file");
        assert!(kept.ends_with("token\n"), "{place}: {kept}");
    }
}

fn nothing_is_written_outside_of_the_workspace(stage: &Stage) {
    let (_, record) = refused(
        stage,
        "o, h = os.environ['OUTSIDE'], os.environ['HOME']
say(lambda: open(f'{o}/file', 'a')); say(lambda: open(f'{o}/new', 'w')); say(lambda: os.truncate(f'{o}/file', 0)); say(lambda: os.unlink(f'{o}/file')); say(lambda: os.mkdir(f'{o}/d')); say(lambda: os.rmdir(o)); say(lambda: os.symlink('x', f'{o}/l')); say(lambda: os.mkfifo(f'{o}/p')); say(lambda: open(f'{h}/new', 'w')); say(lambda: open('../new', 'w')); say(lambda: os.open('..', os.O_TMPFILE | os.O_RDWR)); say(lambda: os.rename('..', '../../x') if False else os.mkdir('../d'))
say(lambda: open(f'{h}/.bashrc', 'w')); say(lambda: open('/etc/dewar-test', 'w')); say(lambda: open('/etc/passwd', 'a')); say(lambda: open('/usr/bin/true', 'r+')); say(lambda: open('/proc/sys/kernel/hostname', 'w')); say(lambda: open('/dev/mem')); say(lambda: open('/sys/power/state', 'w'))",
    );
    record.explains("/file");
    record.explains("/etc/dewar-test");
    let kept = std::fs::read_to_string(stage.outside().join("file")).expect("the file outside");
    assert_eq!(kept, "outside\n");
    assert_eq!(std::fs::read_dir(stage.outside()).expect("outside").count(), 1);
}

fn system_secrets_are_not_read(stage: &Stage) {
    let (_, record) = refused(
        stage,
        "for p in ['/etc/shadow', '/etc/gshadow', '/proc/kcore', '/etc/../etc/shadow', '/proc/self/root/etc/shadow']: say(lambda: open(p).read(), p)
say(lambda: os.listdir('/etc/ssl/private'))",
    );
    record.explains("/etc/shadow");
}

fn what_others_may_not_read_of_the_settings_is_read_by_name_alone(stage: &Stage) {
    // An ordinary user's run is kept away by the modes.
    if stage.variant != Variant::Root {
        return;
    }
    let settings = directory(Path::new("/etc")).expect("a directory for settings");
    let make = |name: &str, mode| {
        let path = settings.path().join(name);
        std::fs::write(&path, "content\n").expect("write a file");
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("set the mode");
        path.to_string_lossy().into_owned()
    };
    let (token, plain) = (make("token", 0o640), make("plain", 0o644));
    let closed = settings.path().join("closed");
    std::fs::create_dir(&closed).expect("create a directory");
    let inner = make("closed/inner", 0o644);
    std::fs::set_permissions(closed, Permissions::from_mode(0o750)).expect("set the mode");
    let script =
        format!("say(lambda: open('{token}').read()); say(lambda: open('{inner}').read())");
    refused(stage, &script).1.explains(&token);
    let named = stage.profile(&format!("extends = 'workspace'\nfiles.read = ['{token}']\n"));
    for (profile, path) in [(None, &plain), (Some(named.as_str()), &token)] {
        let ran =
            run(stage.dewar(Call { profile, ..stage.call() }, &bash(&format!("cat {path}"))), b"");
        assert_eq!(ran.out(), "content\n", "{path}: {}", ran.err());
    }
}

fn files_outside_keep_mode_owner_and_times(stage: &Stage) {
    let before = std::fs::metadata(stage.outside().join("file")).expect("the file outside");
    let (_, record) = refused(
        stage,
        "f = os.environ['OUTSIDE'] + '/file'
say(lambda: os.chmod(f, 0o777)); say(lambda: os.chown(f, os.getuid(), os.getgid())); say(lambda: os.utime(f, (1, 1))); say(lambda: os.utime(f)); say(lambda: os.setxattr(f, 'user.x', b'y')); say(lambda: os.removexattr(f, 'user.x')); say(lambda: os.chmod(os.environ['OUTSIDE'], 0o777)); say(lambda: os.chmod('..', 0o777)); say(lambda: os.chmod('/etc', 0o777))
fd = os.open('/etc/passwd', 0); say(lambda: os.fchmod(fd, 0o777)); say(lambda: os.fchown(fd, os.getuid(), -1)); say(lambda: os.utime(fd, (1, 1)))",
    );
    record.explains("/file");
    // Who does not own it would not be let outside either: that is no denial.
    if before.uid() == 0 {
        record.explains("/etc/passwd");
    }
    let after = std::fs::metadata(stage.outside().join("file")).expect("the file outside");
    assert_eq!((before.mode(), before.ctime_nsec()), (after.mode(), after.ctime_nsec()));
}

/// Access mode 3 of open(2), for ioctl(2): it takes both permissions.
fn what_is_only_read_is_not_opened_for_neither(stage: &Stage) {
    stage.file(&stage.work().join("only-read"), "content\n");
    for mode in ["all", "fast"] {
        let text = format!(
            "extends = 'workspace'\nmode = '{mode}'\nfiles.readonly = ['${{workspace}}/only-read']\n"
        );
        let profile = stage.profile(&text);
        let program = "open('only-read').read(); open('own', 'w').close(); os.close(os.open('own', 3))
say(lambda: os.open('only-read', os.O_RDWR), 'both'); say(lambda: os.open('only-read', 3), 'neither')";
        let (_, record) = refused_under(stage, Some(&profile), program);
        record.explains("/only-read");
    }
}

fn nothing_is_linked_in_or_moved_out(stage: &Stage) {
    let (_, record) = refused(
        stage,
        "o = os.environ['OUTSIDE']; open('mine', 'w').close(); os.mkdir('dir')
say(lambda: os.link(f'{o}/file', 'stolen')); say(lambda: os.link('/etc/passwd', 'stolen')); say(lambda: os.rename(f'{o}/file', 'stolen')); say(lambda: os.rename('mine', f'{o}/out')); say(lambda: os.rename('mine', '../out')); say(lambda: os.rename('dir', '../out')); say(lambda: os.link('mine', '../out')); say(lambda: os.rename('mine', f'{o}/file')); say(lambda: os.link(os.environ['HOME'] + '/.ssh/id_ed25519', 'key')); say(lambda: os.link('mine', f'{o}/out'))
fd = os.open('/etc/passwd', os.O_PATH); say(lambda: os.link(f'/proc/self/fd/{fd}', 'stolen', src_dir_fd=0, follow_symlinks=True))",
    );
    record.explains("/file");
    assert!(stage.work().join("mine").exists() && stage.work().join("dir").exists());
    assert!(!stage.work().join("stolen").exists() && !stage.work().join("key").exists());
    assert!(!stage.home().join("out").exists() && !stage.outside().join("out").exists());
}

fn device_nodes_are_not_made(stage: &Stage) {
    refused(
        stage,
        "for mode in [0o20666, 0o60666]:
    for path in ['node', '/tmp/node']:
        for device in [(1, 3), (1, 5), (8, 0), (254, 0)]: say(lambda: os.mknod(path, mode, os.makedev(*device)))",
    );
    assert!(!stage.work().join("node").exists());
}

fn programs_outside_are_not_executed(stage: &Stage) {
    stage.prepare("cp /bin/true $OUTSIDE/program; printf '#!/bin/sh\\ntouch ran' > ../script; chmod 755 ../script; cp /bin/true ../program");
    let (_, record) = refused(
        stage,
        "for p in [os.environ['OUTSIDE'] + '/program', '../program', '../script', '/etc/passwd', '/proc/self/cwd/../program']: say(lambda: os.execv(p, ['x']), p)
os.symlink('../program', 'link'); say(lambda: os.execv('link', ['x']))",
    );
    record.explains("/program");
    assert!(!stage.work().join("ran").exists());
}

fn links_in_the_workspace_lead_nowhere_outside(stage: &Stage) {
    stage.prepare("touch ../.ssh/known; ln -s $OUTSIDE/file out; ln -s $HOME/.ssh/id_ed25519 key; ln -s $OUTSIDE dir; ln -s /etc/shadow shadow; ln -s / root; ln -s /proc/self/cwd/../.ssh up; ln -s key chain; ln -s ../.ssh ssh");
    let (_, record) = refused(
        stage,
        "for p in ['out', 'key', 'dir/file', 'shadow', 'root/etc/shadow', 'up/id_ed25519', 'root' + os.environ['HOME'] + '/.aws/credentials']:
    say(lambda: open(p).read(), p); say(lambda: open(p, 'w'), p); say(lambda: os.chmod(p, 0o777), p); say(lambda: os.truncate(p, 0), p)
say(lambda: open('dir/new', 'w')); say(lambda: os.mkdir('dir/new')); say(lambda: open('chain')); say(lambda: open('ssh/known')); say(lambda: os.unlink('dir/file')); say(lambda: os.rename('out', 'dir/new'))",
    );
    record.explains("/file");
    record.explains("/etc/shadow");
    record.explains("/.ssh/id_ed25519");
    record.explains("/.ssh/known");
}

/// What a path led to once says nothing of what it leads to now.
fn paths_that_were_granted_before_are_decided_again(stage: &Stage) {
    let (_, record) = refused(
        stage,
        "w = os.getcwd(); granted = 0
for target in ['/etc/passwd', '/etc/shadow', '/etc/group', '/etc/shadow']:
    os.symlink(target, 'next'); os.rename('next', 'link')
    for path in [f'{w}/link', f'{w}/../work/link', '/etc/..' + w + '/link'] * 3:
        if 'shadow' in target: say(lambda: open(path), path)
        else: open(path).close(); granted += 1
assert granted == 18
for file in ['/etc/passwd', '/etc/group']:
    fd = os.open(file, 0); assert open(f'/dev/fd/{fd}').read() == open(file).read(); os.close(fd)",
    );
    record.explains("/etc/shadow");
}

/// Also when the directory before held such a name, which was granted, and whoever changes it.
fn a_name_is_decided_anew_after_a_change_of_directory(stage: &Stage) {
    let (ran, record) = refused(
        stage,
        "import threading
open('file', 'w').write('mine'); os.mkdir('sub'); open('sub/file', 'w').write('mine')
for i in range(9): open('file').close()
os.chdir(os.environ['OUTSIDE']); say(lambda: open('file'), 'after chdir')
os.chdir(os.environ['HOME'] + '/work/sub')
for i in range(9): open('file').close()
os.fchdir(os.open(os.environ['OUTSIDE'], os.O_PATH)); say(lambda: open('file'), 'after fchdir')
os.chdir(os.environ['HOME'] + '/work')
for i in range(9): open('file').close()
t = threading.Thread(target=os.chdir, args=(os.environ['OUTSIDE'],)); t.start(); t.join(); say(lambda: open('file'), 'after another thread')",
    );
    let denials = record.denials_of("/file");
    assert_eq!(denials.len(), 1, "{}", ran.out());
    assert_eq!(denials[0].count, 3, "{}", ran.out());
}
