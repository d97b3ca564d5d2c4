//! What a device has made: it goes on without any descriptor of the device.

use super::held::{Comparison, USES};
use file_manager::class_of;
use flask::{FileKind, Sid};
use rustix::fs::FileType;
use std::path::Path;

/// How the links of such descriptors begin, and the device: virtual machines and their processors.
const MADE: [(&[u8], &str); 1] = [(b"anon_inode:kvm-", "/dev/kvm")];

impl Comparison<'_> {
    /// Whether a descriptor with this link is of something that a device has made which `ssid` may
    /// not use any more.
    pub(super) fn is_made_by_lost(&self, ssid: Option<Sid>, link: &[u8]) -> bool {
        let made = MADE.iter().filter(|(begin, _)| link.starts_with(begin));
        made.map(|(_, device)| Path::new(device)).any(|device| self.is_device_lost(ssid, device))
    }

    /// By its place: which descriptor it was made by, nobody tells.
    fn is_device_lost(&self, ssid: Option<Sid>, device: &Path) -> bool {
        let (labels, kind) = (&self.gate.state.labels, FileType::CharacterDevice);
        let before = labels.of_path_before(device, FileKind::Char);
        let now = labels.of_path(device, FileKind::Char);
        let lost = self.lost(ssid, (before, now), class_of(kind))
            | self.denied_by_name(ssid, kind, || Ok(device.to_owned()));
        !(lost & USES).is_empty()
    }
}
