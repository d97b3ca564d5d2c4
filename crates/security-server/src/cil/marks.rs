//! Line marks: what a compiler from another language writes into CIL so that messages can point
//! into its source.
//!
//! `;;* lms 12 web.te` says that the next line is line 12 of `web.te`, and the lines after it the
//! ones after that; `;;* lmx 12 web.te` says that all lines up to the end are line 12; `;;* lme`
//! ends either. Lines are counted as in libsepol's `cil_parser.c`.

/// A line of the source that CIL was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin<'a> {
    pub(super) file: &'a str,
    pub(super) line: u32,
}

/// Where the lines of a text come from.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// Sections that are open, outer ones first.
    open: Vec<Section>,
    /// Newlines that count, up to the start of the last segment.
    counted: u32,
    segments: Vec<Segment>,
}

#[derive(Clone, Debug)]
struct Section {
    file: Box<str>,
    line: u32,
    counted: u32,
    expanded: bool,
}

/// Lines between two marks.
#[derive(Debug)]
struct Segment {
    first_line: u32,
    /// File and number of its first line, and whether all lines have that number.
    origin: Option<(Box<str>, u32, bool)>,
}

/// Marks may be nested as deep as in libsepol.
const MAX_DEPTH: usize = 64;

impl Marks {
    /// Reads the mark on a line: what follows `;;*`. `None` when it makes no sense.
    pub(super) fn read(&mut self, line: u32, mark: &str) -> Option<()> {
        let mut words = mark.split_ascii_whitespace();
        let keyword = words.next()?;
        let newlines = self.segments.last().map_or(0, |segment| line - segment.first_line);
        self.counted += if self.is_expanded() { 0 } else { newlines };
        if keyword == "lme" {
            let closed = self.open.pop()?;
            match (self.is_expanded(), closed.expanded) {
                (true, _) => self.counted = closed.counted,
                (false, inner) => self.counted += 1 + u32::from(inner),
            }
        } else {
            let expanded = match keyword {
                "lms" => false,
                "lmx" => true,
                _ => return None,
            };
            let number = words.next()?.parse().ok()?;
            let file = words.by_ref().collect::<Vec<_>>().join(" ");
            let file = file.trim_matches('"');
            if file.is_empty() || self.open.len() >= MAX_DEPTH {
                return None;
            }
            let file = crate::spelling::printable(file).into();
            self.open.push(Section { file, line: number, counted: self.counted, expanded });
            self.counted += u32::from(!expanded);
        }
        let origin = self.open.last().map(|section| {
            let passed = (self.counted - section.counted).saturating_sub(1);
            let number = section.line.saturating_add(if section.expanded { 0 } else { passed });
            (section.file.clone(), number, section.expanded)
        });
        self.segments.push(Segment { first_line: line + 1, origin });
        words.next().is_none().then_some(())
    }

    fn is_expanded(&self) -> bool {
        self.open.last().is_some_and(|section| section.expanded)
    }

    /// Where a line comes from; `None` when no mark says so.
    pub(super) fn origin(&self, line: u32) -> Option<Origin<'_>> {
        let after = self.segments.partition_point(|segment| segment.first_line <= line);
        let segment = self.segments.get(after.checked_sub(1)?)?;
        let (file, number, expanded) = segment.origin.as_ref()?;
        let passed = if *expanded { 0 } else { line - segment.first_line };
        Some(Origin { file, line: number.saturating_add(passed) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_on_and_expanded_ones_once() {
        let text = [
            "(a)",
            ";;* lms 10 x.te",
            "(b)",
            "(c)",
            ";;* lmx 12 x.te",
            "(d)",
            "(e)",
            ";;* lme",
            "(f)",
            ";;* lms 1 \"y z.te\"",
            "(g)",
            ";;* lme",
            "(h)",
            ";;* lme",
            "(i)",
        ];
        let mut marks = Marks::default();
        for (line, text) in (1..).zip(text) {
            if let Some(mark) = text.strip_prefix(";;*") {
                marks.read(line, mark).expect("a mark");
            }
        }
        let at = |wanted: &str| {
            let line = (1..).zip(text).find(|(_, text)| *text == wanted).unwrap().0;
            marks.origin(line).map(|origin| (origin.file, origin.line))
        };
        assert_eq!(at("(a)"), None);
        assert_eq!(at("(b)"), Some(("x.te", 10)));
        assert_eq!(at("(c)"), Some(("x.te", 11)));
        assert_eq!(at("(d)"), Some(("x.te", 12)));
        assert_eq!(at("(e)"), Some(("x.te", 12)));
        assert_eq!(at("(f)"), Some(("x.te", 14)));
        assert_eq!(at("(g)"), Some(("y z.te", 1)));
        assert_eq!(at("(h)"), Some(("x.te", 18)));
        assert_eq!(at("(i)"), None);
    }

    #[test]
    fn marks_that_make_no_sense_are_refused() {
        for mark in ["", " lms", " lms x y", " lme", " lmz 1 a", " lms 1"] {
            assert_eq!(Marks::default().read(1, mark), None, "{mark}");
        }
        let mut deep = Marks::default();
        assert!((1..=64).all(|line| deep.read(line, " lms 1 a").is_some()));
        assert_eq!(deep.read(65, " lms 1 a"), None);
    }
}
