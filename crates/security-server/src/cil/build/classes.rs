//! Classes, commons, and names for sets of permissions.

use super::permissions::ClassPerms;
use super::statements::{LiveStatement, Statements};
use super::{Binding, Builder, Container, Failure, Item, Node, Report, Space, SymbolId, Word, kw};
use crate::cil::sets::{Sets, set};
use crate::policy::{DefaultFrom, DefaultRange, Names};
use crate::{BitSet, ClassId};

/// Sets of permissions that name one another in longer chains are refused.
const MAX_CHAIN: u32 = 64;

/// Bytes that a permission takes in the table of its class, beside its name.
const PERMISSION_BYTES: usize = 64;

impl Builder<'_> {
    /// Gives classes their permissions, maps and sets their content.
    pub(super) fn classes(&mut self, statements: &Statements, report: &mut Report) {
        self.each(statements, &[kw::COMMON], report, Self::common);
        self.each(statements, &[kw::CLASSCOMMON], report, Self::class_common);
        self.each(statements, &[kw::CLASS], report, Self::class);
        self.each(statements, &[kw::CLASSMAP], report, Self::class_map);
        self.class_sets(statements, report);
        let defaults = [kw::DEFAULTUSER, kw::DEFAULTROLE, kw::DEFAULTTYPE];
        self.each(statements, &defaults, report, Self::default_from);
        self.each(statements, &[kw::DEFAULTRANGE], report, Self::default_range);
    }

    fn permission_names(&self, s: &LiveStatement, list: Node) -> Result<Names<()>, Failure> {
        let mut names = Names::default();
        for node in self.tree.list(list) {
            let name = self.tree.text(self.word(*node)?);
            self.spend_bytes(*node, PERMISSION_BYTES + name.len())?;
            names.insert(name.into(), ());
        }
        if names.len() > 32 {
            let message = "a class has at most 32 permissions".to_owned();
            return Err(Failure::wrong(s.node, message, "split the class"));
        }
        Ok(names)
    }

    fn common(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [name, list] = self.args(s)?;
        let id = self.symbol(s.at, Space::Common, name)?;
        let permissions = self.permission_names(s, list)?;
        let (index, _) = self.policy.commons.insert_full(self.full_name(id).into(), permissions);
        self.numbers[id.0 as usize] = index as u32;
        Ok(())
    }

    fn class_common(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [class, common] = self.args(s)?;
        let class = self.class_number(s.at, class)?;
        let common = self.number(s.at, Space::Common, common)? as usize;
        let common = self.policy.commons.get_index(common).map(|(n, p)| (n.clone(), p.clone()));
        if let Some((name, permissions)) = &common {
            let bytes = permissions.keys().map(|it| PERMISSION_BYTES + it.len()).sum::<usize>();
            self.spend_bytes(s.node, bytes + name.len())?;
        }
        let entry = &mut self.policy.classes[class.index()];
        if let (Some((name, permissions)), None) = (common, &entry.common) {
            entry.common = Some(name);
            entry.permissions = permissions;
            return Ok(());
        }
        let message = "the class has a common already".to_owned();
        Err(Failure::wrong(s.node, message, "remove one of the two `classcommon` statements"))
    }

    fn class(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [name, list] = self.args(s)?;
        let class = self.class_number(s.at, name)?;
        let permissions = self.permission_names(s, list)?;
        let entry = &mut self.policy.classes[class.index()];
        entry.permissions.extend(permissions);
        if entry.permissions.len() > 32 {
            let message = "with its common, the class has more than 32 permissions".to_owned();
            return Err(Failure::wrong(s.node, message, "split the class"));
        }
        Ok(())
    }

    fn class_map(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [name, list] = self.args(s)?;
        let id = self.symbol(s.at, Space::Class, name)?;
        for node in self.tree.list(list) {
            let permission = self.word(*node)?;
            self.spend(*node, 1)?;
            self.class_sets.entry((id, permission)).or_default();
        }
        Ok(())
    }

    /// The class that the word at `node` names; not a map.
    pub(super) fn class_number(&self, at: Container, node: Node) -> Result<ClassId, Failure> {
        self.number(at, Space::Class, node).map(ClassId)
    }

    /// The classes that a word or a list names; a map stands for the classes that it maps to.
    pub(super) fn class_list(&self, at: Container, node: Node) -> Result<Vec<ClassId>, Failure> {
        if let Item::List { .. } = node.item {
            let mut classes = Vec::new();
            for item in self.tree.list(node) {
                classes.extend(self.class_list(at, *item)?);
            }
            return Ok(classes);
        }
        let id = self.symbol(at, Space::Class, node)?;
        if self.flavor(id) == kw::CLASS {
            return Ok(vec![self.class_number(at, node)?]);
        }
        let sets = self.class_sets.iter().filter(|((map, _), _)| *map == id);
        let mut classes: Vec<ClassId> = sets.flat_map(|(_, set)| set).map(|p| p.class).collect();
        classes.sort_unstable();
        classes.dedup();
        Ok(classes)
    }

    /// Fills maps and sets. They may name one another in any order, so it is repeated until nothing
    /// is added.
    fn class_sets(&mut self, statements: &Statements, report: &mut Report) {
        let mut quiet = Report { dropped: report.dropped.clone(), ..Report::default() };
        for _ in 0..MAX_CHAIN {
            let before = self.class_sets_size();
            self.each(statements, &[kw::CLASSMAPPING], &mut quiet, Self::class_mapping);
            let sets = [kw::CLASSPERMISSIONSET];
            self.each(statements, &sets, &mut quiet, Self::class_permission_set);
            if self.class_sets_size() == before {
                break;
            }
        }
        self.each(statements, &[kw::CLASSMAPPING], report, Self::class_mapping);
        self.each(statements, &[kw::CLASSPERMISSIONSET], report, Self::class_permission_set);
    }

    fn class_sets_size(&self) -> u32 {
        let perms = self.class_sets.values().flatten();
        perms.map(|perms| 1 + perms.perms.count_ones()).sum()
    }

    fn class_mapping(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [map, permission, perms] = self.args(s)?;
        let id = self.symbol(s.at, Space::Class, map)?;
        let permission_word = self.word(permission)?;
        let perms = self.class_perms(s.at, perms)?;
        match self.class_sets.get_mut(&(id, permission_word)) {
            Some(set) => {
                let more = merge(set, perms);
                self.spend_bytes(s.node, 2 * more * size_of::<ClassPerms>())
            }
            None => Err(self.no_permission(id, permission, permission_word)),
        }
    }

    fn class_permission_set(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [name, perms] = self.args(s)?;
        let id = self.symbol(s.at, Space::ClassPermission, name)?;
        let perms = self.class_perms(s.at, perms)?;
        let more = merge(self.class_sets.entry((id, kw::STAR)).or_default(), perms);
        self.spend_bytes(s.node, 2 * more * size_of::<ClassPerms>())
    }

    fn no_permission(&self, class: SymbolId, node: Node, word: Word) -> Failure {
        let text = self.tree.text(word);
        let class = self.full_name(class);
        let names = self.policy.classes.get(class);
        let names = names.into_iter().flat_map(|class| class.permissions.keys()).map(|n| &**n);
        let help = match crate::cil::scopes::closest(text, names) {
            Some(similar) => format!("did you mean `{similar}`?"),
            None => format!("use a permission that class `{class}` has"),
        };
        let message = format!("class `{class}` has no permission `{text}`");
        Failure::Missing { node, message, help }
    }

    /// What `(class (permission …))`, the name of a set, or a list of these stands for.
    pub(super) fn class_perms(
        &self,
        at: Container,
        node: Node,
    ) -> Result<Vec<ClassPerms>, Failure> {
        let Item::List { .. } = node.item else {
            return match self.find(at, Space::ClassPermission, node)? {
                Binding::Symbol(id) => {
                    Ok(self.class_sets.get(&(id, kw::STAR)).cloned().unwrap_or_default())
                }
                Binding::Unnamed(node, at) => self.class_perms(at, node),
                Binding::Text(_) => Err(super::expected(node, "class permission set")),
            };
        };
        let items = self.tree.list(node);
        if let [
            class @ Node { item: Item::Word(_), .. },
            perms @ Node { item: Item::List { .. }, .. },
        ] = items
        {
            return self.perms_of_class(at, *class, *perms);
        }
        let mut all = Vec::new();
        for item in items {
            merge(&mut all, self.class_perms(at, *item)?);
        }
        Ok(all)
    }

    fn perms_of_class(
        &self,
        at: Container,
        class: Node,
        perms: Node,
    ) -> Result<Vec<ClassPerms>, Failure> {
        let id = self.symbol(at, Space::Class, class)?;
        if self.flavor(id) == kw::CLASSMAP {
            return self.perms_of_map(id, perms);
        }
        let class = self.class_number(at, class)?;
        let entry = &self.policy.classes[class.index()];
        let names: Vec<&str> = entry.permissions.keys().map(|name| &**name).collect();
        let bits =
            set(self.tree, perms, &mut Permissions { builder: self, class: id, names: &names })?;
        let perms = bits.iter().fold(0, |all, bit| all | 1 << bit);
        Ok(vec![ClassPerms { class, perms }])
    }

    fn perms_of_map(&self, map: SymbolId, perms: Node) -> Result<Vec<ClassPerms>, Failure> {
        let mut words: Vec<Word> =
            self.class_sets.keys().filter(|key| key.0 == map).map(|key| key.1).collect();
        words.sort_unstable();
        let names: Vec<&str> = words.iter().map(|word| self.tree.text(*word)).collect();
        let chosen =
            set(self.tree, perms, &mut Permissions { builder: self, class: map, names: &names })?;
        let mut all = Vec::new();
        for index in chosen.iter() {
            let perms = self.class_sets.get(&(map, words[index])).cloned().unwrap_or_default();
            merge(&mut all, perms);
        }
        Ok(all)
    }

    fn default_from(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [classes, from] = self.args(s)?;
        let from = self.source_or_target(s, from)?;
        for class in self.class_list(s.at, classes)? {
            let entry = &mut self.policy.classes[class.index()];
            match self.tree.list(s.node).first().map(|first| first.item) {
                Some(Item::Word(kw::DEFAULTUSER)) => entry.default_user = Some(from),
                Some(Item::Word(kw::DEFAULTROLE)) => entry.default_role = Some(from),
                _ => entry.default_type = Some(from),
            }
        }
        Ok(())
    }

    fn source_or_target(&self, s: &LiveStatement, node: Node) -> Result<DefaultFrom, Failure> {
        match node.item {
            Item::Word(kw::SOURCE) => Ok(DefaultFrom::Source),
            Item::Word(kw::TARGET) => Ok(DefaultFrom::Target),
            _ => Err(self.misuse(s)),
        }
    }

    fn default_range(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let (classes, range) = match self.rest(s) {
            [classes, Node { item: Item::Word(kw::GLBLUB), .. }] => {
                (*classes, DefaultRange::GlbLub)
            }
            [classes, from, part] => {
                let from = self.source_or_target(s, *from)?;
                let range = match part.item {
                    Item::Word(kw::LOW) => DefaultRange::Low(from),
                    Item::Word(kw::HIGH) => DefaultRange::High(from),
                    Item::Word(kw::LOW_HIGH) => DefaultRange::LowHigh(from),
                    _ => return Err(self.misuse(s)),
                };
                (*classes, range)
            }
            _ => return Err(self.misuse(s)),
        };
        for class in self.class_list(s.at, classes)? {
            self.policy.classes[class.index()].default_range = Some(range);
        }
        Ok(())
    }
}

/// Adds permissions to a list that names each class once, and says how much longer it is.
fn merge(set: &mut Vec<ClassPerms>, more: Vec<ClassPerms>) -> usize {
    let before = set.len();
    for perms in more {
        match set.iter_mut().find(|known| known.class == perms.class) {
            Some(known) => known.perms |= perms.perms,
            None => set.push(perms),
        }
    }
    set.len() - before
}

/// The permissions of a class or map, for expressions over them.
struct Permissions<'a> {
    builder: &'a Builder<'a>,
    class: SymbolId,
    names: &'a [&'a str],
}

impl Sets for Permissions<'_> {
    fn all(&self) -> BitSet {
        BitSet::below(self.names.len())
    }

    fn named(&mut self, node: Node, word: Word) -> Result<BitSet, Failure> {
        let text = self.builder.tree.text(word);
        match self.names.iter().position(|name| *name == text) {
            Some(index) => Ok([index].into_iter().collect()),
            None => Err(self.builder.no_permission(self.class, node, word)),
        }
    }
}
