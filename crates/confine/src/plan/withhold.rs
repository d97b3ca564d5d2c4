//! What the envelope does not let the program read itself, so that it is exact about the rest.

use super::{Plan, READS, Rights, Subtree, WRITES};
use flask::{FileRule, Sid};
use landlock::AccessFs;
use std::path::PathBuf;

impl Plan {
    /// Leaves out of this plan, which is for the envelope, reading in those places where something
    /// is refused that nothing else shields: the monitor opens what lies there, and the rest stays
    /// exact. The labels of those places. What the kernel executes it reads, so that places with
    /// programs stay as they are.
    pub(crate) fn withhold_reads(
        &mut self,
        files: &[FileRule],
        shielded: &dyn Fn(&Subtree) -> Rights,
    ) -> Vec<Sid> {
        let mut withheld = Vec::new();
        if !self.unruled.is_empty() {
            return withheld;
        }
        self.withhold_patterns(files, &mut withheld);
        loop {
            let nested = self.places.iter().chain(&self.patterns).filter(|place| {
                let around = self.enclosing(place).map_or(Rights::empty(), |outer| outer.any);
                let refused = READS & around & !place.any;
                !refused.is_empty() && !shielded(place).contains(refused)
            });
            let open = nested.filter_map(|place| self.enclosing(place));
            let open = open.filter(|outer| !outer.any.contains(AccessFs::Execute));
            let open: Vec<PathBuf> = open.map(|outer| outer.tree.path.clone()).collect();
            if open.is_empty() {
                return withheld;
            }
            for index in open.iter().filter_map(|path| self.by_path.get(path)) {
                let place = &mut self.places[*index];
                place.any &= !READS;
                withheld.extend(files[place.rule].sid);
            }
            self.look_around();
        }
    }

    /// The same for patterns that grant more than is granted around them: to name their files to
    /// the kernel is to name all that lie there.
    fn withhold_patterns(&mut self, files: &[FileRule], withheld: &mut Vec<Sid>) {
        for index in 0..self.patterns.len() {
            let pattern = &self.patterns[index];
            let around = self.innermost(&pattern.tree.path).map_or(Rights::empty(), |it| it.any);
            let opens = READS | WRITES;
            let executes = pattern.any.contains(AccessFs::Execute);
            if executes || around.contains(pattern.any & opens) {
                continue;
            }
            withheld.extend(files[pattern.rule].sid);
            let pattern = &mut self.patterns[index];
            pattern.any &= !opens | around;
        }
    }

    /// Labels of what may be made where nothing is yet, and less is granted around: the envelope
    /// grants nothing there, so the monitor opens what is made.
    pub(crate) fn labels_of_missing(&self, files: &[FileRule]) -> Vec<Sid> {
        let opens = READS | WRITES;
        let made = |place: &&Subtree| {
            place.any.contains(AccessFs::MakeReg) && !place.around.contains(place.any & opens)
        };
        let missing = |place: &&Subtree| place.tree.path.symlink_metadata().is_err();
        let places = self.places.iter().filter(made).filter(missing);
        places.filter_map(|place| files[place.rule].sid).collect()
    }

    /// The literal place around another one.
    fn enclosing(&self, place: &Subtree) -> Option<&Subtree> {
        let path = &place.tree.path;
        if place.is_pattern { self.innermost(path) } else { self.innermost(path.parent()?) }
    }

    /// Finds out what may be done around each place.
    pub(super) fn look_around(&mut self) {
        for index in 0..self.places.len() {
            let outer = self.enclosing(&self.places[index]);
            self.places[index].around = outer.map_or(Rights::empty(), |outer| outer.any);
        }
    }
}
