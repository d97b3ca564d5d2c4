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
            *before = Record { count: before.count + 1, ..record };
        } else if self.first.len() < Self::FIRST && self.bytes < Self::MOST_BYTES {
            self.bytes += key.2.len() + size(&record);
            self.first.insert(key, Record { count: 1, ..record });
        } else {
            self.last.push_back((key, Record { count: 1, ..record }));
            if self.last.len() > Self::LAST {
                self.dropped += self.last.pop_front().map_or(0, |(_, record)| record.count);
            }
        }
    }

    /// In the order in which each was denied first: what comes later changes no place of these, but
    /// for the last ones of too many.
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
        let names = denials.all().iter().map(|it| it.object.clone()).collect::<String>();
        assert_eq!(names, "abc");
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
