//! What the file object manager owns beside labels: paths that were resolved, and what lies outside
//! of the view.

use super::{Outside, PathCache};
use audit::Plantings;
use inode_labels::RepositoryNames;
use std::sync::Arc;
use supervisor::Witnesses;

/// The file object manager: what it knows of files beside their labels.
pub struct FileManager {
    /// What names were found to lead to.
    pub paths: PathCache,
    /// Names that make a directory a repository.
    pub claims: RepositoryNames,
    /// What a program outside may execute later.
    pub plantings: Plantings,
    /// What the view keeps back: what is not found in it is explained.
    pub outside: Arc<Outside>,
    /// What sees that nobody else puts something in the place of what is made.
    pub witnesses: Witnesses,
}
