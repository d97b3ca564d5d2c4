//! The denials of a run: each kind once, and so many that they fill no memory.

use crate::record::Record;
use flask::{AccessVector, Question};
use indexmap::IndexMap;
use std::collections::VecDeque;

/// What was denied, each kind once: the first kinds, and, when there are too many, the last ones.
#[derive(Default)]
pub(crate) struct Denials {
    first: IndexMap<Key, Record>,
    /// What the first ones take, about.
    bytes: usize,
    last: VecDeque<(Key, Record)>,
    /// Denials in between.
    pub(crate) dropped: u64,
    /// Kinds so far: the next one has the number behind.
    kinds: usize,
}

impl Denials {
    /// Kinds kept from the beginning of a run, and until its end.
    const FIRST: usize = 10_000;
    const LAST: usize = 100;
    /// Beyond, the first ones are complete: objects may be named by 4 KiB each.
    const MOST_BYTES: usize = 16 << 20;

    pub(crate) fn get_mut(&mut self, key: &Key) -> Option<&mut Record> {
        let last = self.last.iter_mut().find(|(kept, _)| kept == key).map(|(_, record)| record);
        self.first.get_mut(key).or(last)
    }

    pub(crate) fn keep(&mut self, key: Key, record: Record) {
        if let Some(before) = self.get_mut(&key) {
            *before = Record { count: before.count + 1, number: before.number, ..record };
            return;
        }
        self.kinds += 1;
        let record = Record { count: 1, number: self.kinds, ..record };
        if self.first.len() < Self::FIRST && self.bytes < Self::MOST_BYTES {
            self.bytes += key.2.len() + size(&record);
            self.first.insert(key, record);
        } else {
            self.last.push_back((key, record));
            if self.last.len() > Self::LAST {
                self.dropped += self.last.pop_front().map_or(0, |(_, record)| record.count);
            }
        }
    }

    /// In the order in which each was denied first, which their numbers tell. What is dropped
    /// leaves its number to nobody, and has another if it comes again.
    pub(crate) fn all(&self) -> Vec<Record> {
        let last = self.last.iter().map(|(_, record)| record);
        self.first.values().chain(last).cloned().collect()
    }
}

/// What makes two denials the same.
pub(crate) type Key = (Question, AccessVector, String);

/// About how many bytes a record takes.
fn size(record: &Record) -> usize {
    let lists = [&record.requested, &record.missing, &record.rules];
    let lists: usize =
        lists.into_iter().flatten().map(|text| text.len() + size_of::<String>()).sum();
    let texts = [
        &record.comm,
        &record.program,
        &record.object,
        &record.scontext,
        &record.tcontext,
        &record.reason,
        &record.instead,
    ];
    size_of::<Record>() + lists + texts.into_iter().map(String::len).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flask::{Class, InitialSid, perm};

    #[test]
    fn a_flood_leaves_the_first_and_the_last_and_is_counted() {
        let sid = InitialSid::File.into();
        let question = Question { ssid: sid, tsid: sid, tclass: Class::File };
        let mut denials = Denials::default();
        let flood = Denials::FIRST + Denials::LAST + 7;
        for n in 0..flood {
            let record = Record { object: n.to_string(), time: n as f64, ..Record::default() };
            let key = (question, perm::file::READ, record.object.clone());
            denials.keep(key.clone(), record.clone());
            denials.keep(key, record);
        }
        let all = denials.all();
        assert!(all.iter().all(|record| record.count == 2));
        assert_eq!((all.len(), denials.dropped), (Denials::FIRST + Denials::LAST, 14));
        assert_eq!(all[0].object, "0");
        assert_eq!(all[all.len() - 1].object, (flood - 1).to_string());
    }

    #[test]
    fn a_denial_keeps_its_place_among_those_so_far_however_often_others_come() {
        let sid = InitialSid::File.into();
        let question = Question { ssid: sid, tsid: sid, tclass: Class::File };
        let mut denials = Denials::default();
        for name in ["a", "b", "c", "b", "c", "c"] {
            let record = Record { object: name.into(), ..Record::default() };
            denials.keep((question, perm::file::READ, name.into()), record);
        }
        let all = denials.all();
        let found: Vec<_> = all.iter().map(|it| (it.object.as_str(), it.number)).collect();
        assert_eq!(found, [("a", 1), ("b", 2), ("c", 3)]);
    }

    #[test]
    fn a_number_stands_for_one_denial_whatever_comes_later() {
        let sid = InitialSid::File.into();
        let question = Question { ssid: sid, tsid: sid, tclass: Class::File };
        let (mut denials, mut meant) = (Denials::default(), std::collections::HashMap::new());
        denials.bytes = Denials::MOST_BYTES - 1;
        for n in 0..3 * Denials::LAST {
            // One that comes again, once it was dropped, too.
            let object = if n % 150 == 7 { "again".into() } else { n.to_string() };
            let record = Record { object: object.clone(), ..Record::default() };
            denials.keep((question, perm::file::READ, object), record);
            for record in denials.all() {
                let before = meant.entry(record.number).or_insert_with(|| record.object.clone());
                assert_eq!(*before, record.object, "{}", record.number);
            }
        }
        assert_eq!(denials.all().last().map(|it| it.number), Some(3 * Denials::LAST));
    }

    #[test]
    fn a_flood_of_long_names_fills_no_memory() {
        let sid = InitialSid::File.into();
        let question = Question { ssid: sid, tsid: sid, tclass: Class::File };
        let mut denials = Denials::default();
        for n in 0..Denials::FIRST {
            let record = Record { object: format!("{n:04000}"), ..Record::default() };
            denials.keep((question, perm::file::READ, record.object.clone()), record);
        }
        let bytes: usize =
            denials.first.iter().map(|(key, record)| key.2.len() + size(record)).sum();
        assert!(bytes <= Denials::MOST_BYTES + 10_000, "{bytes}");
        assert_eq!(
            denials.first.len() + denials.last.len() + denials.dropped as usize,
            Denials::FIRST
        );
        assert!(denials.first.len() > 1_000);
    }
}
