//! What two patterns have in common, as patterns again.

use super::{CharSet, Component, Pattern, Token};

/// Steps until two patterns count as too entangled.
const MOST_STEPS: u32 = 20_000;

/// The most characters of a set that are looked at one by one.
const MOST_CHARS: usize = 512;

/// Two patterns have too much in common for a policy to say it. The message is a reason for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entangled;

impl Pattern {
    /// Patterns that together match exactly the paths that both match; none if there is no such
    /// path.
    pub(crate) fn common(&self, other: &Self) -> Result<Vec<Self>, Entangled> {
        self.common_in(other, &mut Steps(MOST_STEPS))
    }

    /// The same, within an allowance of steps.
    pub(crate) fn common_in(
        &self,
        other: &Self,
        steps: &mut Steps,
    ) -> Result<Vec<Self>, Entangled> {
        if !self.stem.starts_with(&other.stem) && !other.stem.starts_with(&self.stem) {
            return Ok(Vec::new());
        }
        let (a, b) = ((&*self.components, self.below), (&*other.components, other.below));
        let mut found: Vec<Self> = Vec::new();
        for (components, below) in paths(a, b, steps)? {
            let label = if self.stem() > other.stem() { &self.label } else { &other.label };
            let pattern = Self::new(components, below, label.clone());
            if !found.contains(&pattern) {
                found.push(pattern);
            }
        }
        Ok(found)
    }

    /// Whether it matches every path of `other`. Like [`Pattern::covers`], with fewer doubts.
    pub(crate) fn includes(&self, other: &Self) -> Result<bool, Entangled> {
        Ok(self.covers(other) || matches!(&*self.common(other)?, [one] if one == other))
    }
}

/// What is left of an allowance.
pub(crate) struct Steps(u32);

impl Steps {
    /// As many as a whole profile may take.
    pub(crate) fn of_a_profile() -> Self {
        Self(1_000 * MOST_STEPS)
    }

    fn take(&mut self) -> Result<(), Entangled> {
        self.take_many(1)
    }

    /// Takes what `count` steps take.
    pub(crate) fn take_many(&mut self, count: u32) -> Result<(), Entangled> {
        self.0 = self.0.checked_sub(count).ok_or(Entangled)?;
        Ok(())
    }
}

/// Components, and whether what lies below is meant, too.
type Side<'a> = (&'a [Component], bool);

fn paths(
    a: Side<'_>,
    b: Side<'_>,
    steps: &mut Steps,
) -> Result<Vec<(Vec<Component>, bool)>, Entangled> {
    steps.take()?;
    let rest = |(components, below): Side<'_>| vec![(components.to_vec(), below)];
    let Some((x, xs)) = a.0.split_first() else {
        // At the end of `a`, what lies below it is all of `b` that is left.
        return Ok(match b.0 {
            [] => vec![(Vec::new(), a.1 && b.1)],
            _ if a.1 => rest(b),
            _ => Vec::new(),
        });
    };
    let Some((y, ys)) = b.0.split_first() else { return paths(b, a, steps) };
    let (after_a, after_b) = ((xs, a.1), (ys, b.1));
    match (x, y) {
        (Component::AnyDepth, Component::AnyDepth) => {
            let mut tails = paths(after_a, b, steps)?;
            tails.extend(paths(a, after_b, steps)?);
            Ok(behind(&Component::AnyDepth, tails))
        }
        (Component::AnyDepth, one) => {
            let mut found = paths(after_a, b, steps)?;
            found.extend(behind(one, paths(a, after_b, steps)?));
            Ok(found)
        }
        (_, Component::AnyDepth) => paths(b, a, steps),
        _ => {
            let names = names(&tokens(x), &tokens(y), steps)?;
            if names.is_empty() {
                return Ok(Vec::new());
            }
            let tails = paths(after_a, after_b, steps)?;
            Ok(names.iter().flat_map(|name| behind(&component(name), tails.clone())).collect())
        }
    }
}

