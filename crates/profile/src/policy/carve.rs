//! Types for what amendments tell apart: the files of a pattern are cut where an amendment takes
//! some of them.
//!
//! The rule with the longest literal stem labels a file, so a pattern that is taken needs a type of
//! its own in every place where another would label its files: a node for what the two have in
//! common.

use super::files::Node;
use super::writer::Writer;
use crate::amended::Amended;
use crate::amendment::{Clause, ClauseObject};
use crate::error::Problem;
use crate::pattern::{Entangled, Pattern};

/// The most types that amendments may add.
const MOST_NODES: usize = 2_000;

/// A set of files that no clause tells apart.
struct Piece {
    pattern: Pattern,
    /// The node of the profile, by index, whose rights its files have without amendments.
    base: Option<usize>,
    /// For each mask, whether all its files are in it.
    inside: Vec<bool>,
}

/// A pattern of a clause.
struct Mask<'a> {
    pattern: &'a Pattern,
    clause: usize,
}

/// `nodes`, cut by the patterns of `clauses`, for that many domains: in the order of labelling
/// rules, with [`Node::clauses`] filled in. The nodes that were there keep their types.
pub(super) fn carve(
    nodes: Vec<Node>,
    (clauses, domains): (&[Clause], usize),
    out: &mut Writer,
) -> Result<Vec<Node>, Problem> {
    let masks: Vec<Mask<'_>> = clauses.iter().enumerate().flat_map(|(i, c)| masks(i, c)).collect();
    if masks.is_empty() {
        return Ok(nodes);
    }
    let mut cutter = Cutter { nodes: &nodes, clauses, domains, masks: &masks, pieces: Vec::new() };
    for (index, node) in nodes.iter().enumerate() {
        let pattern = node.pattern.clone();
        cutter.pieces.push(Piece { pattern, base: Some(index), inside: vec![false; masks.len()] });
    }
    for (index, mask) in masks.iter().enumerate() {
        cutter.cut(index).map_err(|Entangled| entangled(mask.pattern))?;
    }
    let pieces = cutter.pieces;
    Ok(to_nodes((&nodes, domains), pieces, &masks, out))
}

fn masks(index: usize, clause: &Clause) -> impl Iterator<Item = Mask<'_>> {
    let patterns = match &clause.object {
        ClauseObject::Paths(_, patterns) => patterns.as_slice(),
        _ => &[],
    };
    patterns.iter().map(move |pattern| Mask { pattern, clause: index })
}

fn entangled(pattern: &Pattern) -> Problem {
    Problem::BadPattern {
        pattern: pattern.label().to_owned(),
        reason: "it has too much in common with other patterns",
        help: "name the files, or the directory that they lie in",
    }
}

struct Cutter<'a> {
    nodes: &'a [Node],
    clauses: &'a [Clause],
    domains: usize,
    masks: &'a [Mask<'a>],
    /// Those of the nodes first, in their order.
    pieces: Vec<Piece>,
}

