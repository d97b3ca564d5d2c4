//! Requests of ioctl(2) that come to the monitor; all others run.

/// Typing into the terminal, or putting commands on its keys, would run commands outside, as its
/// owner. The others change a file through a descriptor that is open only for reading.
pub(super) const REFUSED_IOCTLS: &[u32] = &[
    libc::TIOCSTI as u32,
    // The terminal would stay closed to its owner when the run has ended.
    libc::TIOCEXCL as u32,
    // Line disciplines are loaded into the kernel, and have had many faults.
    libc::TIOCSETD as u32,
    0x541c,      // TIOCLINUX
    0x4b3a,      // KDSETMODE: this and the next would outlive the run on its owner's console
    0x4b45,      // KDSKBMODE
    0x4b51,      // KDSKBMUTE
    0x4b63,      // KDSKBMETA
    0x4b4b,      // KDSKBDIACR
    0x4bfb,      // KDSKBDIACRUC
    0x4b4d,      // KDSETKEYCODE
    0x5602,      // VT_SETMODE
    0x5606,      // VT_ACTIVATE
    0x560f,      // VT_SETACTIVATE: both at once
    0x4b47,      // KDSKBENT
    0x4b49,      // KDSKBSENT
    0x401c_5820, // FS_IOC_FSSETXATTR
    0x4080_6685, // FS_IOC_ENABLE_VERITY
    0x4008_7602, // FS_IOC_SETVERSION
    0x4004_6604, // EXT4_IOC_SETVERSION, with the long of x86-64 below
    0x4008_6604,
    0x6609,      // EXT4_IOC_MIGRATE
    0x4004_7211, // FAT_IOCTL_SET_ATTRIBUTES
    0x4004_f50d, // F2FS_IOC_SET_PIN_FILE
    0x800c_6613, // FS_IOC_SET_ENCRYPTION_POLICY
    0x5000_9401, // BTRFS_IOC_SNAP_CREATE: all of a subvolume under other names, as other inodes
    0x5000_9417, // BTRFS_IOC_SNAP_CREATE_V2
    0x5000_940e, // BTRFS_IOC_SUBVOL_CREATE
    0x5000_9418, // BTRFS_IOC_SUBVOL_CREATE_V2
    0x5000_940f, // BTRFS_IOC_SNAP_DESTROY
    0x5000_943f, // BTRFS_IOC_SNAP_DESTROY_V2
    0x4008_941a, // BTRFS_IOC_SUBVOL_SETFLAGS
    0xc0c8_9425, // BTRFS_IOC_SET_RECEIVED_SUBVOL
    0xc0c0_9425, // the same, as programs of 32 bits have it: no kernel asks who calls
    0x4020_bc10, // BCH_IOCTL_SUBVOLUME_CREATE: names stand in memory, also of what to copy
    0x4020_bc11, // BCH_IOCTL_SUBVOLUME_DESTROY
    0x4018_6f04, // OCFS2_IOC_REFLINK: copies files by name, and Landlock is not asked
    0xc050_6617, // FS_IOC_ADD_ENCRYPTION_KEY
    0xc040_6618, // FS_IOC_REMOVE_ENCRYPTION_KEY: its owner's encrypted directories would be locked
    0xaa00,      // USERFAULTFD_IOC_NEW: what userfaultfd(2) makes
];

/// `FS_IOC_SETFLAGS` of `linux/fs.h`, with the int and with the long of x86-64: what chattr(1)
/// sets, through a descriptor that is open only for reading.
pub(super) const SET_FLAGS: &[u32] = &[0x4004_6602, 0x4008_6602];

/// Who is in the foreground of a terminal: what tcsetpgrp(3) sets.
pub(super) const FOREGROUND: &[u32] = &[libc::TIOCSPGRP as u32];

/// `FIOSETOWN` and `SIOCSPGRP` of `asm-generic/sockios.h`.
pub const SET_OWNER: [u32; 2] = [0x8901, 0x8902];

/// Who gets the signals of a file, and that there are some: what fcntl(2) does by `F_SETOWN` and
/// `O_ASYNC`.
pub(super) const SIGNALS: &[u32] = &[libc::FIOASYNC as u32, SET_OWNER[0], SET_OWNER[1]];
