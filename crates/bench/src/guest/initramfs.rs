//! The first file system of a guest: an archive in the format `newc` of cpio.

/// What is mode in the archive for a program, and for a file.
pub(super) const PROGRAM: u32 = 0o100_755;
pub(super) const FILE: u32 = 0o100_644;

/// An archive that grows.
#[derive(Debug, Default)]
pub(super) struct Archive(Vec<u8>);

impl Archive {
    /// Adds a file to the root directory.
    pub(super) fn add(&mut self, name: &str, mode: u32, content: &[u8]) {
        // Number, mode, user, group, links, time, length, four of devices, length of the name, sum.
        let fields = [
            self.0.len() as u32 + 1,
            mode,
            0,
            0,
            1,
            0,
            content.len() as u32,
            0,
            0,
            0,
            0,
            name.len() as u32 + 1,
            0,
        ];
        self.0.extend_from_slice(b"070701");
        for field in fields {
            self.0.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(0);
        self.pad();
        self.0.extend_from_slice(content);
        self.pad();
    }

    /// The whole archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.add("TRAILER!!!", 0, &[]);
        self.0
    }

    fn pad(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_begins_at_a_multiple_of_four_and_the_lengths_are_those_of_the_content() {
        let mut archive = Archive::default();
        archive.add("init", PROGRAM, b"12345");
        let bytes = archive.finish();
        assert!(bytes.starts_with(b"070701"));
        assert_eq!(&bytes[6 + 6 * 8..6 + 7 * 8], b"00000005", "the length of the content");
        assert_eq!(&bytes[110..115], b"init\0");
        assert_eq!(&bytes[116..124], b"12345\0\0\0");
        assert_eq!(&bytes[124..130], b"070701");
        assert_eq!(bytes.len() % 4, 0);
    }
}