fn behind(first: &Component, tails: Vec<(Vec<Component>, bool)>) -> Vec<(Vec<Component>, bool)> {
    let longer = |(mut tail, below): (Vec<Component>, bool)| {
        if *first != Component::AnyDepth || tail.first() != Some(first) {
            tail.insert(0, first.clone());
        }
        (tail, below)
    };
    tails.into_iter().map(longer).collect()
}

fn tokens(component: &Component) -> Vec<Token> {
    match component {
        Component::Literal(text) => text.chars().map(Token::Char).collect(),
        Component::Glob(tokens) => tokens.clone(),
        Component::AnyDepth => Vec::new(),
    }
}

fn component(tokens: &[Token]) -> Component {
    let literal = tokens.iter().map(|token| match token {
        Token::Char(c) => Some(*c),
        _ => None,
    });
    literal
        .collect::<Option<String>>()
        .map_or_else(|| Component::Glob(tokens.to_vec()), Component::Literal)
}

/// The names that both globs match.
fn names(a: &[Token], b: &[Token], steps: &mut Steps) -> Result<Vec<Vec<Token>>, Entangled> {
    steps.take()?;
    let Some((x, xs)) = a.split_first() else {
        let empty = b.iter().all(|token| *token == Token::Star);
        return Ok(if empty { vec![Vec::new()] } else { Vec::new() });
    };
    let Some((y, ys)) = b.split_first() else { return names(b, a, steps) };
    let mut found = match (x, y) {
        (Token::Star, Token::Star) => {
            let mut tails = names(xs, b, steps)?;
            tails.extend(names(a, ys, steps)?);
            after(&Token::Star, tails)
        }
        (Token::Star, one) => {
            let mut found = names(xs, b, steps)?;
            found.extend(after(one, names(a, ys, steps)?));
            found
        }
        (_, Token::Star) => names(b, a, steps)?,
        (x, y) => match token(x, y)? {
            Some(both) => after(&both, names(xs, ys, steps)?),
            None => Vec::new(),
        },
    };
    let mut seen: Vec<Vec<Token>> = Vec::new();
    found.retain(|name| {
        let new = !seen.contains(name);
        seen.push(name.clone());
        new
    });
    Ok(found)
}

fn after(first: &Token, tails: Vec<Vec<Token>>) -> Vec<Vec<Token>> {
    let longer = |mut tail: Vec<Token>| {
        if *first != Token::Star || tail.first() != Some(first) {
            tail.insert(0, first.clone());
        }
        tail
    };
    tails.into_iter().map(longer).collect()
}

/// The one token for the characters that two match, neither of which is a star.
fn token(x: &Token, y: &Token) -> Result<Option<Token>, Entangled> {
    Ok(match (x, y) {
        (Token::Question, one) | (one, Token::Question) => Some(one.clone()),
        (Token::Set(a), Token::Set(b)) => set(a, b)?.map(Token::Set),
        (Token::Set(set), Token::Char(c)) | (Token::Char(c), Token::Set(set)) => {
            set.contains(*c).then_some(Token::Char(*c))
        }
        (a, b) => (a == b).then(|| a.clone()),
    })
}

fn set(a: &CharSet, b: &CharSet) -> Result<Option<CharSet>, Entangled> {
    if a == b {
        return Ok(Some(a.clone()));
    }
    if a.negated && b.negated {
        let ranges = [a.ranges.as_slice(), &b.ranges].concat();
        return Ok(Some(CharSet { negated: true, ranges }));
    }
    let (listed, other) = if a.negated { (b, a) } else { (a, b) };
    let chars = || listed.ranges.iter().flat_map(|(low, high)| *low..=*high);
    if chars().nth(MOST_CHARS).is_some() {
        return Err(Entangled);
    }
    let ranges: Vec<_> = chars().filter(|c| other.contains(*c)).map(|c| (c, c)).collect();
    Ok((!ranges.is_empty()).then_some(CharSet { negated: false, ranges }))
}
