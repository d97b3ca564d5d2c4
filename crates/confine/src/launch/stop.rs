//! A command that stops and is continued, and Dewar with it.

/// Whether the command, and Dewar with it, is stopped.
///
/// When Dewar is continued, the command may have been continued with it, and stopped again already
/// (`fg`, then at once the suspend key). Only init knows, so it is asked first, and only if the
/// command is still in the stop that Dewar stopped for is it continued.
#[derive(Debug, Default)]
pub(super) struct Stop {
    pub(super) stopped: bool,
    /// Answers that are due.
    pub(super) asked: u32,
    /// Of those, answers to questions from before the last stop.
    outdated: u32,
}

impl Stop {
    pub(super) fn on_stop(&mut self) {
        self.stopped = true;
        self.outdated = self.asked;
    }

    /// Takes init's answer; whether the command is to be continued.
    pub(super) fn on_answer(&mut self, stopped: bool) -> bool {
        self.asked = self.asked.saturating_sub(1);
        if self.outdated > 0 {
            self.outdated -= 1;
            return false;
        }
        std::mem::take(&mut self.stopped) && stopped
    }
}

#[cfg(test)]
mod tests {
    use super::Stop;

    #[test]
    fn only_an_answer_about_the_last_stop_continues() {
        let mut stop = Stop::default();
        stop.on_stop();
        stop.asked = 1;
        // The command was stopped anew before init answered.
        stop.on_stop();
        assert!(!stop.on_answer(true));
        stop.asked = 1;
        assert!(stop.on_answer(true));
        assert!(!stop.stopped);
    }

    #[test]
    fn a_command_that_runs_again_is_not_continued() {
        let mut stop = Stop::default();
        stop.on_stop();
        stop.asked = 1;
        assert!(!stop.on_answer(false));
        assert!(!stop.stopped);
    }
}