impl Cutter<'_> {
    /// Cuts every piece so far by one more mask.
    fn cut(&mut self, mask: usize) -> Result<(), Entangled> {
        let pattern = self.masks[mask].pattern;
        let mut inside = vec![false; self.masks.len()];
        inside[mask] = true;
        let cut_before = self.pieces.len();
        self.add(pattern.clone(), self.base_of(pattern)?, inside)?;
        // What is added on the way is looked at, too, and by all masks so far.
        let mut at = 0;
        while at < self.pieces.len() {
            for other in if at < cut_before { mask } else { 0 }..=mask {
                self.apply(at, other)?;
            }
            if self.pieces[at].inside.contains(&true) {
                self.settle(at)?;
            }
            at += 1;
        }
        Ok(())
    }

    /// Notes that a piece lies in a mask, or cuts off what does.
    fn apply(&mut self, at: usize, mask: usize) -> Result<(), Entangled> {
        let (piece, pattern) = (&self.pieces[at], self.masks[mask].pattern);
        if piece.inside[mask] {
            return Ok(());
        }
        if pattern.includes(&piece.pattern)? {
            self.pieces[at].inside[mask] = true;
        } else if pattern.stem() <= piece.pattern.stem() && self.tells_apart(piece, mask) {
            // With a longer stem, the mask's own rule labels what they have in common.
            let (base, mut inside) = (piece.base, piece.inside.clone());
            inside[mask] = true;
            for common in piece.pattern.common(pattern)? {
                self.add(common, base, inside.clone())?;
            }
        }
        Ok(())
    }

    /// Whether a mask's clause makes a difference to files of a piece, as far as the masks so far
    /// tell. If not, it never will: what further clauses come to follows from what was taken and
    /// given so far.
    fn tells_apart(&self, piece: &Piece, mask: usize) -> bool {
        let this = self.masks[mask].clause;
        let lies_in = |clause: usize| {
            let mut masks = self.masks.iter().zip(&piece.inside);
            masks.any(|(mask, inside)| *inside && mask.clause == clause)
        };
        if lies_in(this) {
            return false;
        }
        let holds = |index: usize, clause: &Clause| {
            matches!(clause.object, ClauseObject::All) || lies_in(index)
        };
        // Whatever was taken or given before, a revocation of everything comes to the same.
        let later = self.clauses.iter().enumerate().skip(this + 1);
        let resets: Vec<&Clause> = later
            .filter(|(index, clause)| clause.takes_everything() && lies_in(*index))
            .map(|(_, clause)| clause)
            .collect();
        let mut about = (0..self.domains).filter(|domain| {
            let reset = resets.iter().any(|reset| reset.is_about(*domain));
            self.clauses[this].is_about(*domain) && !reset
        });
        about.any(|domain| {
            let earlier = self.clauses[..this].iter().enumerate();
            let earlier =
                earlier.filter(|(index, clause)| clause.is_about(domain) && holds(*index, clause));
            let before = Amended::by(earlier.map(|(_, clause)| clause));
            let mut after = before;
            after.apply(&self.clauses[this]);
            !after.is_like(&before)
        })
    }

    /// Cuts off what a stronger node of the profile would have labelled.
    fn settle(&mut self, at: usize) -> Result<(), Entangled> {
        let first = self.pieces[at].base.map_or(0, |base| base + 1);
        for base in first..self.nodes.len() {
            let (piece, node) = (&self.pieces[at], &self.nodes[base].pattern);
            if node.stem() > piece.pattern.stem() {
                continue;
            }
            if node.includes(&piece.pattern)? {
                self.pieces[at].base = Some(base);
                continue;
            }
            let inside = piece.inside.clone();
            for common in piece.pattern.common(node)? {
                self.add(common, Some(base), inside.clone())?;
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        pattern: Pattern,
        base: Option<usize>,
        inside: Vec<bool>,
    ) -> Result<(), Entangled> {
        if let Some(known) = self.pieces.iter_mut().find(|piece| piece.pattern == pattern) {
            known.base = known.base.max(base);
            known.inside.iter_mut().zip(inside).for_each(|(known, new)| *known |= new);
        } else {
            if self.pieces.len() >= self.nodes.len() + MOST_NODES {
                return Err(Entangled);
            }
            self.pieces.push(Piece { pattern, base, inside });
        }
        Ok(())
    }

    /// The strongest node of the profile that includes `pattern`.
    fn base_of(&self, pattern: &Pattern) -> Result<Option<usize>, Entangled> {
        for (index, node) in self.nodes.iter().enumerate().rev() {
            if node.pattern.includes(pattern)? {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }
}

fn to_nodes(
    (nodes, domains): (&[Node], usize),
    pieces: Vec<Piece>,
    masks: &[Mask<'_>],
    out: &mut Writer,
) -> Vec<Node> {
    let mut ranked = Vec::with_capacity(pieces.len());
    for (index, piece) in pieces.into_iter().enumerate() {
        let base = piece.base.map(|base| &nodes[base]);
        let type_name = match nodes.get(index) {
            Some(node) => node.type_name.clone(),
            // With two underscores, which no name of a profile has: those keep theirs.
            None => out.names.fresh(piece.pattern.label(), "_t"),
        };
        let taken = piece.inside.iter().zip(masks).filter(|(inside, _)| **inside);
        let mut clauses: Vec<usize> = taken.map(|(_, mask)| mask.clause).collect();
        clauses.dedup();
        let rank = (piece.pattern.stem(), piece.inside.iter().filter(|i| **i).count(), piece.base);
        let node = Node {
            rights: base
                .map_or_else(|| vec![Default::default(); domains], |base| base.rights.clone()),
            part_of: base.map_or_else(|| piece.pattern.clone(), |base| base.pattern.clone()),
            taken: vec![Default::default(); domains],
            pattern: piece.pattern,
            kinds: super::files::ANY,
            by_name: None,
            type_name,
            clauses,
        };
        ranked.push((rank, node));
    }
    // INVARIANT: of two that match a path with equally long stems, the one in more masks comes
    // later, for what the two have in common is a third one in at least as many.
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, node)| node).collect()
}
