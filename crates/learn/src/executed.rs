//! Where programs outside look for what they execute, or for what they do.

use crate::Scope;
use std::path::Path;

/// Directories of a home in which programs outside look for what they execute. What writes a file
/// there is granted that file.
const EXECUTED: [&str; 28] = [
    "bin",
    ".local/bin",
    ".cargo/bin",
    "go/bin",
    ".config/autostart",
    ".config/autostart-scripts",
    ".config/systemd",
    ".config/environment.d",
    ".config/plasma-workspace",
    ".local/share/systemd",
    ".local/share/applications",
    ".local/share/dbus-1",
    ".config/fish",
    ".config/zsh",
    ".zsh",
    ".oh-my-zsh",
    ".bashrc.d",
    ".config/direnv",
    ".config/mise",
    ".config/git",
    ".config/tmux",
    ".config/nvim",
    ".config/emacs",
    ".vim",
    ".emacs.d",
    ".config/sway",
    ".config/i3",
    ".config/hypr",
];

impl Scope {
    /// Whether programs outside execute what lies in a directory, or do what it says.
    pub(crate) fn is_executed(&self, directory: &Path) -> bool {
        EXECUTED.iter().any(|executed| directory.starts_with(self.home.join(executed)))
    }
}
